"""`holdfast group`: look at groups, and take a hand in them."""

from __future__ import annotations

import click

from holdfast.server.cli.connect import Cluster, code_name, fail
from holdfast.server.cli.options import as_json, asks_cluster, refuse, refuse_any, show_json, table
from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import errors_pb2 as e


@click.group()
def group() -> None:
    """Look at groups, remove members, rebalance, delete."""


@group.command("list")
@click.option("--state", "states", multiple=True, help="Only groups in this state; repeatable.")
@as_json
@asks_cluster
def list_groups(cluster: Cluster, states: tuple[str, ...], *, as_json: bool) -> None:
    """List groups."""
    response = cluster.call("ListGroups", a.ListGroupsRequest(states_filter=states))
    refuse(response, "groups")
    if as_json:
        show_json(response)
        return
    table(
        ("GROUP", "STATE", "PROTOCOL TYPE", "TYPE"),
        (
            (g.group_id, g.group_state, g.protocol_type or "-", g.group_type)
            for g in response.groups
        ),
    )


@group.command()
@click.argument("group_id")
@as_json
@asks_cluster
def describe(cluster: Cluster, group_id: str, *, as_json: bool) -> None:
    """Show a group with its members."""
    response = cluster.call("DescribeGroups", a.DescribeGroupsRequest(groups=[group_id]))
    if as_json:
        show_json(response)
    found = response.groups[0]
    if found.error_code != e.ERROR_CODE_NONE:
        fail(f"group {group_id}: {found.error_message or code_name(found.error_code)}")
    if not as_json:
        _show(found)


def _show(found: a.DescribedGroup) -> None:
    extra = found.holdfast
    click.echo(f"{found.group_id}: {found.group_state}, generation {extra.generation_id}")
    if extra.HasField("last_rebalance"):
        click.echo(f"last rebalance: {extra.last_rebalance.reason}")
    table(
        ("INSTANCE", "MEMBER", "CLIENT", "HOST", "SESSION MS", "TOKEN", "NOTE"),
        (
            (
                m.group_instance_id or "-",
                m.member_id,
                m.client_id,
                m.client_host,
                m.holdfast.session_timeout_ms,
                m.holdfast.fencing_token if m.holdfast.HasField("fencing_token") else "-",
                _note(m, extra.leader),
            )
            for m in found.members
        ),
    )


def _note(member: a.DescribedGroupMember, leader: str) -> str:
    notes = ["group leader"] if member.member_id == leader else []
    notes += ["restarting"] if member.holdfast.released else []
    return ", ".join(notes)


@group.command("remove-members")
@click.argument("group_id")
@click.option("--instance", "instances", multiple=True, help="An instance id; repeatable.")
@click.option("--member", "members", multiple=True, help="A member id; repeatable.")
@click.option("--all", "everyone", is_flag=True, help="Everyone.")
@click.option("--reason", default="", help="Why; recorded with the event.")
@as_json
@asks_cluster
def remove_members(
    cluster: Cluster,
    group_id: str,
    instances: tuple[str, ...],
    members: tuple[str, ...],
    reason: str,
    *,
    everyone: bool,
    as_json: bool,
) -> None:
    """Remove members; one rebalance for all of them."""
    if not (instances or members or everyone):
        raise click.UsageError("name --instance or --member, or say --all")
    request = a.RemoveMembersRequest(
        group_id=group_id,
        members=[a.MemberToRemove(group_instance_id=i) for i in instances]
        + [a.MemberToRemove(member_id=m) for m in members],
        all=everyone,
        reason=reason or None,
    )
    response = cluster.change("RemoveMembers", request)
    refuse(response, f"group {group_id}")
    if as_json:
        show_json(response)
    refuse_any((m.group_instance_id or m.member_id, m.error_code, "") for m in response.members)
    if not as_json:
        click.echo(f"removed {len(response.members)} members of {group_id}")


@group.command()
@click.argument("group_id")
@click.option("--reason", default="", help="Why; recorded with the event.")
@asks_cluster
def rebalance(cluster: Cluster, group_id: str, reason: str) -> None:
    """Open a join phase."""
    request = a.TriggerRebalanceRequest(group_id=group_id, reason=reason or None)
    refuse(cluster.change("TriggerRebalance", request), f"group {group_id}")
    click.echo(f"a rebalance of {group_id} has begun")


@group.command()
@click.argument("group_ids", nargs=-1, required=True)
@asks_cluster
def delete(cluster: Cluster, group_ids: tuple[str, ...]) -> None:
    """Delete groups without members, with their offsets."""
    response = cluster.change("DeleteGroups", a.DeleteGroupsRequest(groups_names=group_ids))
    message = response.holdfast.message
    refuse_any((r.group_id, r.error_code, message) for r in response.results)
    click.echo(f"deleted {', '.join(group_ids)}")

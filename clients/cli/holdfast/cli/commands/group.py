"""`holdfast group`: look at groups, and take a hand in them."""

from __future__ import annotations

import click

from holdfast.cli.connect import Cluster, code_name
from holdfast.cli.ending import fail, print_json
from holdfast.cli.names import group_name, member_name
from holdfast.cli.options import (
    about,
    as_json,
    asks_cluster,
    refuse,
    refuse_any,
    require_group,
    show_json,
    table,
)
from holdfast.cli.render import consumer_groups, describing, explain
from holdfast.cli.render.plain import plain
from holdfast.cli.render.speaking import say
from holdfast.cli.render.times import Now, now
from holdfast.client._translate.call_arguments import GROUP_STATES
from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import errors_pb2 as e
from holdfast.v1.extras_pb2 import RequestExtras

REBALANCES_MAX = 10
"""The number of rebalances that a group remembers."""


@click.group()
def group() -> None:
    """Look at groups, explain them, remove members, rebalance, delete."""


@group.command("list")
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(GROUP_STATES, case_sensitive=False),
    help="Only groups in this state; repeatable.",
)
@as_json
@asks_cluster
def list_groups(cluster: Cluster, states: tuple[str, ...], *, as_json: bool) -> None:
    """List groups."""
    response = cluster.pages(a.ListGroupsRequest(states_filter=states), a.ListGroupsResponse)
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


_rebalances = click.option(
    "--rebalances",
    type=click.IntRange(0, REBALANCES_MAX),
    default=1,
    show_default=True,
    help="How many of the last rebalances, or epochs, to tell of.",
)


@group.command()
@click.argument("group_ids", nargs=-1, required=True, metavar="GROUP...", callback=group_name)
@_rebalances
@as_json
@asks_cluster
def describe(
    cluster: Cluster, group_ids: tuple[str, ...], rebalances: int, *, as_json: bool
) -> None:
    """Show groups: state, members, what they own, and why they last rebalanced."""
    response = _described(cluster, group_ids, rebalances)
    others, present = _of_the_heartbeat_protocol(cluster, response, rebalances)
    if as_json:
        _show_json(response, others)
    else:
        describing.show(response)
        consumer_groups.show(others, present, behind=bool(response.groups))
    _refuse_unknown(response)


def _show_json(
    response: a.DescribeGroupsResponse, others: list[a.ConsumerGroupDescribedGroup]
) -> None:
    more = {"consumer_groups": list(map(plain, others))} if others else {}
    print_json(plain(response) | more)


def _of_the_heartbeat_protocol(
    cluster: Cluster, response: a.DescribeGroupsResponse, epochs: int
) -> tuple[list[a.ConsumerGroupDescribedGroup], Now]:
    """Describe those groups that are unknown as classic ones; take what is found out of these.

    The others are left with what this call says of them.
    """
    unknown = [
        found.group_id
        for found in response.groups
        if found.error_code == e.ERROR_CODE_GROUP_ID_NOT_FOUND
    ]
    if not unknown:
        return [], now(response.holdfast.log_time_ms)
    extras = RequestExtras(rebalances_max=epochs)
    asked = a.ConsumerGroupDescribeRequest(group_ids=unknown, holdfast=extras)
    answer = cluster.call(asked, a.ConsumerGroupDescribeResponse)
    others = [found for found in answer.groups if found.error_code == e.ERROR_CODE_NONE]
    names = {found.group_id for found in others}
    left = [found for found in response.groups if found.group_id not in names]
    said = {found.group_id: found for found in answer.groups}
    for refused in left:
        if refused.group_id in said:
            refused.error_code = said[refused.group_id].error_code
            refused.error_message = said[refused.group_id].error_message
    del response.groups[:]
    response.groups.extend(left)
    for found in others:
        found.members.sort(key=lambda member: (member.instance_id, member.member_id))
    return others, now(answer.holdfast.log_time_ms)


@group.command("explain")
@click.argument("group_id", metavar="GROUP", callback=group_name)
@click.option(
    "--last",
    type=click.IntRange(1, REBALANCES_MAX),
    default=REBALANCES_MAX,
    show_default=True,
    help="How many.",
)
@as_json
@asks_cluster
def explain_group(cluster: Cluster, group_id: str, last: int, *, as_json: bool) -> None:
    """Explain the last rebalances, or epochs, of a group, the newest at the end.

    For each: when, why, who caused it, who came and went, which partitions moved, and how long it
    took. A group remembers its last 10; all of them are in the event log (`holdfast log tail
    --group`). A group that changes its protocol begins anew.
    """
    response = _described(cluster, (group_id,), last)
    others, present = _of_the_heartbeat_protocol(cluster, response, last)
    if as_json:
        _show_json(response, others)
    _refuse_unknown(response)
    if others and not as_json:
        consumer_groups.explain_epochs(others[0], present)
    elif not as_json:
        _explain(response)


def _explain(response: a.DescribeGroupsResponse) -> None:
    found = response.groups[0].holdfast.rebalances
    if not found:
        say(f"{response.groups[0].group_id} has never rebalanced")
    present = now(response.holdfast.log_time_ms)
    for member in response.groups[0].members:
        if member.holdfast.takeovers > 1:
            told = explain.fought_over(member.holdfast.takeovers)
            say(f"NOTE {member.group_instance_id}: {told}")
    for rebalance in reversed(found):
        for line in explain.lines(rebalance, present):
            say(line)


def _described(
    cluster: Cluster, group_ids: tuple[str, ...], rebalances: int
) -> a.DescribeGroupsResponse:
    extras = RequestExtras(rebalances_max=rebalances)
    request = a.DescribeGroupsRequest(groups=group_ids, holdfast=extras)
    response = cluster.call(request, a.DescribeGroupsResponse)
    for found in response.groups:
        found.members.sort(key=lambda member: (member.group_instance_id, member.member_id))
    return response


def _refuse_unknown(response: a.DescribeGroupsResponse) -> None:
    bad = [found for found in response.groups if found.error_code != e.ERROR_CODE_NONE]
    if bad:
        fail(
            "; ".join(
                about(
                    found.group_id,
                    found.error_message or code_name(found.error_code),
                    f"group {found.group_id}",
                )
                for found in bad
            )
        )


@group.command("remove-members")
@click.argument("group_id", metavar="GROUP", callback=group_name)
@click.option(
    "--instance",
    "instances",
    multiple=True,
    callback=member_name,
    help="An instance id; repeatable.",
)
@click.option(
    "--member", "members", multiple=True, callback=member_name, help="A member id; repeatable."
)
@click.option(
    "--instance-prefix",
    "prefixes",
    multiple=True,
    callback=member_name,
    help="Static members whose instance id begins so; once.",
)
@click.option("--all", "everyone", is_flag=True, help="Everyone.")
@click.option("--reason", default="", help="Why; recorded with the event.")
@as_json
@asks_cluster
def remove_members(
    cluster: Cluster,
    group_id: str,
    instances: tuple[str, ...],
    members: tuple[str, ...],
    prefixes: tuple[str, ...],
    reason: str,
    *,
    everyone: bool,
    as_json: bool,
) -> None:
    """Remove members; one rebalance for all of them.

    Stop their processes first: a member that still runs is told, and joins again at once. A
    removed process may act until its next heartbeat: there only the fencing token, compared by
    your store, excludes it.
    """
    named = [a.MemberToRemove(group_instance_id=i) for i in instances]
    named += [a.MemberToRemove(member_id=m) for m in members]
    _check_choice(named=bool(named), prefixes=len(prefixes), everyone=everyone)
    require_group(cluster, group_id)
    request = a.RemoveMembersRequest(
        group_id=group_id,
        members=named,
        all=everyone,
        reason=reason or None,
        instance_prefix=prefixes[0] if prefixes else None,
    )
    response = cluster.change(request, a.RemoveMembersResponse)
    if as_json:
        show_json(response)
    refuse(response, "group", group_id)
    if prefixes and not response.members:
        fail(f"{group_id} has no static member whose instance id begins with {prefixes[0]!r}")
    if not as_json:
        _show_removed(group_id, response)
    refuse_any((_name(m), m.error_code, m.error_message) for m in response.members)


def _check_choice(*, named: bool, prefixes: int, everyone: bool) -> None:
    """Refuse more than one way to name members: a command is one call and one rebalance."""
    if prefixes > 1:
        raise click.UsageError(
            "--instance-prefix may be given once, because one command is one rebalance. Name the "
            "members with --instance (repeatable), or run a command for each prefix"
        )
    if sum((named, bool(prefixes), everyone)) != 1:
        raise click.UsageError(
            "say whom in exactly one way: --instance and --member (both repeatable), or "
            "--instance-prefix, or --all"
        )


def _show_removed(group_id: str, response: a.RemoveMembersResponse) -> None:
    done = [_name(m) for m in response.members if m.error_code == e.ERROR_CODE_NONE]
    what = f"{len(done)} member{'' if len(done) == 1 else 's'}"
    say(f"removed {what} of {group_id}" + (f": {', '.join(done)}" if done else ""))


def _name(member: a.RemovedMember) -> str:
    return member.group_instance_id or member.member_id


@group.command()
@click.argument("group_id", metavar="GROUP", callback=group_name)
@click.option("--reason", default="", help="Why; recorded with the event.")
@as_json
@asks_cluster
def rebalance(cluster: Cluster, group_id: str, reason: str, *, as_json: bool) -> None:
    """Open a join phase; of the heartbeat protocol: raise the epoch."""
    request = a.TriggerRebalanceRequest(group_id=group_id, reason=reason or None)
    response = cluster.change(request, a.TriggerRebalanceResponse)
    if as_json:
        show_json(response)
    refuse(response, "group", group_id)
    if not as_json:
        say(f"a rebalance of {group_id} has begun")


@group.command()
@click.argument("group_ids", nargs=-1, required=True, metavar="GROUP...", callback=group_name)
@as_json
@asks_cluster
def delete(cluster: Cluster, group_ids: tuple[str, ...], *, as_json: bool) -> None:
    """Delete groups without members, with their offsets."""
    response = cluster.change(a.DeleteGroupsRequest(groups_names=group_ids), a.DeleteGroupsResponse)
    if as_json:
        show_json(response)
    else:
        done = [r.group_id for r in response.results if r.error_code == e.ERROR_CODE_NONE]
        say(f"deleted {', '.join(done) or 'nothing'}")
    refuse_any((r.group_id, r.error_code, r.holdfast.message) for r in response.results)

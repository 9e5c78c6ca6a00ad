"""`holdfast acl`: who may do what; grants on groups, on topics and on the cluster."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import click

from holdfast.cli.connect import Cluster
from holdfast.cli.ending import fail
from holdfast.cli.names import member_name
from holdfast.cli.options import as_json, asks_cluster, refuse, show_json, table
from holdfast.cli.render.speaking import say
from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import events_pb2 as ev

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ROLES = ("reader", "member", "operator", "admin")
MODES = ("open", "dry-run", "deny")


def _names_grant(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the arguments that name a grant, and the grant."""
    star = "; abc* means all that begin so, * all of them."

    @click.argument("principal", callback=member_name)
    @click.argument("role", type=click.Choice(ROLES))
    @click.option("--group", callback=member_name, help=f"On a group{star}")
    @click.option("--topic", callback=member_name, help=f"On a topic{star}")
    @click.option("--on-cluster", is_flag=True, help="On the cluster itself.")
    @functools.wraps(command)
    def run(
        *args: object,
        principal: str,
        role: str,
        group: str | None,
        topic: str | None,
        on_cluster: bool,
        **kwargs: object,
    ) -> None:
        options = {"group": group, "topic": topic, "cluster": "" if on_cluster else None}
        given = [(kind, name) for kind, name in options.items() if name is not None]
        if len(given) != 1:
            raise click.UsageError("Give one of --group NAME, --topic NAME and --on-cluster")
        ((kind, name),) = given
        command(*args, named=ev.Acl(principal=principal, role=role, kind=kind, name=name), **kwargs)

    return run


@click.group()
def acl() -> None:
    """Say who may do what.

    A principal is the first URI of a client's certificate, else its first DNS name, else its common
    name; * is everybody. A reader sees, a member joins and commits as well, an operator removes and
    deletes as well, an admin sets the rules. An admin of the cluster may do everything.
    """


@acl.command()
@_names_grant
@as_json
@asks_cluster
def grant(cluster: Cluster, *, named: ev.Acl, as_json: bool) -> None:
    """Give a principal a role on a group, a topic or the cluster."""
    _change(cluster, a.AlterAclsRequest(granted=[named]), as_json=as_json)
    if not as_json:
        say(f"granted: {_sentence(named)}")


@acl.command()
@_names_grant
@as_json
@asks_cluster
def revoke(cluster: Cluster, *, named: ev.Acl, as_json: bool) -> None:
    """Take a role back, as it was granted; calls are refused from then on."""
    known = cluster.call(a.DescribeAclsRequest(principal=named.principal), a.DescribeAclsResponse)
    refuse(known, "the grants")
    if named not in known.acls:
        fail(f"there is no such grant: {_sentence(named)}. `holdfast acl list` shows all")
    _change(cluster, a.AlterAclsRequest(revoked=[named]), as_json=as_json)
    if not as_json:
        say(f"revoked: {_sentence(named)}")


@acl.command("list")
@click.argument("principal", required=False, callback=member_name)
@as_json
@asks_cluster
def list_acls(cluster: Cluster, principal: str | None, *, as_json: bool) -> None:
    """Show all grants, or those that count for a principal; your own, if you are no admin."""
    response = cluster.call(a.DescribeAclsRequest(principal=principal), a.DescribeAclsResponse)
    refuse(response, "the grants")
    if as_json:
        show_json(response)
        return
    table(("PRINCIPAL", "ROLE", "ON", "NAME"), map(_line, response.acls))
    say(f"access mode: {response.mode}; you are {response.principal}")


@acl.command()
@click.argument("principal", callback=member_name)
@click.argument("call")
@click.option("--name", default="", help="The group or topic that the call names.")
@as_json
@asks_cluster
def test(cluster: Cluster, principal: str, call: str, name: str, *, as_json: bool) -> None:
    """Tell whether a principal may make a call, and why: `acl test svc JoinGroup --name orders`.

    Ends with 1 if no grant allows it.
    """
    request = a.TestAclRequest(principal=principal, call=call, name=name)
    response = cluster.call(request, a.TestAclResponse)
    if as_json:
        show_json(response)
    refuse(response, call)
    need = f"{response.role} on {response.kind}" if response.role else "nothing"
    if not as_json:
        for each in response.acls:
            say(f"allowed by: {_sentence(each)}")
        if not response.role:
            say(f"allowed: {call} needs no role")
    if not response.allowed:
        thing = f" {name!r}" if name else ""
        told = "" if response.mode == "deny" else f"; in the mode {response.mode} it is done"
        fail(f"no grant lets {principal} do this: {call} needs {need}{thing}{told}")


@acl.command()
@click.argument("mode", type=click.Choice(MODES))
@as_json
@asks_cluster
def mode(cluster: Cluster, mode: str, *, as_json: bool) -> None:
    """Say what becomes of calls that no grant allows.

    open: they are carried out. dry-run: the same, and the nodes log what deny would refuse. deny:
    they are refused. Go from one to the next, and look at the logs in between.
    """
    _change(cluster, a.AlterAclsRequest(mode=mode), as_json=as_json)
    if not as_json:
        say(f"access mode: {mode}")


def _change(cluster: Cluster, request: a.AlterAclsRequest, *, as_json: bool) -> None:
    response = cluster.change(request, a.AlterAclsResponse)
    if as_json:
        show_json(response)
    refuse(response, "the grants")


def _line(each: ev.Acl) -> Sequence[object]:
    return (each.principal, each.role, each.kind, each.name or "-")


def _sentence(each: ev.Acl) -> str:
    thing = each.kind if each.kind == "cluster" else f"{each.kind} {each.name}"
    return f"{each.principal} is {each.role} on {thing}"

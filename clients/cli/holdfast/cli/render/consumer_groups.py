"""A group of the heartbeat protocol on the terminal: its epochs, and each member on its way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.cli.options import table
from holdfast.cli.render import explain
from holdfast.cli.render.speaking import say

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holdfast.v1 import admin_pb2 as a
    from holdfast.v1 import group_pb2 as g

_COLUMNS: Final = (
    *("INSTANCE", "MEMBER", "CLIENT", "PRINCIPAL", "HOST", "EPOCH", "OWNS", "TARGET", "NOTE"),
)
_UNRELEASED: Final = "unreleased"


def show(groups: Iterable[a.ConsumerGroupDescribedGroup], *, behind: bool = False) -> None:
    """Print groups with an empty line between them. `behind`: others were printed before."""
    for number, each in enumerate(groups):
        if number or behind:
            say()
        for line in _head(each):
            say(line)
        if each.members:
            table(_COLUMNS, map(_member, each.members))


def _head(found: a.ConsumerGroupDescribedGroup) -> Iterator[str]:
    yield f"{found.group_id}: {found.group_state}, epoch {found.group_epoch}"
    behind = "" if found.assignment_epoch == found.group_epoch else ", which is not the newest"
    yield (
        f"heartbeat protocol, target of epoch {found.assignment_epoch}{behind}, assignor "
        f"{found.assignor_name or '-'}, {len(found.members)} members"
    )


def _member(member: a.ConsumerGroupDescribedMember) -> tuple[object, ...]:
    return (
        member.instance_id or "-",
        member.member_id,
        member.client_id,
        member.holdfast.principal or "-",
        member.client_host,
        member.member_epoch,
        _partitions(member.assignment),
        _partitions(member.target_assignment),
        _note(member),
    )


def _partitions(given: g.ConsumerGroupAssignment) -> str:
    places = ((each.topic, number) for each in given.topic_partitions for number in each.partitions)
    return explain.partitions(places) or "-"


def _note(member: a.ConsumerGroupDescribedMember) -> str:
    """Write what a member does now: whether it gives up, waits, or restarts."""
    extra = member.holdfast
    notes = ["restarting"] if extra.released else []
    if extra.revoking.topic_partitions:
        notes.append(f"has to give up {_partitions(extra.revoking)}")
    if extra.state == _UNRELEASED:
        notes.append("waits for partitions of others")
    return "; ".join(notes)

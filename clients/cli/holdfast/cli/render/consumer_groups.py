"""A group of the heartbeat protocol on the terminal: its epochs, and each member on its way."""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Final, TypeAlias

from holdfast.cli.options import table
from holdfast.cli.render import epochs, explain
from holdfast.cli.render.speaking import say

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from holdfast.cli.render.times import Now
    from holdfast.v1 import admin_pb2 as a
    from holdfast.v1 import group_pb2 as g

_COLUMNS: Final = (
    *("INSTANCE", "MEMBER", "CLIENT", "PRINCIPAL", "HOST", "EPOCH", "OWNS", "TARGET", "NOTE"),
)
_UNRELEASED: Final = "unreleased"
Place: TypeAlias = tuple[str, int]
"""A partition: its topic, and its number."""


def show(
    groups: Iterable[a.ConsumerGroupDescribedGroup], present: Now, *, behind: bool = False
) -> None:
    """Print groups with an empty line between them. `behind`: others were printed before."""
    for number, each in enumerate(groups):
        if number or behind:
            say()
        for line in (*_head(each), *_amiss(each)):
            say(line)
        if each.members:
            owners = dict(_owners(each.members))
            table(_COLUMNS, (_member(member, owners, each) for member in each.members))
        for line in epochs.all_of(each.holdfast.epochs, each.group_epoch, present):
            say(line)


def explain_epochs(group: a.ConsumerGroupDescribedGroup, present: Now) -> None:
    """Print how the last epochs of a group came about, the newest at the end."""
    if not group.holdfast.epochs:
        told = f"all epochs are in the event log: holdfast log tail --group {group.group_id}"
        say(f"{group.group_id}: {group.group_state}, of no epoch the causes are remembered; {told}")
    for line in epochs.all_of(group.holdfast.epochs, group.group_epoch, present):
        say(line)
    for line in _amiss(group):
        say(line)


def _head(found: a.ConsumerGroupDescribedGroup) -> Iterator[str]:
    yield f"{found.group_id}: {found.group_state}, epoch {found.group_epoch}"
    behind = "" if found.assignment_epoch == found.group_epoch else ", which is not the newest"
    yield (
        f"heartbeat protocol, target of epoch {found.assignment_epoch}{behind}, assignor "
        f"{found.assignor_name or '-'}, {len(found.members)} members"
    )


def _amiss(found: a.ConsumerGroupDescribedGroup) -> Iterator[str]:
    """Yield what a group with an assignor of its members' own may not expect."""
    extra = found.holdfast
    if extra.passed_over:
        yield (
            f"assignor {extra.passed_over} is of all members, and none of them computes: the group "
            f"is too large for it, so {found.assignor_name} of the service does"
        )
    if extra.left_out.topic_partitions:
        yield f"nobody owns {_partitions(extra.left_out)}: the assignor left them out"


def _owners(members: Iterable[a.ConsumerGroupDescribedMember]) -> Iterator[tuple[Place, str]]:
    """Yield each partition that somebody owns, or may still own, with its owner's name."""
    for member in members:
        name = member.instance_id or member.member_id
        yield from ((place, name) for place in _places(member.assignment))


def _member(
    member: a.ConsumerGroupDescribedMember,
    owners: Mapping[Place, str],
    group: a.ConsumerGroupDescribedGroup,
) -> tuple[object, ...]:
    return (
        member.instance_id or "-",
        member.member_id,
        member.client_id,
        member.holdfast.principal or "-",
        member.client_host,
        member.member_epoch,
        _partitions(member.assignment),
        _partitions(member.target_assignment),
        "; ".join((*_note(member, owners), *_unshared(member, group))),
    )


def _places(given: g.ConsumerGroupAssignment) -> Iterator[Place]:
    for each in given.topic_partitions:
        yield from ((each.topic, number) for number in each.partitions)


def _partitions(given: g.ConsumerGroupAssignment) -> str:
    return explain.partitions(_places(given)) or "-"


def _note(member: a.ConsumerGroupDescribedMember, owners: Mapping[Place, str]) -> list[str]:
    """Write what a member does now: whether it computes, gives up, waits, or restarts."""
    extra = member.holdfast
    notes = ["restarting"] if extra.released else []
    if extra.should_compute:
        notes.append("is to compute the target")
    if extra.revoking.topic_partitions:
        notes.append(f"has to give up {_partitions(extra.revoking)}")
    if extra.state == _UNRELEASED:
        notes.append(_awaited(member, owners))
    return notes


def _unshared(
    member: a.ConsumerGroupDescribedMember, group: a.ConsumerGroupDescribedGroup
) -> Iterator[str]:
    """Write what a member could run itself, if that is not what the group uses."""
    able = member.holdfast.client_assignors
    if able and not {group.assignor_name, group.holdfast.passed_over} & {
        each.name for each in able
    }:
        told = ", ".join(
            f"{each.name} {each.minimum_version}-{each.maximum_version}" for each in able
        )
        yield f"can run {told}, which not all members share"


def _awaited(member: a.ConsumerGroupDescribedMember, owners: Mapping[Place, str]) -> str:
    """Write which partitions a member waits for, and whose they are still."""
    own = set(_places(member.assignment))
    missing = [place for place in _places(member.target_assignment) if place not in own]
    of_others = sorted((owners[place], place) for place in missing if place in owners)
    told = [
        f"{explain.partitions(place for _, place in some)} of {name}"
        for name, some in groupby(of_others, key=itemgetter(0))
    ]
    return f"waits for {', '.join(told)}" if told else "takes the rest with its next heartbeat"

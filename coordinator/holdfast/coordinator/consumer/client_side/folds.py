"""How a group changes by who is to compute its target, and by who can (KIP-848).

A part of the fold of the heartbeat protocol (`consumer.evolve`); decides nothing.
"""

from __future__ import annotations

from typing import Final

from holdfast.coordinator.consumer.state import (
    Asked,
    ConsumerBody,
    ConsumerGroup,
    assignor_bytes,
)
from holdfast.coordinator.model.consumer_events import AssignmentRequested, MemberTarget
from holdfast.coordinator.model.errors import InvariantBroken
from holdfast.coordinator.model.events import Record
from holdfast.coordinator.model.ids import MemberId
from holdfast.coordinator.model.member_profile import ConsumerProfile
from holdfast.coordinator.model.state import Group
from holdfast.coordinator.structures.copies import with_one
from holdfast.coordinator.structures.pmap import PMap

_with_body: Final = with_one(Group, "body")


def asked(group: ConsumerGroup, event: AssignmentRequested, _record: Record) -> ConsumerGroup:
    """Note who is to compute the target; who has not done so in time is asked last from now on."""
    body = group.body
    if event.member_id not in body.members:
        raise InvariantBroken("S6", f"{event.member_id!r} is to compute, and is no member")
    if not body.assignment_epoch < event.epoch <= group.generation:
        raise InvariantBroken("KIP-848", f"nothing is to be computed for epoch {event.epoch}")
    body = body._replace(asked=Asked(event.member_id, event.epoch, event.assignor))
    if event.late in body.members:
        body = body._replace(late=(*others(body.late, event.late), event.late))
    return _with_body(group, body)


def unasked(body: ConsumerBody, member_id: MemberId) -> ConsumerBody:
    """Return the body without what was asked of a member whose process is gone."""
    if body.asked is not None and body.asked.member_id == member_id:
        body = body._replace(asked=None)
    if member_id in body.late:
        body = body._replace(late=others(body.late, member_id))
    return body


def swapped(body: ConsumerBody, old_id: MemberId, new_id: MemberId) -> ConsumerBody:
    """Return the body after a static member has swapped its process.

    If the old one was to compute and has not said that it stops, it may have died of that, and the
    new one may, too. It speaks first, and would be chosen each time: so it is asked last (INV-16).
    """
    was_asked = body.asked is not None and body.asked.member_id == old_id
    is_late = was_asked or old_id in body.late
    body = unasked(body, old_id)
    return body._replace(late=(*body.late, new_id)) if is_late else body


def overtaken(body: ConsumerBody) -> ConsumerBody:
    """Note that what the chosen member was given may be of the past."""
    if body.asked is None:
        return body
    return body._replace(asked=body.asked._replace(overtaken=True))


def others(member_ids: tuple[MemberId, ...], member_id: MemberId) -> tuple[MemberId, ...]:
    """Return the ids without this one."""
    return tuple([each for each in member_ids if each != member_id])


def says(target: MemberTarget) -> bool:
    """Return whether a target says anything; one that does not is not kept."""
    return bool(target.partitions or target.metadata or target.version)


def with_bytes(
    counts: PMap[str, int], old: ConsumerProfile, new: ConsumerProfile
) -> PMap[str, int]:
    """Return the bytes that are said for each assignor, with those of a member as it is now."""
    if old.client_assignors == new.client_assignors:
        return counts
    was, now = assignor_bytes(old), assignor_bytes(new)
    names = {*was, *now}
    total = {name: counts.get(name, 0) - was.get(name, 0) + now.get(name, 0) for name in names}
    return counts.changed({name: size or None for name, size in total.items()})

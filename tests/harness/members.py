"""Holds the table of what events do to members against the fold: both must tell the same.

Members of both types are looked at: one of the heartbeat protocol has a grant for each partition,
and an epoch that grows without an end of what was granted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast.coordinator.kernel.apply import replay
from holdfast.coordinator.model.membership import (
    ADVANCED,
    CONVERTED,
    ENDED,
    FREED,
    GRANTED,
    REPLACED,
    SUBSCRIBED,
    Line,
    line_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from holdfast.coordinator.classic.state import Member as ClassicMember
    from holdfast.coordinator.consumer.state import Member as ConsumerMember
    from holdfast.coordinator.model.events import Event, Record
    from holdfast.coordinator.model.state import Group, State

    Member = ClassicMember | ConsumerMember


class Step(NamedTuple):
    """A group's members before and after one event, and what the table tells of it."""

    old: Mapping[str, Member]
    new: Mapping[str, Member]
    line: Line
    event: Event
    generations: int

    def told(self, column: str) -> set[str]:
        """The ids in a column of the table."""
        return set(getattr(self.line, column)(self.event))

    def changed(self) -> set[str]:
        """Who is there before and after, and not the same."""
        return {
            each for each in self.new.keys() & self.old.keys() if self.new[each] != self.old[each]
        }


def contradictions(state: State, records: Iterable[Record]) -> list[str]:
    """Where the table tells something else of these records than their fold; `state`: before."""
    found = []
    for record in records:
        before = state.groups.get(record.group_id)
        state = replay(state, (record,))
        step = _step(before, state.groups.get(record.group_id), record.event)
        found += [f"{record.event}: {wrong}" for wrong in _wrong(step)]
    return found


def _step(before: Group[Any] | None, after: Group[Any] | None, event: Event) -> Step:
    classic = after is not None and after.group_type == "classic"
    generations = after.generation - before.generation if classic and before and after else 0
    old, new = before.body.members if before else {}, after.body.members if after else {}
    return Step(dict(old), dict(new), line_of(event), event, generations)


def _wrong(step: Step) -> Iterator[str]:
    if step.line.everyone == ENDED:
        if step.new:
            yield f"{sorted(step.new)} are still there"
        return
    yield from _who(step)
    yield from _which(step)
    yield from _converted(step) if step.line.everyone == CONVERTED else _grants(step)


def _converted(step: Step) -> Iterator[str]:
    """Whether each member has the token that it had, or has nothing that needs one (S13)."""
    for name, each in step.new.items():
        had = max((index for _, _, index in _all_indexes(step.old[name])), default=0)
        has = max((index for _, _, index in _all_indexes(each)), default=0)
        if has != had and _owns(each):
            yield f"the token of {name} was {had}, and is {has}"


def _all_indexes(member: Member) -> frozenset[tuple[str, int, int]]:
    """The grants of a member, with what it was asked to give up and still may own."""
    revoking = getattr(member, "revoking", ())
    return _indexes(member) | {
        (each.topic, number, index)
        for each in revoking
        for number, index in zip(each.partitions, each.granted, strict=True)
    }


def _owns(member: Member) -> bool:
    """Whether it owns anything, as far as the coordinator knows."""
    return bool(getattr(member, "owned", ()) or getattr(member, "assignment", b""))


def _who(step: Step) -> Iterator[str]:
    """Who came, who went, and who stays and was fenced."""
    old, new = step.old, step.new
    if new.keys() - old.keys() != step.told("came"):
        yield f"{sorted(new.keys() - old.keys())} came"
    if old.keys() - new.keys() != step.told("went"):
        yield f"{sorted(old.keys() - new.keys())} went"
    fenced = {each for each in step.changed() if new[each].released and not old[each].released}
    if fenced != step.told("fenced") - step.told("went"):
        yield f"{sorted(fenced)} are fenced"


def _which(step: Step) -> Iterator[str]:
    """Which members are others now, if not all may be, and what the table tells of them."""
    line, came, named = step.line, step.told("came"), step.told("named")
    if not line.everyone and not step.changed() <= step.told("fenced") | named:
        yield f"{sorted(step.changed())} changed"
    protocols, instance_id = line.protocols(step.event), line.instance_id(step.event)
    for member_id in (came | named if protocols is not None else came) & step.new.keys():
        supported = getattr(step.new[member_id].profile, "protocols", protocols)
        if supported != protocols:
            yield f"{member_id} supports {supported}"
    for member_id in (came | step.told("fenced")) & step.new.keys():
        if step.new[member_id].instance_id != instance_id:
            yield f"{member_id} is {step.new[member_id].instance_id}"


def _grants(step: Step) -> Iterator[str]:
    """Who was granted something by the event itself (S13), and whether a generation began."""
    had = {each: _indexes(member) for each, member in step.old.items()}
    granted = {
        name for name, each in step.new.items() if _indexes(each) - had.get(name, frozenset())
    }
    everyone = step.line.everyone
    meant = set(step.new) if everyone == GRANTED else set()
    may_be = step.told(_MAY_GRANT[step.line.kind]) if step.line.kind in _MAY_GRANT else meant
    if not meant <= granted <= may_be:
        yield f"{sorted(granted)} are granted something"
    if bool(step.generations) != (everyone == FREED):
        yield f"{step.generations} generations began"


_MAY_GRANT = {REPLACED: "came", ADVANCED: "named", SUBSCRIBED: "named"}
"""Who may be granted something by an event that does not grant to all."""


def _indexes(member: Member) -> frozenset[tuple[str, int, int]]:
    """The grants of a member: place and entry; of a classic one, its only one, if it has any."""
    granted = getattr(member, "granted_index", None)
    if granted is not None:
        return frozenset({("", 0, granted)} if granted else ())
    return frozenset(
        (each.topic, number, index)
        for each in member.owned  # type: ignore[union-attr]  # a member without one grant has these
        for number, index in zip(each.partitions, each.granted, strict=True)
    )

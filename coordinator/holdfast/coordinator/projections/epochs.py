"""How each epoch of a group of the heartbeat protocol came about, for people (`history`).

An epoch is told of as a rebalance is: it begins with the change that raised it, is over for the
coordinator when there is a target for it (`closed_ms`), and for the group when everybody owns its
part (`assigned_ms`), whether or not they have all heard of it. So members that are on the way are
counted: to look at all of them at each step would take long in a large group. One that the next
overtakes may have neither time. Who came or went is recorded before the epoch that it raises, so a
story without a number waits for that at the end of a history; whoever shows histories leaves such a
one out. Most epochs follow in the same entry. Who comes by an expression that was not looked up yet
waits longer, and is told of with the next epoch, whatever raises it. As bounded as rebalances are,
and total.
"""

from __future__ import annotations

from heapq import nsmallest
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final

from holdfast.coordinator.groups.assignment_bytes import partitions, written
from holdfast.coordinator.groups.usage import of_texts
from holdfast.coordinator.model.consumer_events import (
    AssignmentRequested,
    EpochRaised,
    MemberSubscribed,
    TargetStored,
)
from holdfast.coordinator.model.ids import TopicPartition
from holdfast.coordinator.model.membership import line_of
from holdfast.coordinator.projections.history import (
    REASON_BYTES_MAX,
    Parted,
    Rebalance,
    cut,
    fitting,
    weight_of_parted,
)
from holdfast.coordinator.projections.stories import (
    DEPARTURES,
    LISTED_MAX,
    NAMES_BYTES_MAX,
    PARTED_BYTES_MAX,
    PARTED_MAX,
    kept,
    listed,
    with_last,
    with_moves,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holdfast.coordinator.groups.group_type import GroupType
    from holdfast.coordinator.model.events import Event, Record
    from holdfast.coordinator.model.ids import MemberId, TopicPartitions
    from holdfast.coordinator.model.state import Group
    from holdfast.coordinator.projections.history import History

COMPARED_MAX: Final = 16_384
"""Partitions of changed targets that are compared one by one; of more only members count."""


def noted(
    history: History, kind: GroupType[Any], before: Group[Any], record: Record, after: Group[Any]
) -> History:
    """Return the history of a group of the heartbeat protocol after one of its records."""
    match event := record.event:
        case EpochRaised():
            history = _raised(_waiting(history, kind, before, record), event, record.cause.rule)
        case TargetStored():
            history = _targeted(history, kind, event, (before, after), record.log_time_ms)
        case AssignmentRequested():
            history = _relieved(history, kind, event, before)
        case MemberSubscribed():
            history = _subscribed(_waiting(history, kind, before, record), event)
        case _:
            history = _went(history, kind, before, record)
    return _converged(history, record, _more_on_the_way(kind, before, record.event, after))


def _parts(history: History) -> tuple[History, History]:
    """Return the epochs of a history, and what waits for the next one: one story or none."""
    count = len(history) - 1 if history and not history[-1].generation else len(history)
    return history[:count], history[count:]


def _waiting(history: History, kind: GroupType[Any], before: Group[Any], record: Record) -> History:
    """Return the history with a story at its end that the next epoch will be, if one comes."""
    known, waiting = _parts(history)
    if waiting and waiting[0].at.index == record.position.index:
        return history
    begun = Rebalance(
        number=known[-1].number + 1 if known else 1,
        reason="",
        member_id="",
        at=record.position,
        log_time_ms=record.log_time_ms,
        wall_time_ms=record.wall_time_ms,
        command=cut(record.cause.command),
        principal=cut(record.principal),
        members=len(kind.members(before)),
        from_generation=before.generation,
    )
    return (*known, _with_earlier(begun, waiting))


def _with_earlier(begun: Rebalance, waiting: History) -> Rebalance:
    """Return a story with who came or went in earlier entries that have raised no epoch."""
    if not waiting or not waiting[0].came + waiting[0].went:
        return begun
    (earlier,) = waiting
    return begun._replace(
        members=earlier.members,
        came=earlier.came,
        went=earlier.went,
        changes=earlier.changes,
        parted=earlier.parted,
    )


def _raised(history: History, event: EpochRaised, rule: str) -> History:
    """Give what waits its number and cause; what parted before its target is its matter, too."""
    *older, last = history
    previous = older[-1] if older else None
    parted = (*previous.parted, *last.parted) if previous else last.parted
    if previous is not None and previous.parted:
        older[-1] = previous._replace(parted=())
    raised = last._replace(
        generation=event.epoch,
        reason=cut(event.cause, REASON_BYTES_MAX),
        rule=cut(rule),
        on_the_way=previous.on_the_way if previous else 0,
        parted=fitting(islice(parted, PARTED_MAX), weight_of_parted, PARTED_BYTES_MAX),
    )
    return (*kept(tuple(older)), raised)


def _relieved(
    history: History, kind: GroupType[Any], event: AssignmentRequested, before: Group[Any]
) -> History:
    """Note that a member was asked for the target in vain; the choice itself is told by nothing."""
    known, waiting = _parts(history)
    late = kind.members(before).get(event.late)
    if late is None or not known or known[-1].generation != event.epoch:
        return history
    words = f"{kind.identify(late).name}: {event.problem}" if event.problem else ""
    told = known[-1]._replace(relieved=known[-1].relieved + 1, problem=cut(words, REASON_BYTES_MAX))
    return (*with_last(known, told), *waiting)


def _subscribed(history: History, event: MemberSubscribed) -> History:
    """Note a member that comes, or that says what it wants; it causes what follows, if anything."""
    last = history[-1]._replace(
        member_id=cut(event.member_id),
        instance_id=cut(event.instance_id) if event.instance_id else None,
    )
    if event.joined:
        name = event.instance_id or event.member_id
        last = last._replace(came=last.came + 1, changes=listed(last, (name,), "joined"))
    return with_last(history, last)


def _went(history: History, kind: GroupType[Any], before: Group[Any], record: Record) -> History:
    """Note members that leave, are removed, or expire; a swap of processes is none of that."""
    line = line_of(record.event)
    how = DEPARTURES.get(line.kind)
    if how is None:
        return history
    members = kind.members(before)
    gone = [each for each in line.went(record.event) if each in members]
    names = [kind.identify(members[each]).name for each in gone[:LISTED_MAX]]
    history = _waiting(history, kind, before, record)
    last = history[-1]
    first = gone[0] if gone else ""
    went = last._replace(
        member_id=cut(first),
        instance_id=kind.identify(members[first]).instance_id if gone else None,
        went=last.went + len(gone),
        changes=listed(last, names, how),
        parted=_parted(last.parted, kind, before, gone),
    )
    return with_last(history, went)


def _parted(
    known: tuple[Parted, ...], kind: GroupType[Any], group: Group[Any], gone: list[MemberId]
) -> tuple[Parted, ...]:
    members = kind.members(group)
    more = [
        Parted(cut(kind.identify(members[each]).name), written(meant))
        for each in gone[:PARTED_MAX]
        if (meant := kind.meant(group, each))
    ]
    return fitting(islice(chain(known, more), PARTED_MAX), weight_of_parted, PARTED_BYTES_MAX)


def _targeted(
    history: History,
    kind: GroupType[Any],
    event: TargetStored,
    states: tuple[Group[Any], Group[Any]],
    now_ms: int,
) -> History:
    """Note what a target moves, compared with the one before; `states`: of the group around it."""
    before, after = states
    known, waiting = _parts(history)
    if not known or known[-1].generation != event.epoch:
        return history  # it began before this was told of
    last, members = known[-1], kind.members(after)
    changed = [
        (kind.identify(members[each.member_id]).name, each)
        for each in event.targets
        if each.member_id in members
    ]
    names = map(cut, nsmallest(LISTED_MAX, (name for name, _ in changed)))
    told = last._replace(
        closed_ms=now_ms,
        reassigned=len(changed),
        reassigned_names=fitting(names, lambda name: of_texts((name,)), NAMES_BYTES_MAX),
        parted=(),
    )
    had = [(name, kind.meant(before, each.member_id)) for name, each in changed]
    has = [(name, each.partitions) for name, each in changed]
    if sum(len(topic.partitions) for _, all_ in (*had, *has) for topic in all_) <= COMPARED_MAX:
        owned = dict(chain(_of_parted(last.parted), _owners(had)))
        told = with_moves(told, owned, dict(_owners(has)))
    return (*with_last(known, told), *waiting)


def _owners(
    given: Iterable[tuple[str, tuple[TopicPartitions, ...]]],
) -> Iterator[tuple[TopicPartition, str]]:
    for name, topics in given:
        for topic, numbers in topics:
            yield from ((TopicPartition(topic, number), name) for number in numbers)


def _of_parted(parted: Iterable[Parted]) -> Iterator[tuple[TopicPartition, str]]:
    for each in parted:
        yield from ((place, each.name) for place in partitions(each.assignment) or ())


def _more_on_the_way(
    kind: GroupType[Any], before: Group[Any], event: Event, after: Group[Any]
) -> int:
    """Return by how many members more are on the way after an event than before it."""
    line = line_of(event)
    touched = {*line.came(event), *line.went(event), *line.fenced(event), *line.named(event)}
    if isinstance(event, TargetStored):
        touched.update(each.member_id for each in event.targets)
    were = sum(kind.move(before, each) is not None for each in touched)
    return sum(kind.move(after, each) is not None for each in touched) - were


def _converged(history: History, record: Record, more: int) -> History:
    """Note that everybody owns its part of the newest target; `more`: are on the way to it now."""
    known, waiting = _parts(history)
    if not known:
        return history
    last = known[-1]._replace(on_the_way=max(0, known[-1].on_the_way + more))
    if last.closed_ms and not last.assigned_ms and not last.on_the_way:
        last = last._replace(assigned_ms=record.log_time_ms)
    return history if last == known[-1] else (*with_last(known, last), *waiting)


def is_told(event: Event) -> bool:
    """Return whether an event belongs to the story though it does nothing to members."""
    return isinstance(event, EpochRaised | AssignmentRequested | TargetStored)

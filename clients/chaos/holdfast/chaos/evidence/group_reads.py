"""What members and operators were told of a group, judged by the order that its log has.

The log gives the one order of all changes to a group, so there is no order to search for: each
answer must be true of the group after some record, no earlier than any record answered before its
call was sent, and no later than any record asked for by the time of the answer. Since
a group only moves forward, taking the earliest record that fits for each call, in the order in
which calls were sent, finds a fit for all if there is one. Knows no invariant.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from holdfast.chaos.evidence.calls import NEVER, Call
from holdfast.chaos.evidence.heartbeats.group import RELEASED, Standing
from holdfast.chaos.evidence.log_view import (
    NOTHING,
    TOKEN_SPAN,
    View,
    place,
    seconds,
    views,
)
from holdfast.chaos.history.happenings import Recorded

Fits = Callable[[View], bool]


class Answered(NamedTuple):
    """A call that says something of the group, and the check whether that is true of a view."""

    call: Call
    fits: Fits | None
    least: int
    """How many records it must have seen: up to the position that it was given."""


class Misfit(NamedTuple):
    """An answer that is true of no state that it may have seen."""

    at_us: int
    what: str


class Log:
    """One group's records, the views between them, and the earliest moment of each."""

    def __init__(self, records: Sequence[Recorded], calls: Iterable[Call]) -> None:
        self.views = [NOTHING, *(after for _, _, after in views(records))]
        self.places = [place(record) for record in records]
        self._begins = _begins(records, calls)
        self.whole = not records or records[0].kind == "GroupCreated"

    def up_to(self, position: tuple[int, int]) -> int:
        """Count the records at or before a position."""
        return bisect_right(self.places, position)

    def most(self, heard_us: int) -> int:
        """Count the records that can exist at a moment: none before it was asked for."""
        return bisect_right(self._begins, heard_us)


def _begins(records: Sequence[Recorded], calls: Iterable[Call]) -> list[int]:
    """Return the earliest moment at which each record can exist; non-decreasing."""
    sent: dict[str, int] = {}
    for call in calls:
        if call.request_id:
            sent[call.request_id] = min(call.start_us, sent.get(call.request_id, NEVER))
    found, latest = [], 0
    for record in records:
        latest = max([latest, *(sent[each] for each in record.request_ids if each in sent)])
        found.append(latest)
    return found


def misfits(log: Log, calls: Iterable[Call]) -> tuple[int, list[Misfit]]:
    """Judge all answers; return how many there were, and those that fit nowhere."""
    told = [each for call in calls for each in _answers(log, call)]
    events = [(each.call.start_us, False, number) for number, each in enumerate(told)]
    events += [(each.call.end_us, True, number) for number, each in enumerate(told)]
    chosen: dict[int, int] = {}
    floor, found = 0, []
    for _, heard, number in sorted(events):
        each = told[number]
        if heard:
            floor = max(floor, chosen.get(number, 0))
        else:
            least = max(each.least, 0 if _stale(each.call) else floor)
            fit = _earliest(log, each, least)
            if fit is None:
                found.append(Misfit(each.call.end_us, _sentence(log, each, least)))
            elif not _stale(each.call):
                chosen[number] = fit
    return len(told), found


def _stale(call: Call) -> bool:
    return bool(call.invoked.arguments.get("stale_ok"))


def _earliest(log: Log, each: Answered, least: int) -> int | None:
    most = log.most(each.call.end_us)
    for count in range(least, most + 1):
        if each.fits is None or each.fits(log.views[count]):
            return count
    return None


def _sentence(log: Log, each: Answered, least: int) -> str:
    told = {key: each.call.result[key] for key in _TOLD if key in each.call.result}
    view = log.views[min(least, len(log.views) - 1)]
    return (
        f"{each.call} of {each.call.group!r}, sent at {seconds(each.call.start_us)}, was answered "
        f"{told or each.call.outcome}, which was so at no moment up to its answer; when it was "
        f"sent, it was known that index {view.index} had been reached: {view.state}, generation "
        f"{view.generation}, members {sorted(view.members)}"
    )


_TOLD: Final = ("state", "generation", "members", "member_id", "version", "position")


# --- what an answer says ---


def _answers(log: Log, call: Call) -> list[Answered]:
    """Return what an answer says: its effect and its content may be true at different moments."""
    if not call.alive:
        return []
    found = []
    if call.position is not None and not _stale(call):
        found.append(Answered(call, None, log.up_to(call.position)))
    fits = _READS.get(call.op)
    if fits is not None:
        found.append(Answered(call, fits(call), 0))
    return found


def _described(call: Call) -> Fits:
    result = call.result
    members = {(name, instance or "") for name, instance in result.get("members", ())}

    def fits(view: View) -> bool:
        if result.get("state", view.state) != view.state:
            return False
        if not view.members and not members:
            return True  # also a group that is not there, of which nothing else is told
        known = {(each.member_id, each.instance_id) for each in view.members.values()}
        return known == members and result.get("generation", view.generation) == view.generation

    return fits


def _joined(call: Call) -> Fits:
    member_id, generation = call.result.get("member_id"), call.result.get("generation")

    def fits(view: View) -> bool:
        return member_id in view.members and _generation(view, member_id) == generation

    return fits


def _generation(view: View, member_id: Any) -> int:  # noqa: ANN401 - as the history has it
    """Return the generation that a member is in: its own epoch, in the heartbeat protocol."""
    if view.beats is None:
        return view.generation
    return view.beats.standings.get(member_id, Standing()).epoch


def _synced(call: Call) -> Fits:
    named = _named(call)
    told = call.result.get("partitions")
    partitions = None if told is None else {(topic, number) for topic, number in told}

    def fits(view: View) -> bool:
        if not named(view):
            return False
        return partitions is None or _owned(view, call.member_id) == partitions

    return fits


def _owned(view: View, member_id: str) -> set[tuple[str, int]]:
    if view.beats is None:
        return set(view.assigned.get(member_id, ()))
    return set(view.beats.standings.get(member_id, Standing()).owned)


def _named(call: Call) -> Fits:
    """Check member and generation; a release is accepted in any generation (S12).

    That a process has stopped is true in each.
    """
    asked = call.invoked.arguments
    generation: Any = None if asked.get("release") else asked.get("generation")

    def fits(view: View) -> bool:
        known = call.member_id in view.members
        return known and generation in {None, _generation(view, call.member_id)}

    return fits


def _beaten(call: Call) -> Fits:
    """Check the epoch that a heartbeat is answered, and what it assigns, each with its token."""
    epoch = int(call.result.get("generation", 0))
    told = call.result.get("grants")
    grants = (
        None if told is None else {(t, number): token % TOKEN_SPAN for t, number, token in told}
    )

    def fits(view: View) -> bool:
        standings = view.beats.standings if view.beats is not None else {}
        standing = standings.get(call.member_id)
        if standing is None or epoch == RELEASED:
            return epoch < 0
        owned = {name: grant.index for name, grant in standing.owned.items()}
        return bool(standing.epoch == epoch and (grants is None or grants == owned))

    return fits


def _told_of_beats(call: Call) -> Fits:
    """Check what is described of a group of the heartbeat protocol."""
    result = call.result
    members = {tuple(each) for each in result.get("members", ())}

    def fits(view: View) -> bool:
        beats = view.beats
        if beats is None or result.get("state") != view.state:
            return False
        known = {
            (each.member_id, each.instance_id, beats.standings[each.member_id].epoch)
            for each in view.members.values()
            if each.member_id in beats.standings
        }
        epochs = (view.generation, beats.target_epoch)
        told = (result.get("generation"), result.get("target_epoch"))
        return bool(known == members and epochs == told)

    return fits


_READS: Final[dict[str, Callable[[Call], Fits]]] = {
    "DescribeGroups": _described,
    "JoinGroup": _joined,
    "SyncGroup": _synced,
    "Heartbeat": _named,
    "ConsumerGroupHeartbeat": _beaten,
    "ConsumerGroupDescribe": _told_of_beats,
}


def of_groups(calls: Iterable[Call]) -> dict[str, list[Call]]:
    """Sort calls by the group that they are about."""
    found: dict[str, list[Call]] = defaultdict(list)
    for call in calls:
        if call.group:
            found[call.group].append(call)
    return dict(found)

"""When each member id was fenced in its group, by the log, and by when that can be known.

A member of the heartbeat protocol makes its id itself and comes back under it, so an id may have
more than one life, and as many fences. Without a log only swaps are found, by what was granted.
Knows no invariant.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from holdfast.chaos.evidence.calls import NEVER
from holdfast.chaos.evidence.commits import is_exact, told_of
from holdfast.chaos.evidence.log_view import REMOVALS, TOKEN_SPAN, records_of, removed_by
from holdfast.chaos.history.happenings import Granted, Happening, Recorded


class Fence(NamedTuple):
    """A member id's end in the log.

    `from_us` and `by_us` are equal in the simulator, where records are seen as they are applied.
    """

    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody needs here
    from_us: int
    """The commit was not earlier, as far as is known."""
    by_us: int
    """The commit was surely earlier; NEVER: nothing proves it."""
    kind: str
    """The name of the event that ended it."""
    again_us: int = NEVER
    """When the same id became a member once more, at the earliest; NEVER: it did not."""
    again_index: int = NEVER
    """By which entry."""

    def ends(self, token: int) -> bool:
        """Return whether what was granted under this token ended with this life at the latest."""
        return self.again_us == NEVER or token % TOKEN_SPAN <= self.index


Fences: TypeAlias = Mapping[tuple[str, str], Sequence[Fence]]
"""The ends of each member id, by (group, member id), in the order of the log."""


EVERY_FENCE: Final = frozenset(
    {*REMOVALS, "InstanceReleased", "StaticMemberReplaced", "GenerationStarted"}
)
_RETURNS: Final = frozenset({"MemberSubscribed", "MemberAdvanced"})
NOT_LEASES: Final = frozenset({"StaticMemberReplaced", "MembersRemoved"})
"""What takes ownership away at once, without waiting for a lease (S12)."""


def fences(history: Sequence[Happening], kinds: Iterable[str] = EVERY_FENCE) -> Fences:
    """Find the ends of member ids."""
    found: dict[tuple[str, str], list[Fence]] = defaultdict(list)
    wanted, records = frozenset(kinds), records_of(history)
    if not records:
        return _fences_by_grants(history)
    exact = is_exact(history)
    told, places = told_of(history), _Places()
    for record in records:
        places.follow(record)
        if record.kind == "StaticMemberReplaced":
            known = found.get((record.group, record.fields["new_member_id"]), [])
            _with_another_place(known, record, places)
        if record.kind in _RETURNS:
            _live_again(found.get((record.group, record.fields["member_id"]), []), record)
        if record.kind not in wanted:
            continue
        told_us = told.proved_by(record.index)
        by_us = min(told_us, record.at_us) if exact else told_us
        fence = Fence(record.index, min(record.at_us, by_us), by_us, record.kind)
        for member_id in removed_by(record.kind, record.fields):
            known = found[record.group, member_id]
            if not known or known[-1].again_us != NEVER:
                known.append(fence)
    return found


def _live_again(ended: list[Fence], record: Recorded) -> None:
    """Begin another life: a member joins anew, or one that had said that it stops comes back."""
    if not ended or ended[-1].again_us != NEVER:
        return
    if record.fields.get("joined") or ended[-1].kind == "InstanceReleased":
        ended[-1] = ended[-1]._replace(again_us=record.at_us, again_index=record.index)


class _Places:
    """Who holds each instance id, and when the last place of that name was given up."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, str], str] = {}
        self._given_up: dict[tuple[str, str], int] = {}

    def follow(self, record: Recorded) -> None:
        """Take in one record."""
        group, fields = record.group, record.fields
        if record.kind in {"MemberJoined", "MemberSubscribed"} and fields["instance_id"]:
            self._held[group, fields["instance_id"]] = fields["member_id"]
        elif record.kind == "StaticMemberReplaced":
            self._held[group, fields["instance_id"]] = fields["new_member_id"]
        elif record.kind in REMOVALS or record.kind == "GroupDeleted":
            gone = set(removed_by(record.kind, fields))
            own = [place for place in self._held if place[0] == group]
            for place in own:
                if record.kind == "GroupDeleted" or self._held[place] in gone:
                    del self._held[place]
                    self._given_up[place] = record.index

    def given_up(self, group: str, instance_id: str) -> int:
        """Return the entry by which a place was last left, or taken from its holder; 0: never."""
        return self._given_up.get((group, instance_id), 0)


def _with_another_place(ended: list[Fence], record: Recorded, places: _Places) -> None:
    """Begin another life with a swap, if the place of which the fence was is no more.

    A place remembers who had it; with a removal, a leave or an expiry that is forgotten, as in
    Kafka. Who was replaced before that, or was removed by it, is a process like any other when it
    comes back.
    """
    if not ended or ended[-1].again_us != NEVER:
        return
    fence, given_up = ended[-1], places.given_up(record.group, record.fields["instance_id"])
    if given_up > fence.index or (given_up == fence.index and fence.kind in REMOVALS):
        ended[-1] = ended[-1]._replace(again_us=record.at_us, again_index=record.index)


def fence_of_right(fenced: Fences, group: str, member_id: str, token: int) -> Fence | None:
    """Return the end of the life in which a member was granted something; None: it has not ended.

    A grant that came after an end is of the next life.
    """
    return next((each for each in fenced.get((group, member_id), ()) if each.ends(token)), None)


def _fences_by_grants(history: Iterable[Happening]) -> Fences:
    """Find swaps without a log: an instance is granted to another member id (S12)."""
    found: dict[tuple[str, str], list[Fence]] = {}
    holders: dict[tuple[str, str], Granted] = {}
    for each in history:
        if not isinstance(each, Granted) or not each.instance_id:
            continue
        before = holders.setdefault((each.group, each.instance_id), each)
        if each.token > before.token:
            holders[each.group, each.instance_id] = each
            if each.member_id != before.member_id:
                index = each.token % TOKEN_SPAN
                fence = Fence(index, each.at_us, each.at_us, "StaticMemberReplaced")
                found.setdefault((each.group, before.member_id), [fence])
    return found

"""The committed log as the checkers read it: who is in a group, since when, who was thrown out.

This is a second, much smaller fold than the coordinator's own, written from the rules alone: a
judge that used `evolve` would share its mistakes. It is total: what cannot be true is folded as far
as it makes sense, since finding it is the checkers' business.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from holdfast.chaos.evidence.calls import NEVER
from holdfast.chaos.evidence.memo import memo
from holdfast.chaos.history.happenings import (
    Applied,
    Began,
    Fields,
    Granted,
    Happening,
    Recorded,
    Returned,
    Watched,
)

TOKEN_SPAN: Final = 1 << 48
"""A fencing token is recovery number times this, plus the index of its grant (S13)."""

PREPARING: Final = "PreparingRebalance"
COMPLETING: Final = "CompletingRebalance"
STABLE: Final = "Stable"
EMPTY: Final = "Empty"
DEAD: Final = "Dead"


class Known(NamedTuple):
    """A member as the log has it. `offers`: protocols, each with its topics or None."""

    member_id: str
    instance_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    offers: Mapping[str, tuple[str, ...] | None]

    @property
    def identity(self) -> str:
        """What an assignment sticks to: the instance, or else the member id."""
        return self.instance_id or self.member_id


class View(NamedTuple):
    """A group after one of its records; the values are never changed."""

    index: int = 0  # type: ignore[assignment]  # hides tuple.index, which nobody needs here
    state: str = DEAD
    generation: int = 0
    members: Mapping[str, Known] = {}
    protocol: str = ""
    assigned: Mapping[str, tuple[tuple[str, int], ...]] = {}


NOTHING: Final = View()
"""A group that is not there."""


@memo
def records_of(history: Iterable[Happening]) -> list[Recorded]:
    """All records, in the order of the history."""
    return [happening for happening in history if isinstance(happening, Recorded)]


def by_group(records: Iterable[Recorded]) -> dict[str, list[Recorded]]:
    """Each group's records, in the order given; "" has the cluster's own."""
    found: dict[str, list[Recorded]] = defaultdict(list)
    for record in records:
        found[record.group].append(record)
    return dict(found)


def views(records: Iterable[Recorded]) -> Iterator[tuple[View, Recorded, View]]:
    """Go through one group's records: what was before each, the record, and what is after it."""
    view = NOTHING
    for record in records:
        after = fold(view, record)
        yield view, record, after
        view = after


def fold(view: View, record: Recorded) -> View:
    """The group after one record."""
    fields = record.fields
    changed = _changed(view, record.kind, fields)
    return changed._replace(index=record.index)


def _changed(view: View, kind: str, fields: Fields) -> View:
    if kind in _REMOVALS:
        return _without(view, removed_by(kind, fields))
    change = _CHANGES.get(kind)
    return change(view, fields) if change else view


def _joined(view: View, fields: Fields) -> View:
    known = view.members.get(fields["member_id"])
    member = _member(fields, fields["member_id"], known)
    return view._replace(members={**view.members, member.member_id: member})


def _generation_started(view: View, fields: Fields) -> View:
    left = _without(view, fields["removed"])
    name = str(fields["protocol_name"])
    return left._replace(state=COMPLETING, generation=fields["generation"], protocol=name)


def _emptied(view: View, fields: Fields) -> View:
    del view
    return View(state=EMPTY, generation=fields["generation"])


def assigned_by(fields: Fields) -> dict[str, tuple[tuple[str, int], ...]]:
    """Who got what, of an `AssignmentStored`."""
    return {
        each["member_id"]: tuple((topic, number) for topic, number in each["partitions"])
        for each in fields["assignments"]
    }


def _member(fields: Fields, member_id: str, known: Known | None) -> Known:
    instance_id = fields.get("instance_id") or (known.instance_id if known else "")
    return Known(
        member_id,
        instance_id,
        fields["session_timeout_ms"],
        fields["rebalance_timeout_ms"],
        {
            each["name"]: None if each["topics"] is None else tuple(each["topics"])
            for each in fields["protocols"]
        },
    )


def _replaced(view: View, fields: Fields) -> View:
    old, new = fields["old_member_id"], fields["new_member_id"]
    members = {name: each for name, each in view.members.items() if name != old}
    members[new] = _member(fields, new, view.members.get(old))
    assigned = dict(view.assigned)
    if old in assigned:
        assigned[new] = assigned.pop(old)
    return view._replace(members=members, assigned=assigned)


def _without(view: View, gone: Sequence[str]) -> View:
    members = {name: each for name, each in view.members.items() if name not in gone}
    return view._replace(members=members)


_REMOVALS: Final = frozenset({"MembersLeft", "MembersRemoved", "MemberExpired", "MemberRefused"})


def removed_by(kind: str, fields: Fields) -> list[str]:
    """The member ids that may never be used again after such an event (S12, K-D5, K-I10)."""
    match kind:
        case "MembersLeft" | "MembersRemoved":
            return list(fields["member_ids"])
        case "MemberExpired" | "MemberRefused" | "InstanceReleased":
            return [fields["member_id"]]
        case "StaticMemberReplaced":
            return [fields["old_member_id"]]
        case "GenerationStarted":
            return list(fields["removed"])
    return []


_CHANGES: Final[Mapping[str, Callable[[View, Fields], View]]] = {
    "GroupCreated": lambda _view, _fields: View(state=EMPTY),
    "GroupDeleted": lambda _view, _fields: NOTHING,
    "MemberJoined": _joined,
    "MemberUpdated": _joined,
    "StaticMemberReplaced": _replaced,
    "RebalanceStarted": lambda view, _fields: view._replace(state=PREPARING),
    "GenerationStarted": _generation_started,
    "GroupEmptied": _emptied,
    "AssignmentStored": lambda view, fields: view._replace(
        state=STABLE, assigned=assigned_by(fields)
    ),
}


# --- fences ---


class Fence(NamedTuple):
    """A member id's end in the log: at which index, when, and by what.

    The commit was not before `from_us`, as far as is known, and surely before `by_us`; the two are
    one in the simulator, where records are seen as they are applied. NEVER: nothing proves it.
    """

    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody needs here
    from_us: int
    by_us: int
    kind: str


EVERY_FENCE: Final = frozenset(
    {*_REMOVALS, "InstanceReleased", "StaticMemberReplaced", "GenerationStarted"}
)
NOT_LEASES: Final = frozenset({"StaticMemberReplaced", "MembersRemoved"})
"""What takes ownership away at once, without waiting for a lease (S12)."""


def fences(
    history: Sequence[Happening], kinds: Iterable[str] = EVERY_FENCE
) -> dict[tuple[str, str], Fence]:
    """The fenced member ids, by (group, member id)."""
    found: dict[tuple[str, str], Fence] = {}
    wanted, records = frozenset(kinds), records_of(history)
    if not records:
        return _fences_by_grants(history)
    exact = is_exact(history)
    commits = commits_of(history)
    for record in records:
        if record.kind not in wanted:
            continue
        proved_us = commits.proved_by(record.index)
        by_us = min(proved_us, record.at_us) if exact else proved_us
        fence = Fence(record.index, min(record.at_us, by_us), by_us, record.kind)
        for member_id in removed_by(record.kind, record.fields):
            found.setdefault((record.group, member_id), fence)
    return found


def is_exact(history: Iterable[Happening]) -> bool:
    """Whether a record's time is when it was applied, not the earliest that is possible."""
    return not any(isinstance(each, Began) and each.source == "cluster" for each in history)


def _fences_by_grants(history: Iterable[Happening]) -> dict[tuple[str, str], Fence]:
    """Without a log only swaps can be told: an instance is granted to another member id (S12)."""
    found: dict[tuple[str, str], Fence] = {}
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
                found.setdefault((each.group, before.member_id), fence)
    return found


class Commits:
    """By when each index had surely been committed: somebody was told, granted or shown it."""

    def __init__(self, history: Iterable[Happening]) -> None:
        earliest: dict[int, int] = {}
        for each in history:
            index = _shows(each)
            if index:
                earliest.setdefault(index, each.at_us)
        self._indexes = sorted(earliest)
        self._by_us: list[int] = []
        least = NEVER
        for index in reversed(self._indexes):
            least = min(least, earliest[index])
            self._by_us.append(least)
        self._by_us.reverse()

    def proved_by(self, index: int) -> int:
        """The moment; NEVER if nothing proves it."""
        at = bisect_left(self._indexes, index)
        return self._by_us[at] if at < len(self._indexes) else NEVER


@memo
def commits_of(history: Iterable[Happening]) -> Commits:
    """What a history proves about commits."""
    return Commits(history)


def _shows(each: Happening) -> int:
    """Up to which index a happening proves that the log was committed; 0: it does not tell."""
    if isinstance(each, Granted):
        return each.token % TOKEN_SPAN
    if isinstance(each, Watched | Applied):
        return each.index
    if isinstance(each, Returned) and each.outcome == "ok" and each.result.get("position"):
        return int(each.result["position"][0])
    return 0


def seconds(at_us: int) -> str:
    """A moment for people."""
    return f"{at_us / 1_000_000:.3f} s"


def place(record: Recorded) -> tuple[int, int]:
    """A record's position."""
    return record.index, record.ordinal


def label(partition: Sequence[Any]) -> str:
    """A partition for people: group, topic and number."""
    group, topic, number = partition
    return f"{topic}/{number} of {group!r}"

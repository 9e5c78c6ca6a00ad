"""The committed log as the checkers read it: who is in a group, with what, and in which state.

This is a second, much smaller fold than the coordinator's own, written from the rules alone: a
judge that used `evolve` would share its mistakes. It is total: an impossible record is folded as
far as it makes sense, since the checkers are to find it. Knows no invariant.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from holdfast.chaos.evidence.memo import memo
from holdfast.chaos.history.happenings import Fields, Happening, Recorded

TOKEN_SPAN: Final = 1 << 48
"""A fencing token is recovery number times this, plus the index of its grant (S13)."""

PREPARING: Final = "PreparingRebalance"
COMPLETING: Final = "CompletingRebalance"
STABLE: Final = "Stable"
EMPTY: Final = "Empty"
DEAD: Final = "Dead"


class Known(NamedTuple):
    """A member as the log has it."""

    member_id: str
    instance_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    offers: Mapping[str, tuple[str, ...] | None]
    """Its protocols, each with its topics; None: the topics cannot be read."""

    @property
    def identity(self) -> str:
        """The identity that an assignment sticks to: the instance id, or else the member id."""
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
    """Return all records, in the order of the history."""
    return [happening for happening in history if isinstance(happening, Recorded)]


def by_group(records: Iterable[Recorded]) -> dict[str, list[Recorded]]:
    """Sort records by group, in the order given; "" has the cluster's own."""
    found: dict[str, list[Recorded]] = defaultdict(list)
    for record in records:
        found[record.group].append(record)
    return dict(found)


def views(records: Iterable[Recorded]) -> Iterator[tuple[View, Recorded, View]]:
    """Yield, for each of a group's records, the view before it, the record, the view after it."""
    view = NOTHING
    for record in records:
        after = fold(view, record)
        yield view, record, after
        view = after


def fold(view: View, record: Recorded) -> View:
    """Return the group after one record."""
    fields = record.fields
    changed = _changed(view, record.kind, fields)
    return changed._replace(index=record.index)


def _changed(view: View, kind: str, fields: Fields) -> View:
    if kind in REMOVALS:
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
    """Return the partitions that each member got by an `AssignmentStored`."""
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


REMOVALS: Final = frozenset({"MembersLeft", "MembersRemoved", "MemberExpired", "MemberRefused"})


def removed_by(kind: str, fields: Fields) -> list[str]:
    """Return the member ids that may never be used again after an event (S12, K-D5, K-I10)."""
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


def seconds(at_us: int) -> str:
    """Format a moment in seconds, for people."""
    return f"{at_us / 1_000_000:.3f} s"


def place(record: Recorded) -> tuple[int, int]:
    """Return a record's position."""
    return record.index, record.ordinal


def label(partition: Sequence[Any]) -> str:
    """Format a partition for people: group, topic and number."""
    group, topic, number = partition
    return f"{topic}/{number} of {group!r}"

"""The committed log as the checkers read it: who is in a group, with what, and in which state.

This is a second, much smaller fold than the coordinator's own, written from the rules alone: a
judge that used `evolve` would share its mistakes. It is total: an impossible record is folded as
far as it makes sense, since the checkers are to find it. Knows no invariant.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from holdfast.chaos.evidence.heartbeats import group as heartbeat_group
from holdfast.chaos.evidence.heartbeats.group import CONSUMER, RELEASED, HeartbeatGroup
from holdfast.chaos.evidence.memo import memo
from holdfast.chaos.history.happenings import Fields, Happening, Recorded

TOKEN_SPAN: Final = 1 << 48
"""A fencing token is recovery number times this, plus the index of its grant (S13)."""

PREPARING: Final = "PreparingRebalance"
COMPLETING: Final = "CompletingRebalance"
STABLE: Final = "Stable"
EMPTY: Final = "Empty"
DEAD: Final = "Dead"
ASSIGNING: Final = "Assigning"
RECONCILING: Final = "Reconciling"
"""Of the heartbeat protocol, whose states are derived and never recorded: the target is older than
the group epoch; somebody has not arrived at it."""


class Known(NamedTuple):
    """A member as the log has it."""

    member_id: str
    instance_id: str
    session_timeout_ms: int
    """0 for a member that speaks the heartbeat protocol: the group's, which its answers tell."""
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
    granted: Mapping[str, int] = {}
    """The entry of each classic member's newest grant: its token."""
    released: frozenset[str] = frozenset()
    """Classic members whose process has stopped, and whose place is kept (S12)."""
    beats: HeartbeatGroup | None = None
    """What it has besides, if it is of the heartbeat protocol."""

    @property
    def is_consumer(self) -> bool:
        """Whether it is of the heartbeat protocol."""
        return self.beats is not None


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
    if record.kind == "GroupConverted":
        changed = _converted(view, fields, record.index)
    elif view.beats is not None:
        changed = _of_heartbeats(view, view.beats, record)
    else:
        changed = _changed(view, record.kind, fields, record.index)
    return changed._replace(index=record.index)


def _changed(view: View, kind: str, fields: Fields, index: int) -> View:
    if kind in REMOVALS:
        return _without(view, removed_by(kind, fields))
    if kind == "AssignmentStored":
        assigned = assigned_by(fields)
        granted = dict.fromkeys(assigned, index)
        return view._replace(state=STABLE, assigned=assigned, granted=granted)
    if kind == "StaticMemberReplaced":
        return _replaced(view, fields, index)
    change = _CHANGES.get(kind)
    return change(view, fields) if change else view


# --- the heartbeat protocol ---


def _of_heartbeats(view: View, beats: HeartbeatGroup, record: Recorded) -> View:
    """Return a group of the heartbeat protocol after one record."""
    kind, fields = record.kind, record.fields
    if kind == "GroupDeleted":
        return NOTHING
    if kind in REMOVALS:
        gone = removed_by(kind, fields)
        return _derived(_without(view, gone), heartbeat_group.without(beats, gone))
    changed = view
    if kind == "EpochRaised":
        changed = changed._replace(generation=fields["epoch"])
    elif kind == "MemberSubscribed":
        known = view.members.get(fields["member_id"])
        member = _subscriber(fields, known)
        changed = changed._replace(members={**view.members, member.member_id: member})
    elif kind == "StaticMemberReplaced":
        changed = _replaced(changed, fields, record.index)
    return _derived(changed, heartbeat_group.fold(beats, kind, fields, record.index))


def _subscriber(fields: Fields, known: Known | None) -> Known:
    classic = fields["classic"] or {"session_timeout_ms": 0, "protocols": ()}
    instance_id = fields.get("instance_id") or (known.instance_id if known else "")
    return Known(
        fields["member_id"],
        instance_id,
        classic["session_timeout_ms"],
        fields["rebalance_timeout_ms"],
        _offers(classic["protocols"]),
    )


def _derived(view: View, beats: HeartbeatGroup) -> View:
    """Return a group with this, and with the state that follows from its epochs and members."""
    if not view.members:
        state = EMPTY
    elif view.generation > beats.target_epoch:
        state = ASSIGNING
    else:
        settled = all(beats.is_settled(each) for each in beats.standings)
        state = STABLE if settled else RECONCILING
    return view._replace(beats=beats, state=state)


def _converted(view: View, fields: Fields, index: int) -> View:
    """Return a group that goes on under the other protocol; an empty one begins anew (K-Q1)."""
    changed = view._replace(generation=fields["generation"])
    if fields["group_type"] == CONSUMER:
        beats = heartbeat_group.converted(fields, view.members, view.granted, view.released)
        left = changed._replace(assigned={}, granted={}, protocol="", released=frozenset())
        return _derived(left, beats)
    standings = view.beats.standings if view.beats else {}
    assigned = {
        each["member_id"]: tuple(sorted(heartbeat_group.listed(each["partitions"])))
        for each in fields["members"]
    }
    granted = {
        name: max((each.index for each in standings[name].held.values()), default=index)
        for name in assigned
        if name in standings
    }
    return changed._replace(
        state=STABLE if fields["members"] else EMPTY,
        protocol=fields["protocol_name"],
        assigned=assigned,
        granted=granted,
        released=frozenset(n for n, each in standings.items() if each.epoch == RELEASED),
        beats=None,
    )


# --- the classic protocol ---


def _joined(view: View, fields: Fields) -> View:
    known = view.members.get(fields["member_id"])
    member = _member(fields, fields["member_id"], known)
    return view._replace(members={**view.members, member.member_id: member})


def _generation_started(view: View, fields: Fields) -> View:
    left = _without(view, fields["removed"])
    name = str(fields["protocol_name"])
    return left._replace(state=COMPLETING, generation=fields["generation"], protocol=name)


def _created(fields: Fields) -> View:
    if fields.get("group_type") == CONSUMER:
        return View(state=EMPTY, generation=heartbeat_group.FIRST_EPOCH, beats=HeartbeatGroup())
    return View(state=EMPTY)


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
        _offers(fields["protocols"]),
    )


def _offers(protocols: Iterable[Fields]) -> dict[str, tuple[str, ...] | None]:
    return {
        each["name"]: None if each["topics"] is None else tuple(each["topics"])
        for each in protocols
    }


def _replaced(view: View, fields: Fields, index: int) -> View:
    old, new = fields["old_member_id"], fields["new_member_id"]
    members = {name: each for name, each in view.members.items() if name != old}
    members[new] = _member(fields, new, view.members.get(old))
    assigned = dict(view.assigned)
    if old in assigned:
        assigned[new] = assigned.pop(old)
    granted = dict(view.granted)
    if granted.pop(old, 0):
        granted[new] = index
    released = view.released - {old}
    return view._replace(members=members, assigned=assigned, granted=granted, released=released)


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
    "GroupCreated": lambda _view, fields: _created(fields),
    "GroupDeleted": lambda _view, _fields: NOTHING,
    "MemberJoined": _joined,
    "MemberUpdated": _joined,
    "InstanceReleased": lambda view, fields: view._replace(
        released=view.released | {fields["member_id"]}
    ),
    "RebalanceStarted": lambda view, _fields: view._replace(state=PREPARING),
    "GenerationStarted": _generation_started,
    "GroupEmptied": _emptied,
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

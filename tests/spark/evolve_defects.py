"""Defects of `evolve`, at least one for each kind of entry that the comparison with SQL tells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import pytest

from holdfast.coordinator.classic import evolve as classic_evolve
from holdfast.coordinator.consumer import evolve, holdings
from holdfast.coordinator.consumer.state import CONSUMER, Asked, Member
from holdfast.coordinator.kernel import evolve as kernel
from holdfast.coordinator.kernel.apply import replay
from holdfast.coordinator.model.consumer_events import (
    AssignmentRequested,
    EpochRaised,
    GroupConverted,
    MemberAdvanced,
    MemberSubscribed,
    RegexResolved,
    TargetStored,
)
from holdfast.coordinator.model.events import (
    AssignmentStored,
    GenerationStarted,
    GroupEmptied,
    InstanceReleased,
    MemberJoined,
    MembersLeft,
    OffsetsCommitted,
    RebalanceStarted,
    Record,
    StaticMemberReplaced,
)
from holdfast.coordinator.model.member_profile import ClientAssignor
from holdfast.coordinator.model.state import Group, State
from holdfast.replay.verify.group_fold import entries_of

AnyGroup: TypeAlias = Group[Any]
Damage: TypeAlias = Callable[[AnyGroup, AnyGroup], AnyGroup]
"""What a defect makes of the group before an event and the right one after it."""


class Defect(NamedTuple):
    """A fold of one event that goes wrong."""

    event: type | str
    """Which fold it is; or the name of what `kernel.evolve` does behind each."""
    damage: Damage
    found_by: str
    """The kind of entry that tells it."""
    mixed: bool = False
    """It shows in groups with members of both protocols, or that change theirs."""
    classic: bool = False
    """It is one of the classic fold."""


def shown_by(
    defect: Defect, records: Sequence[Record], monkeypatch: pytest.MonkeyPatch
) -> tuple[int, State]:
    """Fold records by an `evolve` that has this defect, until it shows in a group's entries.

    How many that takes, and the wrong state. Later events could hide it again, or not be possible.
    """
    right, wrong = State(), State()
    for count, record in enumerate(records, 1):
        with monkeypatch.context() as patch:
            _break(defect, patch)
            wrong = replay(wrong, (record,))
        right = replay(right, (record,))
        if _told(wrong, record.group_id, defect) != _told(right, record.group_id, defect):
            return count, wrong
    raise AssertionError(f"nothing of {defect} shows in this log")


def _break(defect: Defect, patch: pytest.MonkeyPatch) -> None:
    if isinstance(defect.event, str):
        _break_behind(defect, defect.event, patch)
        return
    own = classic_evolve.FOLDS if defect.classic else evolve.FOLDS
    folds: dict[type, Any] = own if defect.event in own else kernel.OF_ANY
    right = folds[defect.event]

    def fold(group: AnyGroup, event: Any, record: Record) -> AnyGroup:  # noqa: ANN401 - of the class
        return defect.damage(group, right(group, event, record))

    patch.setitem(folds, defect.event, fold)


def _break_behind(defect: Defect, name: str, patch: pytest.MonkeyPatch) -> None:
    right = getattr(kernel, name)

    def after_fold(group: AnyGroup, *more: object) -> AnyGroup:
        return defect.damage(group, right(group, *more))

    patch.setattr(kernel, name, after_fold)


def _told(state: State, group_id: str, defect: Defect) -> set[tuple[str, ...]]:
    group = state.groups.get(group_id)
    entries = [] if group is None else list(entries_of(group))
    return {each for each in entries if each[0] == defect.found_by}


def _each(change: Callable[[Any], Any], group_type: str = CONSUMER) -> Damage:
    """Every member of a group of this type is another one."""

    def damaged(_before: AnyGroup, after: AnyGroup) -> AnyGroup:
        if after.group_type != group_type:
            return after
        members = after.body.members
        for member_id, member in after.body.members.items():
            members = members.set(member_id, change(member))
        return after._replace(body=after.body._replace(members=members))

    return damaged


def _kept(field: str) -> Damage:
    def damaged(before: AnyGroup, after: AnyGroup) -> AnyGroup:
        return _with(after, **{field: getattr(before.body, field)})

    return damaged


def _always(**fields: object) -> Damage:
    def damaged(_before: AnyGroup, after: AnyGroup) -> AnyGroup:
        return _with(after, **fields) if after.group_type == CONSUMER else after

    return damaged


def _with(group: AnyGroup, **fields: object) -> AnyGroup:
    return group._replace(body=group.body._replace(**fields))


def _regranted(member: Member) -> Member:
    return member._replace(owned=holdings.regranted(member.owned, 1))


def _given_up(member: Member) -> Member:
    return member._replace(revoking=()) if member.member_id == "b1" else member


def _not_regranted(before: AnyGroup, after: AnyGroup) -> AnyGroup:
    """What is kept keeps its token, though its owner speaks the classic protocol."""
    old = {each.member_id: holdings.grants(each.owned) for each in before.body.members.values()}
    members = after.body.members
    for member_id, member in members.items():
        kept = old.get(member_id, {})
        owned = tuple(
            each._replace(
                granted=tuple(
                    kept.get((each.topic, number), (0, index))[1]
                    for number, index in zip(each.partitions, each.granted, strict=True)
                )
            )
            for each in member.owned
        )
        members = members.set(member_id, member._replace(owned=owned))
    return _with(after, members=members)


def _no_metadata(_before: AnyGroup, after: AnyGroup) -> AnyGroup:
    targets = after.body.targets.map_values(lambda each: each._replace(metadata=b""))
    return _with(after, targets=targets)


def _late_backwards(_before: AnyGroup, after: AnyGroup) -> AnyGroup:
    return _with(after, late=after.body.late[::-1])


def _forgiven(before: AnyGroup, after: AnyGroup) -> AnyGroup:
    """A swap ends what was said of the old process, and the new one is like any other."""
    late = tuple(each for each in before.body.late if each in after.body.members)
    return _with(after, late=late)


def _forgiven_if_late(before: AnyGroup, after: AnyGroup) -> AnyGroup:
    """Only who comes in the place of one that was asked is asked last, not of one that was late."""
    gone = set(before.body.late) - set(after.body.late)
    return _forgiven(before, after) if gone else after


def _late_where_it_was(before: AnyGroup, after: AnyGroup) -> AnyGroup:
    new = set(after.body.late) - set(before.body.late)
    gone = set(before.body.late) - set(after.body.late)
    if not (new and gone):
        return after
    late = tuple(new.pop() if each in gone else each for each in before.body.late)
    return _with(after, late=late)


def _of_before(field: str) -> Damage:
    """The group itself keeps a field that the event has changed."""
    return lambda before, after: after._replace(**{field: getattr(before, field)})


def _one_less(_before: AnyGroup, after: AnyGroup) -> AnyGroup:
    """The last of the members that a conversion names is lost."""
    members = after.body.members
    for member_id in list(members)[-1:]:
        members = members.remove(member_id)
    return _with(after, members=members)


def _never_overtaken(_before: AnyGroup, after: AnyGroup) -> AnyGroup:
    asked = after.body.asked
    return after if asked is None else _with(after, asked=asked._replace(overtaken=False))


def _old_number(before: AnyGroup, after: AnyGroup) -> AnyGroup:
    return after._replace(generation=max(before.generation - 1, 1))


def _said(**fields: object) -> Damage:
    """Every member of the heartbeat protocol says something else of itself."""
    return _each(lambda member: member._replace(profile=member.profile._replace(**fields)))


def _classic(**fields: object) -> Damage:
    """Every member of a classic group is otherwise in these fields."""
    return _each(lambda member: member._replace(**fields), "classic")


def _no_metadata_of_offsets(_before: AnyGroup, after: AnyGroup) -> AnyGroup:
    return after._replace(offsets=after.offsets.map_values(lambda it: it._replace(metadata="x")))


def _classic_said(**fields: object) -> Damage:
    return _each(
        lambda member: member._replace(profile=member.profile._replace(**fields)), "classic"
    )


OF_MEMBERS: Final[dict[str, Defect]] = {
    "another client": Defect(MemberJoined, _classic_said(client_id="x"), "client", classic=True),
    "another timeout": Defect(
        MemberJoined, _classic_said(session_timeout_ms=1), "timeouts", classic=True
    ),
    "no protocols": Defect(MemberJoined, _classic_said(protocols=()), "protocols", classic=True),
    "asked for nothing": Defect(
        GenerationStarted, _classic(request_id=""), "request id", classic=True
    ),
    "here since ever": Defect(StaticMemberReplaced, _classic(since_ms=1), "joined", classic=True),
    "another order": Defect(MemberJoined, _classic(joined_seq=0), "joined", classic=True),
    "belongs to somebody else": Defect(
        MemberJoined, _classic(principal="x"), "principal", classic=True
    ),
    "goes on after its release": Defect(
        InstanceReleased, _classic(released=False), "released", classic=True
    ),
    "abandons without a trace": Defect(
        RebalanceStarted, _classic(abandoned=b""), "abandoned", classic=True
    ),
    "abandons for ever": Defect(
        AssignmentStored, _classic(abandoned=b"x"), "abandoned", classic=True
    ),
    "forgets what was asked before it": Defect(
        StaticMemberReplaced, _classic(replaced_requests=()), "replaced", classic=True
    ),
    "nobody acts on an old grant": Defect(
        StaticMemberReplaced, _classic(predecessor_ms=0), "predecessor", classic=True
    ),
    "nobody acts on old grants": Defect(
        StaticMemberReplaced, _kept("predecessors_until_ms"), "predecessors", classic=True
    ),
    "the leader's old id leads": Defect(
        StaticMemberReplaced, _kept("leader"), "leader", classic=True
    ),
    "who left leads": Defect(MembersLeft, _kept("leader"), "leader", classic=True),
    "an empty group's protocol": Defect(
        GroupEmptied, _kept("protocol_name"), "chosen", classic=True
    ),
    "another protocol type": Defect(
        MemberJoined,
        lambda _b, after: _with(after, protocol_type="x"),
        "protocol type",
        classic=True,
    ),
    "answered twice": Defect(AssignmentStored, _kept("rejoined"), "rejoined", classic=True),
    "a join phase without end": Defect(
        RebalanceStarted,
        lambda _b, after: _with(after, round_timeout_ms=0),
        "join phase",
        classic=True,
    ),
    "other words beside an offset": Defect(OffsetsCommitted, _no_metadata_of_offsets, "commit"),
    "another digest of topics": Defect(EpochRaised, _kept("digest"), "digest"),
    "an old target's time": Defect(TargetStored, _kept("target_ms"), "target time"),
    "a search of old": Defect(RegexResolved, _kept("regexes_ms"), "expressions"),
    "another assignor": Defect(MemberSubscribed, _said(server_assignor="x"), "place"),
    "runs an assignor": Defect(
        MemberSubscribed,
        _said(client_assignors=(ClientAssignor("x", 0, 1, 0, 0, b""),)),
        "client assignors",
    ),
    "beats too fast": Defect(MemberAdvanced, _each(lambda m: m._replace(beat=99)), "beat"),
    "stays in the phase before": Defect("_moved", _of_before("state"), "head", classic=True),
    "is in its phase since the one before": Defect(
        "_moved", _of_before("state_since_ms"), "since", classic=True
    ),
    "the entry before": Defect("_counted", _of_before("version"), "version"),
    "counts a record twice": Defect(
        "_counted", lambda _b, after: after._replace(seq=after.seq + 1), "version"
    ),
    "stays away too long": Defect(
        InstanceReleased, _each(lambda m: m._replace(absence_ms=5)), "session"
    ),
}
"""Defects in what members say, and in what a group is as a whole."""

DEFECTS: Final[dict[str, Defect]] = {
    **OF_MEMBERS,
    "waits for nobody": Defect(
        MemberAdvanced, _each(lambda member: member._replace(waiting=False)), "progress"
    ),
    "forgets the epoch before": Defect(
        MemberAdvanced, _each(lambda m: m._replace(previous_epoch=m.epoch)), "progress"
    ),
    "takes as given up what was asked for": Defect(MemberAdvanced, _each(_given_up), "owned"),
    "old tokens for new": Defect(StaticMemberReplaced, _each(_regranted), "owned"),
    "epochs stay at a release": Defect(
        InstanceReleased,
        _each(lambda m: m._replace(owned=holdings.with_epoch(m.owned, 9))),
        "owned",
    ),
    "other topics": Defect(
        MemberSubscribed,
        _each(lambda m: m._replace(profile=m.profile._replace(topics=("other",)))),
        "subscription",
    ),
    "old target": Defect(TargetStored, _kept("targets"), "target"),
    "a target without metadata": Defect(TargetStored, _no_metadata, "target"),
    "old target's epoch": Defect(TargetStored, _kept("assignment_epoch"), "assignment epoch"),
    "old instance": Defect(StaticMemberReplaced, _kept("instances"), "instance"),
    "remembers expressions": Defect(MemberSubscribed, _kept("regexes"), "regex"),
    "asks nobody": Defect(AssignmentRequested, _kept("asked"), "asked"),
    "asks on after the target": Defect(TargetStored, _kept("asked"), "asked"),
    "asks who is gone": Defect(MembersLeft, _kept("asked"), "asked"),
    "a swap overtakes nothing": Defect(StaticMemberReplaced, _never_overtaken, "asked"),
    "the late ones in another order": Defect(AssignmentRequested, _late_backwards, "late"),
    "late for ever": Defect(TargetStored, _kept("late"), "late"),
    "late, though it stopped": Defect(InstanceReleased, _kept("late"), "late"),
    "a swap forgives who died of computing": Defect(StaticMemberReplaced, _forgiven, "late"),
    "a swap forgives who was late": Defect(StaticMemberReplaced, _forgiven_if_late, "late"),
    "a swap keeps the place in the order": Defect(StaticMemberReplaced, _late_where_it_was, "late"),
    "old assignor": Defect(TargetStored, _kept("client_assignor"), "client assignor"),
    "a grant renews nothing": Defect(MemberAdvanced, _not_regranted, "owned", mixed=True),
    "who turns classic keeps tokens": Defect(MemberSubscribed, _not_regranted, "owned", mixed=True),
    "forgets who speaks what": Defect(
        StaticMemberReplaced, _each(lambda m: m._replace(classic=None)), "protocol", mixed=True
    ),
    "conversion: newer tokens": Defect(GroupConverted, _each(_regranted), "owned", mixed=True),
    "conversion: everybody runs": Defect(
        GroupConverted, _each(lambda m: m._replace(epoch=m.previous_epoch)), "progress", mixed=True
    ),
    "conversion: no targets": Defect(
        GroupConverted, _always(targets=Group("g", "", None).offsets), "target", mixed=True
    ),
    "conversion: an older epoch": Defect(GroupConverted, _old_number, "generation", mixed=True),
    "conversion: everybody beats": Defect(
        GroupConverted, _each(lambda m: m._replace(classic=None)), "protocol", mixed=True
    ),
    "conversion: a member is lost": Defect(GroupConverted, _one_less, "member", mixed=True),
    "conversion: somebody is to compute": Defect(
        GroupConverted, _always(asked=Asked("a1", 1, "own")), "asked", mixed=True
    ),
    "conversion: dynamic members": Defect(
        GroupConverted, _each(lambda m: m._replace(instance_id=None)), "member", mixed=True
    ),
    "conversion: no assignments": Defect(
        GroupConverted,
        _each(lambda m: m._replace(assignment=b""), "classic"),
        "grant",
        mixed=True,
    ),
    "conversion: a token too new": Defect(
        GroupConverted,
        _each(lambda m: m._replace(granted_index=m.granted_index + 1), "classic"),
        "grant",
        mixed=True,
    ),
}
"""By what goes wrong."""

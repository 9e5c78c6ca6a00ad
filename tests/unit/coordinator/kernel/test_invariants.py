"""The invariants can fail: each is broken on purpose in a sound state, and must say so (S6)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast.coordinator.classic.state import ClassicGroup, Member
from holdfast.coordinator.classic.transitions import PREPARING
from holdfast.coordinator.kernel import invariants
from holdfast.coordinator.model.events import (
    OffsetCommitted,
    OffsetsCommitted,
    RequestRecorded,
    TopicSize,
)
from holdfast.coordinator.model.ids import TopicPartition
from holdfast.coordinator.model.state import EMPTY, Offset, RequestKey, State
from holdfast.coordinator.structures.pmap import PMap
from unit.coordinator.desk import Desk, member


def sound() -> State:
    """A Stable group with a static member (the leader) and a dynamic one, and a served request."""
    desk = Desk()
    desk.topics(t=1)
    desk.stable_group("g", member("a", "t", instance_id="i"), member("b", "t"))
    desk.happened("g", OffsetsCommitted((OffsetCommitted("t", 0, 3, -1, ""),)))
    desk.happened("g", RequestRecorded("r", b"", b""))
    return desk.state


def test_a_sound_state_breaks_nothing() -> None:
    assert invariants.check(State()) == []
    assert invariants.check(sound()) == []


def with_body(group: ClassicGroup, **changes: object) -> ClassicGroup:
    return group._replace(body=group.body._replace(**changes))  # type: ignore[arg-type]  # any field


def with_member(group: ClassicGroup, member_id: str, **changes: object) -> ClassicGroup:
    changed: Member = group.body.members[member_id]._replace(**changes)  # type: ignore[arg-type]  # any field
    return with_body(group, members=group.body.members.set(member_id, changed))


BROKEN_GROUPS: dict[str, tuple[str, Callable[[ClassicGroup], ClassicGroup]]] = {
    "empty id": ("I6", lambda g: g._replace(group_id="")),
    "no such state": ("transitions", lambda g: g._replace(state="Dead")),
    "no event yet": ("S3", lambda g: g._replace(seq=0)),
    "members in Empty": (
        "D9",
        lambda g: with_body(g._replace(state=EMPTY), leader=None, protocol_name=None),
    ),
    "no type": ("I2", lambda g: with_body(g, protocol_type=None)),
    "left-over round": ("D1", lambda g: with_body(g, round_timeout_ms=5)),
    "leader is no member": ("D13", lambda g: with_body(g, leader="ghost")),
    "no leader": ("S16", lambda g: with_body(g, leader=None)),
    "no generation": ("S16", lambda g: g._replace(generation=0)),
    "no protocol": ("D11", lambda g: with_body(g, protocol_name=None)),
    "rejoined twice": ("S16", lambda g: with_body(g, rejoined=("a", "a"))),
    "protocol nobody has": ("I1", lambda g: with_body(g, protocol_name="q")),
    "other key": (
        "S6",
        lambda g: with_body(g, members=g.body.members.set("c", g.body.members["b"])),
    ),
    "same place": ("S6", lambda g: with_member(g, "b", joined_seq=g.body.members["a"].joined_seq)),
    "joined later": ("S3", lambda g: with_member(g, "b", joined_seq=g.seq + 1)),
    "no grant": ("E5", lambda g: with_member(g, "b", granted_index=0)),
    "assigned without grant": (
        "S13",
        lambda g: with_member(g._replace(state=PREPARING), "b", granted_index=0),
    ),
    "negative predecessor": ("S13", lambda g: with_member(g, "b", predecessor_ms=-1)),
    "released dynamic member": ("S12", lambda g: with_member(g, "b", released=True)),
    "identity held twice": ("C1", lambda g: with_member(g, "b", instance_id="i")),
    "instance of nobody": ("C1", lambda g: with_body(g, instances=g.body.instances.set("j", "b"))),
    "instance forgotten": ("C1", lambda g: with_body(g, instances=PMap())),
    "instance of another": ("C1", lambda g: with_body(g, instances=PMap([("i", "b")]))),
}


@pytest.mark.parametrize("name", BROKEN_GROUPS)
def test_s6_a_broken_group_is_found(name: str) -> None:
    rule, harm = BROKEN_GROUPS[name]
    found = invariants.check_group(harm(sound().groups["g"]))
    assert any(problem.startswith(f"{rule}: ") for problem in found), found


OF_THE_WHOLE = {"rejoined twice", "instance of nobody"}
"""What only a look at everything finds; events of single members cannot bring it about."""


@pytest.mark.parametrize("name", sorted(BROKEN_GROUPS.keys() - OF_THE_WHOLE))
def test_s6_what_a_batch_has_broken_is_found_where_it_touched(name: str) -> None:
    rule, harm = BROKEN_GROUPS[name]
    before = sound().groups["g"]
    harmed = harm(before)
    everyone = [*before.body.members, *harmed.body.members]
    found = invariants.check_touched(before, harmed, everyone)
    assert any(problem.startswith(f"{rule}: ") for problem in found), found


def test_s6_nobody_who_left_leaves_an_instance_behind() -> None:
    """K-C1: it could never be taken over again."""
    before = sound().groups["g"]
    (holder,) = [m for m in before.body.members.values() if m.instance_id]
    after = with_body(before, members=before.body.members.remove(holder.member_id))
    touched = [holder.member_id]

    assert invariants.check_touched(before, before, touched) == []
    assert [p[:3] for p in invariants.check_touched(before, after, touched) if "gone" in p] == [
        "C1:"
    ]


def _in_group(state: State, **changes: object) -> State:
    group = state.groups["g"]._replace(**changes)  # type: ignore[arg-type]  # any field
    return state._replace(groups=state.groups.set("g", group))


_T0 = TopicPartition("t", 0)
BROKEN_STATES: dict[str, tuple[str, Callable[[State], State]]] = {
    "group under another id": (
        "S6",
        lambda s: s._replace(groups=s.groups.set("h", s.groups["g"])),
    ),
    "changed by a later entry": ("S2", lambda s: _in_group(s, version=s.applied_index + 1)),
    "state since later": ("S8", lambda s: _in_group(s, state_since_ms=s.log_time_ms + 1)),
    "committed later": (
        "S8",
        lambda s: _in_group(s, offsets=PMap([(_T0, Offset(1, -1, "", s.log_time_ms + 1))])),
    ),
    "topic under another name": (
        "S6",
        lambda s: s._replace(topics=PMap([("t", TopicSize("u", 1))])),
    ),
    "topic without partitions": (
        "S6",
        lambda s: s._replace(topics=PMap([("t", TopicSize("t", 0))])),
    ),
    "settings that do not fit": (
        "S7",
        lambda s: s._replace(
            settings=s.settings._replace(cluster=PMap([("group.max_size", "1000000")]))
        ),
    ),
    "request out of order": ("S15", lambda s: s._replace(requests_next=s.requests_next + 1)),
    "request without order": ("S15", lambda s: s._replace(requests_by_number=PMap())),
    "request of the future": (
        "S15",
        lambda s: s._replace(
            requests=s.requests.set(
                RequestKey("", "g", "r"),
                s.requests[RequestKey("", "g", "r")]._replace(log_time_ms=s.log_time_ms + 1),
            )
        ),
    ),
}


@pytest.mark.parametrize("name", BROKEN_STATES)
def test_s6_a_broken_state_is_found(name: str) -> None:
    rule, harm = BROKEN_STATES[name]
    found = invariants.check(harm(sound()))
    assert any(problem.startswith(f"{rule}: ") for problem in found), found

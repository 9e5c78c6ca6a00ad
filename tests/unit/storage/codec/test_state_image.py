"""The state as records: changes are written, what was written restores, digests agree (S3, S18)."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.coordinator.classic.state import ClassicBody, Member
from holdfast.coordinator.consumer.state import Member as ConsumerMember
from holdfast.coordinator.model.consumer_events import MemberTarget, ResolvedRegex
from holdfast.coordinator.model.events import TopicSize
from holdfast.coordinator.model.ids import Position, TopicPartition
from holdfast.coordinator.model.member_profile import MemberProfile, Protocol
from holdfast.coordinator.model.state import (
    Group,
    Offset,
    RequestKey,
    RequestRecord,
    Settings,
    State,
)
from holdfast.coordinator.projections.history import Rebalance
from holdfast.coordinator.structures.pmap import PMap
from holdfast.storage.codec.event_codec import (
    CodecError,
    StateItem,
    decode_state,
    encode_state,
)
from holdfast.storage.codec.schema_versions import of_state
from holdfast.storage.codec.state_image import Digest, changes, digest_of, restore, weight
from unit.coordinator.consumer.talk import Talk, parts
from unit.coordinator.people import Consumer, World, stable

if TYPE_CHECKING:
    from collections.abc import Sequence


def member(name: str, assignment: bytes = b"") -> Member:
    protocols = (Protocol("range", b"m" + name.encode(), ("t",)),)
    return Member(
        name, f"i-{name}", MemberProfile("c", "h", 1, 2, protocols), "r", 3, 4, assignment
    )


def group(name: str, members: int) -> Group[Any]:
    made = [member(f"{name}-{i}") for i in range(members)]
    body = ClassicBody(
        members=PMap((m.member_id, m) for m in made),
        instances=PMap((str(m.instance_id), m.member_id) for m in made),
    )
    offsets: PMap[TopicPartition, Offset] = PMap({TopicPartition("t", 0): Offset(5, -1, "x", 9)})
    return Group(name, "classic", body, offsets=offsets)


def full_state() -> State:
    return State(
        cluster_id="c",
        groups=PMap({name: group(name, 30) for name in ("g", "h", "")}),
        topics=PMap({"t": TopicSize("t", 3)}),
        settings=Settings(PMap({"group.max_size": "7"}), PMap({"g": PMap({"a": "b"})})),
        requests=PMap({RequestKey("p", "g", "r1"): RequestRecord(b"d", b"a", 6)}),
        requests_by_number=PMap({0: RequestKey("p", "g", "r1")}),
        log_time_ms=11,
        applied_index=12,
    )


def store(*steps: State) -> dict[tuple[str, bytes], bytes]:
    """A store that was brought from nothing through these states."""
    kept: dict[tuple[str, bytes], bytes] = {}
    before = State()
    for after in steps:
        for change in changes(before, after):
            if change.content is None:
                del kept[change.database, change.key]
            else:
                kept[change.database, change.key] = change.content
        before = after
    return kept


def test_what_was_written_restores() -> None:
    state = full_state()

    assert restore(store(state).values()) == state


def test_rebalances_that_an_older_version_filed_with_their_group_are_no_part_of_the_state() -> None:
    """Version 0.1.0 had them in the state; a directory of it is read for ever."""
    state = full_state()
    told = Rebalance(3, "why", "m", Position(3, 0), 5)
    old = encode_state(StateItem(("g", "3"), told))

    assert restore([*store(state).values(), old]) == state


def test_a_change_costs_the_records_that_changed_and_no_others() -> None:
    """S18: a change in a group dirties its own record, not the group's members."""
    before = full_state()
    old = before.groups["g"]
    body = old.body._replace(members=old.body.members.set("g-7", member("g-7", b"work")))
    new = old._replace(body=body, version=13)
    after = before._replace(groups=before.groups.set("g", new), applied_index=13)

    # The counters of the cluster, the group's head, one member.
    assert len(list(changes(before, after))) == 3


def test_any_walk_through_states_leaves_the_store_of_the_last_one() -> None:
    """Removed members, deleted groups and all: no leftovers, nothing missing, digest alike."""
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"replay with seed {seed}")
    chance = random.Random(seed)
    state, steps, digest = State(cluster_id="c"), [], Digest()
    for step in range(60):
        name = chance.choice("ghk")
        if chance.random() < 0.2:
            state = state._replace(groups=state.groups.remove(name))
        else:
            state = state._replace(groups=state.groups.set(name, group(name, chance.randrange(25))))
        state = state._replace(applied_index=step)
        steps.append(state)
        digest.advance(state)

    assert store(*steps) == store(state)
    assert restore(store(*steps).values()) == state
    assert digest.advance(state) == digest_of(state)


def test_a_digest_depends_on_every_field_that_is_replicated() -> None:
    state = full_state()
    other = state._replace(applied_index=13)

    assert digest_of(state) == digest_of(restore(store(state).values()))
    assert digest_of(state) != digest_of(other)


def test_a_member_without_its_group_is_refused() -> None:
    kept = store(full_state())
    orphaned = [content for (_, key), content in kept.items() if not key.startswith(b"g\x00\x01g")]

    with pytest.raises(CodecError, match="groups that are not there"):
        restore(orphaned)


def test_a_state_has_the_same_digest_wherever_the_counting_began() -> None:
    """S3: who started from a snapshot agrees with who was there from the first entry."""
    nothing, led = State(), State(applied_index=1)
    formed = State(applied_index=2, cluster_id="c", log_time_ms=7)
    from_the_first = Digest()
    from_the_first.advance(nothing)
    from_the_first.advance(led)

    assert from_the_first.advance(formed) == Digest().advance(formed)


def test_settings_that_came_later_count_alike_wherever_the_counting_began() -> None:
    """S3: a node that restarts, and so begins at a state with settings, is no stranger.

    Found by the simulator (seed 1): no settings at all were counted as a record, and never taken
    off again, by whoever had been there before the first ones.
    """
    settings = Settings(PMap({"group.max_size": "7"}))
    formed = State(applied_index=2, cluster_id="c", settings=settings)
    from_the_first = Digest()
    from_the_first.advance(restore(()))  # what a node with an empty disk begins with

    assert from_the_first.advance(formed) == digest_of(restore(store(formed).values()))


def test_settings_given_back_leave_no_record() -> None:
    """S18: a store that was brought to no settings holds what one without any holds."""
    formed = State(settings=Settings(PMap({"group.max_size": "7"})))
    given_back = State(settings=Settings(PMap({"x": "1"}).remove("x")))

    assert store(formed, given_back) == store(given_back)
    assert Digest(formed, digest_of(formed)).advance(given_back) == digest_of(given_back)


# --- groups of the heartbeat protocol ---


@pytest.fixture
def talk() -> Talk:
    """`a` and `b` share t, each by an expression, and have to agree on it yet."""
    made = Talk(t=4)
    made.send(made.joins("a", "t", regex="fo+"))
    made.send(made.joins("b", "t", instance_id="i"))
    made.core.advance(1)
    return made


def kinds_of(before: State, after: State) -> list[str]:
    """The kinds of the records that a step from one state to the next writes or removes."""
    found = [each.content for each in changes(before, after)]
    return sorted(
        "removed" if each is None else type(decode_state(each).value).__name__ for each in found
    )


def records_of(state: State) -> Sequence[bytes]:
    return [each.content for each in changes(State(), state) if each.content is not None]


def test_s18_a_step_of_a_member_dirties_its_own_record(talk: Talk) -> None:
    """And the counters of the group and of the cluster; no other member's, and no target."""
    before = talk.core.state
    talk.send(talk.says("a", 2))
    assert kinds_of(before, talk.core.state) == ["Group", "Member", "State"]

    before = talk.core.state
    talk.send(talk.says("a", 2, owned=parts("t0", "t1")))
    assert kinds_of(before, talk.core.state) == ["Group", "Member", "State"]


def test_s18_a_departure_removes_its_records_alone(talk: Talk) -> None:
    before = talk.core.state
    talk.send(talk.says("a", -1))

    assert kinds_of(before, talk.core.state) == ["Group", "State", *["removed"] * 3]


def test_what_follows_from_the_members_is_rerecords_of(talk: Talk) -> None:
    """Owners, instances, counts, who is settled; and the group's state, which is not stored."""
    state = talk.core.state
    again = restore(records_of(state))

    assert again == state
    assert digest_of(again) == digest_of(state)
    assert again.groups["g"].state == "Reconciling"
    assert not any(b"Reconciling" in each for each in records_of(state))


def test_a_record_of_another_type_of_group_is_refused(talk: Talk) -> None:
    """As a member of one type in a group of another."""
    orphan = [each for each in records_of(talk.core.state) if _kind(each) is MemberTarget]
    classic = [each for each in records_of(talk.core.state) if _kind(each) is State]

    with pytest.raises(CodecError, match="groups that are not there"):
        restore([*classic, *orphan])


def test_s18_a_conversion_replaces_the_records_of_the_other_type() -> None:
    """K-Q2, K-Q12: nothing is left of what the group was, and a digest may begin anywhere."""
    world = World()
    stable(world, "x", "y")
    a = Consumer(world, "a")
    digest, steps = Digest(), [world.core.state]
    for act in (a.beat, a.leave):
        act()
        steps.append(world.core.state)
    types = [state.groups["g"].group_type for state in steps]

    assert types == ["classic", "consumer", "classic"]
    for count in (2, 3):
        kept = store(*steps[:count])
        assert kept == store(steps[count - 1])
        assert restore(kept.values()) == steps[count - 1]
    assert [digest.advance(each) for each in steps] == [digest_of(each) for each in steps]


def test_s3_its_records_are_of_the_level_that_knows_it(talk: Talk) -> None:
    """An older version must refuse them, rather than read a group in part."""
    kinds = {Group, ConsumerMember, MemberTarget, ResolvedRegex, TopicSize}
    values = [decode_state(each).value for each in records_of(talk.core.state)]

    assert {of_state(each) for each in values if type(each) in kinds} == {3}


def test_s3_a_topic_of_level_1_has_the_bytes_that_it_always_had() -> None:
    talk = Talk(level=1, t=4)
    (topic,) = [each for each in records_of(talk.core.state) if _kind(each) is TopicSize]

    assert decode_state(topic).value == TopicSize("t", 4)
    assert topic[:2] == encode_state(decode_state(topic))[:2] == bytes((8, 2))


def _kind(content: bytes) -> type:
    return type(decode_state(content).value)


def test_s3_a_record_adds_the_head_of_its_sha_256_to_the_digest() -> None:
    """The value is that of FIPS 180-2 for "abc": nodes and replays share this function."""
    assert weight(b"abc") == 0xBA7816BF8F01CFEA
    assert weight(None) == 0

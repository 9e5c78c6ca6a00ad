"""Who of a group of the heartbeat protocol is told to beat now, and how often (KIP-848)."""

from __future__ import annotations

from holdfast.coordinator.model import commands as c
from holdfast.coordinator.model.events import PartitionsAdded, TopicsCreated, TopicSize
from holdfast.coordinator.model.ids import TopicPartitions
from holdfast.coordinator.model.volatile import SESSION, DeadlineKey
from holdfast.server.rpc.pushes.one_by_one import SILENT_S
from holdfast.v1 import errors_pb2 as e
from holdfast.v1 import group_pb2 as g
from unit.server.consumer_calls import beat, join
from unit.server.rpc.pushes.push_world import PushWorld, Reader, given
from unit.server.session_calls import run


def test_one_more_member_is_a_push_for_each_that_gives_and_one_for_who_takes() -> None:
    """Pushes <= givers + takers + 1; and by their own heartbeats alone all comes to its place."""

    async def story() -> None:
        world, old, new = await PushWorld().lead(), Reader(), Reader()
        await world.joins(old, "a", "b")
        assert old.take() == []
        await world.joins(new, "c")
        givers = old.take()
        assert sorted(givers) == ["a", "b"] or len(givers) == 1
        assert new.take() == []
        body = world.replica.state.groups["g"].body
        for each in givers:
            told = await world.plain(old, each)
            await world.owns(old, each, *(given(told) or ()))
        assert new.take() == ["c"], "once, when all that it waits for is free"
        took = await world.plain(new, "c")
        wanted = body.targets["c"].partitions[0].partitions

        assert given(took) == set(wanted)
        assert old.take() == new.take() == []
        assert world.pushes.sent == len(givers) + 1

    run(story)


def test_a_push_says_the_group_epoch_and_nothing_else() -> None:
    """It means "beat now": no code of an error, nothing that could be taken for an answer."""

    async def story() -> None:
        world, reader, other = await PushWorld().lead(), Reader(), Reader()
        await world.joins(reader, "a")
        await world.joins(other, "b")

        assert reader.pushed == [g.HeartbeatPush(group_id="g", member_id="a", generation_id=3)]

    run(story)


def test_who_waits_for_two_members_is_told_once_when_both_have_given() -> None:
    """A push for each partition would be as many as there are givers, for each taker."""

    async def story() -> None:
        world, old, new = await PushWorld().lead(t=6), Reader(), Reader()
        await world.joins(old, "a", "b")
        await world.joins(new, "c")
        assert sorted(old.take()) == ["a", "b"]
        told = {each: given(await world.plain(old, each)) or set() for each in ("a", "b")}
        await world.owns(old, "a", *told["a"])
        assert new.take() == []
        await world.owns(old, "b", *told["b"])

        assert new.take() == ["c"]

    run(story)


def test_a_departure_has_one_member_beat_and_then_the_heirs() -> None:
    """K-M21: nobody computes at a departure; so somebody is asked to beat, and one is enough."""

    async def story() -> None:
        world, readers = await PushWorld().lead(t=6), [Reader() for _ in range(3)]
        await world.joins(readers[0], "a")
        for reader, name in zip(readers[1:], "bc", strict=True):
            await world.joins(reader, name)
        await converge(world, dict(zip("abc", readers, strict=True)))
        sent = world.pushes.sent
        await world.says(readers[2], beat(-1, "c"))
        told = readers[0].take() + readers[1].take()
        assert len(told) == 1
        asked = told[0]
        reader = dict(zip("abc", readers, strict=True))[asked]
        took = await world.plain(reader, asked)
        other = ({"a", "b"} - {asked}).pop()

        assert len(given(took) or ()) == 3, "it takes with the heartbeat that computes"
        assert readers[0].take() + readers[1].take() == [other]
        assert world.pushes.sent - sent == 2, "no giver, two takers of whom one was asked, and + 1"
        world.later.turn(10 * SILENT_S)
        assert readers[0].take() + readers[1].take() == []

    run(story)


async def converge(world: PushWorld, readers: dict[str, Reader]) -> None:
    """Have each member that is told to beat do so, say what it owns, until nobody is told."""
    for _ in range(20):
        told = [each for reader in readers.values() for each in reader.take()]
        if not told:
            return
        for each in told:
            answer = await world.plain(readers[each], each)
            if given(answer) is not None:
                await world.owns(readers[each], each, *given(answer) or ())
    raise AssertionError("it goes on and on")


def test_a_member_that_is_silent_is_passed_over_and_asked_last_the_next_time() -> None:
    """It may be dead, and its session not over yet."""

    async def story() -> None:
        world, reader = await PushWorld().lead(), Reader()
        await world.joins(reader, "a", "b", "c", "d")
        reader.take()
        await world.says(Reader(), beat(-1, "d"))
        (first,) = reader.take()
        world.later.turn(SILENT_S - 0.01)
        assert reader.take() == []
        world.later.turn(0.01)
        (second,) = reader.take()
        await world.plain(reader, second)
        reader.take()
        world.later.turn(10 * SILENT_S)
        assert reader.take() == [], "it was heard"
        await world.says(Reader(), beat(-1, ({"a", "b", "c"} - {first, second}).pop()))

        assert reader.take() == [second], "the silent one comes last"
        assert first != second

    run(story)


def test_nobody_is_asked_twice_for_the_same_departure() -> None:
    """All may be silent: their heartbeats will compute the target, or their sessions end."""

    async def story() -> None:
        world, reader = await PushWorld().lead(), Reader()
        await world.joins(reader, "a", "b", "c")
        reader.take()
        await world.says(Reader(), beat(-1, "c"))
        for _ in range(10):
            world.later.turn(SILENT_S)

        assert sorted(reader.take()) == ["a", "b"]
        assert world.later.waiting == 0

    run(story)


def test_many_departures_ask_once_while_the_first_is_not_answered() -> None:
    """Pushes <= givers + takers + 1, whatever the number of entries in which members go."""

    async def story() -> None:
        world, reader = await PushWorld().lead(), Reader()
        await world.joins(reader, "a", "b", "c", "d")
        reader.take()
        for name in ("c", "d"):
            await world.says(Reader(), beat(-1, name))

        assert len(reader.take()) == 1

    run(story)


def test_new_partitions_have_one_member_look() -> None:
    """K-M27: a heartbeat finds changed topics, so that nobody need wait for an interval."""

    async def story() -> None:
        world, reader, stranger = await PushWorld().lead(t=2, u=2), Reader(), Reader()
        await world.joins(reader, "a", "b")
        await world.joins(stranger, "x", group_id="h", subscribed_topic_names=names("u"))
        reader.take()
        world.replica.slip_in("", PartitionsAdded((TopicSize("t", 4),)))
        (asked,) = reader.take()
        await world.plain(reader, asked)

        assert len(reader.take()) == 1, "the other one takes its part"
        assert stranger.take() == []

    run(story)


def test_a_new_topic_has_one_member_look_if_an_expression_may_match_it() -> None:
    """K-P8: the look-up is asked for by a heartbeat; K-P1: what it finds raises the epoch."""

    async def story() -> None:
        world, reader = await PushWorld().lead(), Reader()
        by_regex = {"subscribed_topic_names": names(), "subscribed_topic_regex": "t.*"}
        await world.joins(reader, "a", **by_regex)
        assert reader.take() == ["a"], "for the target with what was found"
        await world.plain(reader, "a")
        world.replica.slip_in("", TopicsCreated((TopicSize("t9", 1),)))

        assert reader.take() == ["a"]

    run(story)


def names(*topics: str) -> g.ConsumerGroupTopicNames:
    return g.ConsumerGroupTopicNames(names=topics)


def test_s12_what_a_stopped_process_had_to_give_is_told_to_who_waits() -> None:
    """K-N23: it owns it no more, since it has stopped; nobody says so by a step of its own."""

    async def story() -> None:
        world, old, new = await PushWorld().lead(), Reader(), Reader()
        await world.joins(old, "a", instance_id="i")
        await world.joins(new, "b")
        assert old.take() == ["a"]
        await world.says(old, beat(world.epoch("a"), "a", instance_id="i"))
        assert new.take() == []
        await world.says(old, beat(-2, "a", instance_id="i"))

        assert new.take() == ["b"]

    run(story)


def test_a_successor_in_place_of_a_member_that_had_to_give_frees_it_for_who_waits() -> None:
    """K-N6: what the holder was to give up does not go with its place."""

    async def story() -> None:
        world, old, new = await PushWorld().lead(), Reader(), Reader()
        await world.joins(old, "a", instance_id="i")
        await world.joins(new, "b")
        await world.says(old, beat(world.epoch("a"), "a", instance_id="i"))
        await world.says(old, beat(-2, "a", instance_id="i"))
        new.take()
        await world.joins(Reader(), "a2", instance_id="i")

        assert new.take() == [], "it was told before"
        assert old.take() == ["a"], "only that it was to give"

    run(story)


def test_who_takes_in_the_very_entry_that_frees_is_told_nothing() -> None:
    """Heartbeats of both came together; there is nothing left to take."""

    async def story() -> None:
        world, reader = await PushWorld().lead(), Reader()
        await world.joins(reader, "a")
        await world.joins(reader, "b")
        told = given(await world.plain(reader, "a")) or set()
        reader.take()
        mine = g.ConsumerGroupTopicPartitions(topic="t", partitions=sorted(told))
        said = g.ConsumerGroupAssignment(topic_partitions=[mine])
        _, took = await world.says(
            reader,
            beat(world.epoch("a"), "a", topic_partitions=said),
            beat(world.epoch("b"), "b"),
        )

        assert len(given(took) or ()) == 2
        assert reader.take() == []

    run(story)


def test_a_removed_member_and_a_replaced_one_are_told_so_as_in_the_classic_protocol() -> None:
    """S12: each may act until it hears of it, so it hears of it now."""

    async def story() -> None:
        world, reader = await PushWorld().lead(), Reader()
        await world.joins(reader, "a", "b")
        reader.take()
        removed = (c.LeavingMember("b", None, "too slow"),)
        await world.ask(lambda call: c.LeaveGroup(c.Caller(call), "g", removed, operator=True))
        gone = [each for each in reader.pushed if each.member_id == "b"]

        assert [each.error_code for each in gone] == [e.ERROR_CODE_UNKNOWN_MEMBER_ID]
        assert [each.holdfast.reason for each in gone] == ["too slow"]
        assert "b" not in world.carriers.of("g")

    run(story)


def test_a_member_whose_session_ended_is_told_so() -> None:
    """S9: it may be cut off from the node only one way."""

    async def story() -> None:
        world, reader = await PushWorld().lead(), Reader()
        await world.joins(reader, "a", "b")
        reader.take()
        key = DeadlineKey(SESSION, "b")
        armed = world.actors.actor("g")
        assert armed is not None
        assert key in armed.volatile.armed
        await world.at(world.now_ms + 45_001)
        codes = {each.member_id: each.error_code for each in reader.pushed}

        assert codes["b"] == e.ERROR_CODE_UNKNOWN_MEMBER_ID

    run(story)


def test_a_node_that_leads_no_more_tells_nobody_to_beat() -> None:
    """The next leader does; here nobody could be answered."""

    async def story() -> None:
        world, reader = await PushWorld().lead(), Reader()
        await world.joins(reader, "a", "b", "c")
        reader.take()
        await world.says(Reader(), beat(-1, "c"))
        reader.take()
        world.replica.step_down()
        world.later.turn(10 * SILENT_S)
        world.replica.slip_in("", PartitionsAdded((TopicSize("t", 9),)))

        assert reader.take() == []
        assert world.later.waiting == 0

    run(story)


def test_a_new_leader_tells_who_waits_when_it_first_sees_the_group_move() -> None:
    """S16: what the leader before knew beside the log is gone, and follows from the state."""

    async def story() -> None:
        world, old, new = await PushWorld().lead(), Reader(), Reader()
        await world.joins(old, "a")
        await world.joins(new, "b")
        told = given(await world.plain(old, "a")) or set()
        world.replica.step_down()
        world.replica.lead(2)
        await world.settle()
        old.take()
        await world.owns(old, "a", *told)

        assert new.take() == ["b"]

    run(story)


def test_what_happened_while_nobody_could_be_told_is_not_missed() -> None:
    """All streams broke; who waits has beaten again on another, and one more giver gives."""

    async def story() -> None:
        world, old, new = await PushWorld().lead(t=6), Reader(), Reader()
        await world.joins(old, "a", "b")
        await world.joins(new, "c")
        told = {each: given(await world.plain(old, each)) or set() for each in ("a", "b")}
        for reader in (old, new):
            world.carriers.close(reader)
        owned, epoch = (TopicPartitions("t", tuple(sorted(told["a"]))),), world.epoch("a")
        await world.ask(
            lambda call: c.ConsumerGroupHeartbeat(c.Caller(call), "g", "a", epoch, owned=owned)
        )
        await world.plain(new, "c")
        new.take()
        await world.owns(old, "b", *told["b"])

        assert new.take() == ["c"]

    run(story)


def test_who_is_reached_on_no_stream_is_not_waited_for() -> None:
    """Unary heartbeats stay: whoever makes them hears with the next one."""

    async def story() -> None:
        world, new = await PushWorld().lead(), Reader()
        await world.joins(new, "a", "b")
        world.carriers.close(new)
        await world.says(Reader(), beat(-1, "b"))

        assert world.pushes.sent == 0
        assert world.later.waiting == 0

    run(story)


def test_pushes_without_room_are_counted_and_left_out() -> None:
    """A slow reader costs no memory; the next heartbeat tells it the same."""

    async def story() -> None:
        world, slow, other = await PushWorld().lead(), Reader(), Reader()
        await world.joins(slow, "a")
        slow.full = True
        await world.joins(other, "b")

        assert (world.pushes.sent, world.pushes.left_out) == (0, 1)
        assert given((await world.says(slow, beat(world.epoch("a"), "a")))[0]) is not None

    run(story)


def test_a_classic_member_of_a_group_of_classic_members_is_told_nothing_of_this() -> None:
    """Its join phases are announced by events (`news`)."""

    async def story() -> None:
        world, reader = await PushWorld().lead(), Reader()
        joined = await world.member()
        asked = g.HeartbeatRequest(
            group_id="g", generation_id=1, member_id=joined.member_id, group_instance_id="i1"
        )
        await world.batch.answer(reader, g.HeartbeatBatch(requests=[asked]))
        world.replica.slip_in("", PartitionsAdded((TopicSize("t", 9),)))

        assert reader.take() == []

    run(story)


def test_join_is_refused_and_its_stream_carries_nobody() -> None:
    """A push is for members: a name that was refused must not fill the table."""

    async def story() -> None:
        world, reader = await PushWorld().lead(), Reader()
        (answer,) = await world.says(reader, join("x", server_assignor="none"))

        assert answer.error_code == e.ERROR_CODE_UNSUPPORTED_ASSIGNOR
        assert world.carriers.carried == 0

    run(story)

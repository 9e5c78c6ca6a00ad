"""ConsumerGroupHeartbeat over a real gRPC server, on a replica that a test controls."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from holdfast.coordinator.model import replies
from holdfast.coordinator.model.access import DENY, GROUP, MEMBER, READER, TOPIC, Acl
from holdfast.coordinator.model.events import (
    AccessModeChanged,
    AclsChanged,
    SettingChange,
    SettingsChanged,
)
from holdfast.runtime.groups.hearing import Hearing
from holdfast.runtime.groups.heartbeat_cache import CachedAnswer, RememberedBeat
from holdfast.runtime.groups.regexes import LENGTH_MAX
from holdfast.server.rpc.calls.consumer_heartbeat import answered_before
from holdfast.v1 import errors_pb2 as e
from holdfast.v1 import extras_pb2 as x
from holdfast.v1 import group_pb2 as g
from unit.server.consumer_calls import beat, join, places, with_topics
from unit.server.nodes import served, until
from unit.server.session_calls import Stream

if TYPE_CHECKING:
    from google.protobuf.message import Message

LIFE = "01900000-0000-7000-8000-000000000001"
ME = "anonymous"
"""The principal of a caller without a certificate."""


def test_m5_a_first_member_owns_everything_with_tokens_of_its_entry() -> None:
    """K-M5, S13: the grants are of the entry that the answer names."""

    async def story() -> None:
        async with served() as node:
            with_topics(node)
            joined = await node.group.ConsumerGroupHeartbeat(join())
            (tokens,) = joined.holdfast.partition_tokens

            assert (joined.error_code, joined.member_id) == (e.ERROR_CODE_NONE, "m1")
            assert joined.member_epoch == 2
            assert places(joined.assignment) == [("t", 0), ("t", 1)]
            assert list(tokens.fencing_tokens) == [joined.holdfast.position.index] * 2
            assert joined.heartbeat_interval_ms > 0
            assert joined.holdfast.session_timeout_ms > 0

    asyncio.run(story())


def test_m13_a_plain_heartbeat_is_answered_with_the_epoch_alone() -> None:
    """K-M13: and nothing goes to the log."""

    async def story() -> None:
        async with served() as node:
            with_topics(node)
            await node.group.ConsumerGroupHeartbeat(join())
            before = node.replica.state.applied_index
            heard = await node.group.ConsumerGroupHeartbeat(beat(2))

            assert (heard.error_code, heard.member_epoch) == (e.ERROR_CODE_NONE, 2)
            assert not heard.HasField("assignment")
            assert not heard.holdfast.HasField("position")
            assert node.replica.state.applied_index == before

    asyncio.run(story())


_OF_A_PLAIN_ONE = {"group_id", "member_id", "member_epoch", "instance_id", "holdfast"}
_NUMBER = {"life", "beat"}


@pytest.mark.parametrize(
    "field",
    [
        *[
            each.name
            for each in g.ConsumerGroupHeartbeatRequest.DESCRIPTOR.fields
            if each.name not in _OF_A_PLAIN_ONE
        ],
        *[
            f"holdfast.{each.name}"
            for each in x.RequestExtras.DESCRIPTOR.fields
            if each.name not in _NUMBER
        ],
    ],
)
def test_m13_a_heartbeat_that_says_anything_is_not_looked_up(field: str) -> None:
    """K-M13, S26: the cache is for those that say only who they are; a new field says more, too."""
    hearing = _Known(life=LIFE)
    said = beat(2, holdfast=x.RequestExtras(life=LIFE, beat=1))
    assert hearing.answers(said), "one that says nothing is"
    said.holdfast.beat = 2
    *inside, name = field.split(".")
    message: Message = said.holdfast if inside else said
    _say(message, name)

    assert not hearing.answers(said)
    assert not _Known(life=LIFE).answers(said), "nor is it if it is the first"


@pytest.mark.parametrize(
    ("known", "other"),
    [
        ({}, beat(3)),
        ({}, beat(2, instance_id="i1")),
        ({}, beat(2, holdfast=x.RequestExtras())),
        ({}, beat(2, holdfast=x.RequestExtras(life=LIFE, beat=1))),
        ({"instance_id": "i1"}, beat(2)),
        ({"instance_id": "i1"}, beat(2, instance_id="i2")),
        ({"instance_id": "i1"}, beat(2, rack_id="i1")),
        ({"life": LIFE}, beat(2)),
        ({"life": LIFE}, beat(2, holdfast=x.RequestExtras(life=LIFE))),
        ({"life": LIFE}, beat(2, holdfast=x.RequestExtras(life=LIFE[:-1] + "2", beat=1))),
        ({"principal": "another"}, beat(2)),
    ],
)
def test_m13_another_ones_heartbeat_is_decided(
    known: dict[str, str], other: g.ConsumerGroupHeartbeatRequest
) -> None:
    """K-M13, S26: also one that has the size of the last one's."""
    hearing = _Known(**known)
    same = beat(2, instance_id=known.get("instance_id"))
    if "life" in known:
        same.holdfast.life, same.holdfast.beat = LIFE, 1
    assert hearing.answers(same) == ("principal" not in known)

    assert not hearing.answers(other)


def test_s26_numbers_that_take_more_bytes_go_on_from_memory_and_no_number_comes_twice() -> None:
    """S26: the size of a heartbeat grows with its number."""
    hearing = _Known(life=LIFE)

    for number in (1, 127, 128, 129, 2**14, 2**21):
        assert hearing.answers(beat(2, holdfast=x.RequestExtras(life=LIFE, beat=number)))
        assert not hearing.answers(beat(2, holdfast=x.RequestExtras(life=LIFE, beat=number)))


def test_m13_a_field_of_a_later_version_does_not_hide_another_of_its_size() -> None:
    """K-M13: the size of a heartbeat tells nothing while it has fields that have no name here."""
    hearing = _Known()
    later = bytes([15 << 3 | 2, 2]) + b"xx"  # a string of two bytes, in a field that is not there
    with_later = g.ConsumerGroupHeartbeatRequest.FromString(beat(2).SerializeToString() + later)
    other = beat(2, rack_id="yy")
    assert with_later.ByteSize() == other.ByteSize()

    assert hearing.answers(with_later)
    assert not hearing.answers(other)


class _Known(Hearing):
    """Hears one member, whose last heartbeat it knows."""

    def __init__(self, instance_id: str | None = None, principal: str = ME, life: str = "") -> None:
        super().__init__({})
        answer = CachedAnswer(replies.ConsumerHeartbeatReply(None, "m1", 2, 5_000), None)
        self._last = RememberedBeat(answer, "m1", 2, instance_id, principal, life, 0)

    def last(self, group_id: str, member_id: str) -> RememberedBeat | None:
        return self._last if (group_id, member_id) == ("g", "m1") else None

    def again(self, group_id: str, last: RememberedBeat, number: int) -> CachedAnswer:
        assert (group_id, last) == ("g", self._last)
        last.number = number
        return last.answer

    def answers(self, said: g.ConsumerGroupHeartbeatRequest) -> bool:
        """Whether a heartbeat of this caller is answered without a decision."""
        return answered_before(self, said, lambda: ME) is not None


def _say(message: Message, name: str) -> None:
    """Set a field to something, an empty message to one that is there."""
    field = message.DESCRIPTOR.fields_by_name[name]
    if field.message_type is not None:
        getattr(message, name).SetInParent()
    else:
        setattr(message, name, "x" if field.type == field.TYPE_STRING else 1)


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (beat(1), e.ERROR_CODE_GROUP_ID_NOT_FOUND),
        (join(server_assignor="sticky"), e.ERROR_CODE_UNSUPPORTED_ASSIGNOR),
        (join(subscribed_topic_regex="("), e.ERROR_CODE_INVALID_REGULAR_EXPRESSION),
        (join(subscribed_topic_regex="x" * (LENGTH_MAX + 1)), e.ERROR_CODE_INVALID_REQUEST),
        (join(rebalance_timeout_ms=-1), e.ERROR_CODE_INVALID_REQUEST),
        (join(instance_id=""), e.ERROR_CODE_INVALID_REQUEST),
    ],
)
def test_a_refusal_has_its_code_and_a_sentence_and_nothing_else(
    asked: g.ConsumerGroupHeartbeatRequest, code: e.ErrorCode.ValueType
) -> None:
    """K-M1, K-M2, K-M3, K-M6, K-P1; in Kafka's field for the text as well."""

    async def story() -> None:
        async with served() as node:
            with_topics(node)
            refused = await node.group.ConsumerGroupHeartbeat(asked)

            assert refused.error_code == code
            assert refused.error_message
            assert refused.error_message == refused.holdfast.message
            assert not refused.HasField("member_id")
            assert not refused.HasField("assignment")
            assert "g" not in node.replica.state.groups

    asyncio.run(story())


def test_k_m12_an_epoch_of_another_life_is_fenced() -> None:
    """K-M10: a heartbeat from the future of another member id's life."""

    async def story() -> None:
        async with served() as node:
            with_topics(node)
            await node.group.ConsumerGroupHeartbeat(join())
            fenced = await node.group.ConsumerGroupHeartbeat(beat(7))

            assert fenced.error_code == e.ERROR_CODE_FENCED_MEMBER_EPOCH
            assert "epoch 7, the member is at 2" in fenced.error_message

    asyncio.run(story())


def test_n11_whoever_comes_later_is_told_who_holds_the_instance_id() -> None:
    """K-N11: and since when, for a decision between waiting and giving up."""

    async def story() -> None:
        async with served() as node:
            with_topics(node)
            await node.group.ConsumerGroupHeartbeat(join("m1", instance_id="i"))
            refused = await node.group.ConsumerGroupHeartbeat(join("m2", instance_id="i"))

            assert refused.error_code == e.ERROR_CODE_UNRELEASED_INSTANCE_ID
            assert refused.holdfast.holder == "m1"
            assert "for 0 ms" in refused.error_message or " ms, and" in refused.error_message

    asyncio.run(story())


def test_a_session_stream_carries_it_as_well() -> None:
    """The same answers, by the number of the call."""

    async def story() -> None:
        async with served() as node:
            with_topics(node)
            stream = Stream(node)
            joined = await stream.ask(1, join())
            left = await stream.ask(2, beat(-1))
            gone = await stream.ask(3, beat(2))

            assert places(joined.assignment) == [("t", 0), ("t", 1)]
            assert (left.error_code, left.member_epoch) == (e.ERROR_CODE_NONE, -1)
            assert gone.error_code == e.ERROR_CODE_UNKNOWN_MEMBER_ID

    asyncio.run(story())


def test_a_topic_that_the_caller_may_not_read_refuses_the_whole_heartbeat() -> None:
    """As in Kafka; the sentence names what the caller named, and what would let it in."""

    async def story() -> None:
        async with served() as node:
            with_topics(node, "mine", "theirs")
            grants = (Acl(ME, MEMBER, GROUP, "g"), Acl(ME, READER, TOPIC, "mine"))
            node.replica.slip_in("", AclsChanged(grants, ()), AccessModeChanged(DENY))
            refused = await node.group.ConsumerGroupHeartbeat(join("m1", "mine", "theirs"))
            allowed = await node.group.ConsumerGroupHeartbeat(join("m1", "mine"))

            assert refused.error_code == e.ERROR_CODE_TOPIC_AUTHORIZATION_FAILED
            assert "topic 'theirs'" in refused.error_message
            assert places(allowed.assignment) == [("mine", 0), ("mine", 1)]

    asyncio.run(story())


def test_p1_topics_by_an_expression_come_with_a_later_heartbeat() -> None:
    """K-P1: the lookup is beside the group's work; its result raises the epoch."""

    async def story() -> None:
        async with served() as node:
            with_topics(node, "orders-1", "orders-2", "other")
            asked = join(subscribed_topic_regex="orders-.*")
            asked.ClearField("subscribed_topic_names")
            joined = await node.group.ConsumerGroupHeartbeat(asked)
            await until(lambda: node.replica.state.groups["g"].generation > joined.member_epoch)
            heard = await node.group.ConsumerGroupHeartbeat(beat(joined.member_epoch))

            assert places(joined.assignment) == []
            assert {topic for topic, _ in places(heard.assignment)} == {"orders-1", "orders-2"}

    asyncio.run(story())


def test_p9_by_an_expression_a_member_gets_only_topics_that_it_may_read() -> None:
    """K-P9: the others are not refused, they are not there."""

    async def story() -> None:
        async with served() as node:
            with_topics(node, "mine", "theirs")
            grants = (Acl(ME, MEMBER, GROUP, "g"), Acl(ME, READER, TOPIC, "mine"))
            node.replica.slip_in("", AclsChanged(grants, ()), AccessModeChanged(DENY))
            asked = join(subscribed_topic_regex=".*")
            asked.ClearField("subscribed_topic_names")
            joined = await node.group.ConsumerGroupHeartbeat(asked)
            await until(lambda: node.replica.state.groups["g"].generation > joined.member_epoch)
            heard = await node.group.ConsumerGroupHeartbeat(beat(joined.member_epoch))

            assert places(heard.assignment) == [("mine", 0), ("mine", 1)]

    asyncio.run(story())


def test_limits_of_principals_count_joins_and_leaves_and_no_other_heartbeat() -> None:
    """A refused heartbeat would end a session; on a stream it is the same."""

    async def story() -> None:
        async with served() as node:
            with_topics(node)
            await node.group.ConsumerGroupHeartbeat(join())
            change = SettingChange("principal.calls_per_second_max", "1")
            node.replica.slip_in("", SettingsChanged("", (change,)))
            stream = Stream(node)
            heard = [await node.group.ConsumerGroupHeartbeat(beat(2)) for _ in range(3)]
            heard += [await stream.ask(number, beat(2)) for number in range(3)]
            first = await node.group.ConsumerGroupHeartbeat(join())
            refused = await stream.ask(4, join())
            with pytest.raises(grpc.aio.AioRpcError) as unary:
                await node.group.ConsumerGroupHeartbeat(beat(-1))

            assert [each.error_code for each in (*heard, first)] == [e.ERROR_CODE_NONE] * 7
            assert refused.code == unary.value.code().value[0]
            assert unary.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED

    asyncio.run(story())


def test_m8_the_sentence_of_a_full_group_names_the_setting_of_this_protocol() -> None:
    """K-M8: an operator who raises the classic one would change nothing."""

    async def story() -> None:
        async with served() as node:
            with_topics(node)
            change = SettingChange("group.consumer_max_size", "1")
            node.replica.slip_in("", SettingsChanged("", (change,)))
            await node.group.ConsumerGroupHeartbeat(join("a"))
            refused = await node.group.ConsumerGroupHeartbeat(join("b"))

            assert refused.error_code == e.ERROR_CODE_GROUP_MAX_SIZE_REACHED
            assert "raise group.consumer_max_size" in refused.holdfast.message

    asyncio.run(story())


def test_s26_a_late_heartbeat_is_refused_and_a_repeated_one_answered_again() -> None:
    """Whether the one before was answered from memory or not."""

    def numbered(number: int, **said: Any) -> g.ConsumerGroupHeartbeatRequest:  # noqa: ANN401 - of a heartbeat
        return beat(2, holdfast=x.RequestExtras(life=LIFE, beat=number), **said)

    async def story() -> None:
        async with served() as node:
            with_topics(node)
            call = node.group.ConsumerGroupHeartbeat
            await call(join(holdfast=x.RequestExtras(life=LIFE, beat=1)))
            plain = [await call(numbered(number)) for number in (3, 4, 5)]
            again, late = await call(numbered(5)), await call(numbered(4))

            assert [each.error_code for each in plain] == [e.ERROR_CODE_NONE] * 3
            assert (again.error_code, again.HasField("assignment")) == (e.ERROR_CODE_NONE, True)
            assert late.error_code == e.ERROR_CODE_FENCED_MEMBER_EPOCH
            assert "comes after a later one" in late.error_message

    asyncio.run(story())


@pytest.mark.parametrize(
    "extras",
    [
        x.RequestExtras(life=LIFE),
        x.RequestExtras(beat=1),
        x.RequestExtras(life="no-uuid", beat=1),
        x.RequestExtras(life="80000000-0000-7000-8000-000000000001", beat=1),
        x.RequestExtras(life=LIFE, beat=1 << 63),
    ],
)
def test_s26_a_malformed_number_is_refused_with_its_field(extras: x.RequestExtras) -> None:
    async def story() -> None:
        async with served() as node:
            with_topics(node)
            with pytest.raises(grpc.aio.AioRpcError, match="holdfast") as failure:
                await node.group.ConsumerGroupHeartbeat(join(holdfast=extras))

            assert failure.value.code() is grpc.StatusCode.INVALID_ARGUMENT

    asyncio.run(story())

"""LogService.SealLog over a real gRPC server and a fake replica: a boundary as asked for (S22).

That every node seals up to it is the subject of `tests/cluster/test_sealing.py`.
"""

from __future__ import annotations

import asyncio
import errno
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import grpc
import pytest

from holdfast.coordinator.model.events import (
    HistoryCut,
    LevelRaised,
    OffsetsCommitted,
    Record,
    SegmentSealed,
)
from holdfast.coordinator.model.ids import Position
from holdfast.coordinator.model.levels import LEVEL_MAX, LEVEL_MIN
from holdfast.storage.codec.event_codec import CodecError
from holdfast.storage.errors import StateDamaged
from holdfast.v1 import extras_pb2 as x
from holdfast.v1 import log_pb2 as lg
from holdfast.v1.errors_pb2 import ErrorCode
from unit.server.nodes import Served, commit, served, topic, until
from unit.server.session_calls import request_id

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

NONE = ErrorCode.ERROR_CODE_NONE
PAGE_LONG = 60
"""More entries without a record than the search for the last one begins with."""


def told(story: Callable[[Served], Awaitable[None]]) -> None:
    """Tell a story of one node."""

    async def run() -> None:
        async with served() as node:
            await story(node)

    asyncio.run(run())


async def sealed(node: Served, key: str = "") -> lg.SealLogResponse:
    extras = x.RequestExtras(request_id=key) if key else None
    answer: lg.SealLogResponse = await node.log.SealLog(lg.SealLogRequest(holdfast=extras))
    return answer


def boundaries(node: Served) -> list[Record]:
    return [each for each in node.replica.records if isinstance(each.event, SegmentSealed)]


def place(position: x.Position) -> Position:
    return Position(position.index, position.ordinal)


def test_s22_a_boundary_is_set_behind_the_last_record_at_once() -> None:
    async def story(node: Served) -> None:
        await topic(node)
        last = node.replica.records[-1].position
        answer = await sealed(node)

        assert answer.error_code == NONE
        assert place(answer.sealed) == last == node.replica.state.sealed
        assert not answer.already
        assert place(answer.holdfast.position) == boundaries(node)[-1].position

    told(story)


def test_the_log_says_who_asked_for_it() -> None:
    """Audit: a change is an event, with the principal and the command."""

    async def story(node: Served) -> None:
        await sealed(node, request_id())

        (record,) = boundaries(node)
        assert (record.principal, record.cause.command) == ("anonymous", "SealLog")

    told(story)


@pytest.mark.parametrize("make_id", [str, request_id])
def test_s22_the_record_of_a_boundary_is_nothing_to_seal(make_id: Callable[[], str]) -> None:
    """S22: with the stored answer of the call that asked for it it is two records (S15)."""

    async def story(node: Served) -> None:
        await topic(node)
        first = await sealed(node, make_id())
        again = await sealed(node, make_id())

        assert (again.error_code, again.already) == (NONE, True)
        assert again.sealed == first.sealed
        assert not again.holdfast.HasField("position")
        assert len(boundaries(node)) == 1

    told(story)


def test_s24_a_cut_of_the_history_is_nothing_to_seal() -> None:
    """S24: with a clock that asks each night, retention would never come to rest."""

    async def story(node: Served) -> None:
        await topic(node)
        first = await sealed(node)
        node.replica.slip_in("", HistoryCut(place(first.sealed), 1, b"digest"))
        again = await sealed(node)

        assert again.already
        assert again.sealed == first.sealed

    told(story)


def test_s22_what_came_since_is_sealed_with_the_record_of_the_boundary_before_it() -> None:
    """S22: by that record a segment tells where it begins."""

    async def story(node: Served) -> None:
        await topic(node)
        await sealed(node)
        await node.offset.OffsetCommit(commit(1))
        last = node.replica.records[-1].position
        answer = await sealed(node)

        assert place(answer.sealed) == last
        assert boundaries(node)[0].position < last

    told(story)


def test_entries_without_a_record_hide_nothing() -> None:
    """A change of leaders or of nodes is an entry without a record."""

    async def story(node: Served) -> None:
        await topic(node)
        last = node.replica.records[-1].position
        applied = node.replica.state.applied_index + PAGE_LONG
        node.replica.state = node.replica.state._replace(applied_index=applied)

        assert place((await sealed(node)).sealed) == last

    told(story)


def test_s15_a_repeated_call_is_carried_out_once() -> None:
    """S15: its answer may be lost, and what came meanwhile was not asked for."""

    async def story(node: Served) -> None:
        await topic(node)
        key = request_id()
        first = await sealed(node, key)
        await node.offset.OffsetCommit(commit(1))
        again = await sealed(node, key)

        assert len(boundaries(node)) == 1
        assert (again.sealed, again.already) == (first.sealed, False)
        assert place(again.holdfast.position).index == place(first.holdfast.position).index

    told(story)


def test_s22_two_at_once_set_one_boundary_and_both_are_told_of_it() -> None:
    async def story(node: Served) -> None:
        await topic(node)
        node.replica.hold = True
        first = asyncio.ensure_future(sealed(node))
        await until(lambda: node.replica.waits)
        second = asyncio.ensure_future(sealed(node))
        await arrived(node, 2)
        node.replica.hold = False
        node.replica.release()
        answers = [await first, await second]

        assert [each.already for each in answers] == [False, True]
        assert answers[0].sealed == answers[1].sealed
        assert len(boundaries(node)) == 1

    told(story)


def test_s22_a_call_that_came_later_has_its_records_sealed_as_well() -> None:
    """S22: the boundary that was under way is of earlier records, and makes its own void."""

    async def story(node: Served) -> None:
        await topic(node)
        await node.offset.OffsetCommit(commit(1))
        node.replica.hold = True
        first = asyncio.ensure_future(sealed(node))
        await until(lambda: node.replica.waits)
        node.replica.slip_in("simple", OffsetsCommitted(()))
        later = node.replica.records[-1].position
        second = asyncio.ensure_future(sealed(node))
        await arrived(node, 2)
        node.replica.hold = False
        node.replica.release()
        answers = [await first, await second]

        assert place(answers[0].sealed) < later <= place(answers[1].sealed)
        assert not answers[1].already
        first_told, second_told = (each.event for each in boundaries(node))
        assert isinstance(second_told, SegmentSealed)
        assert boundaries(node)[0].position <= second_told.last
        assert isinstance(first_told, SegmentSealed)

    told(story)


async def arrived(node: Served, count: int) -> None:
    """Wait until so many calls are open on the node."""
    actors = cast("Any", node.node).actors
    await until(lambda: len(actors.calls) == count)


@pytest.mark.parametrize("level", [LEVEL_MIN, LEVEL_MAX])
def test_s3_a_cluster_of_any_level_takes_it(level: int) -> None:
    """S3: the event is one that every version knows, so nothing has to be upgraded first."""

    async def story(node: Served) -> None:
        if level > node.replica.state.level:
            node.replica.slip_in("", LevelRaised(level))
        assert node.replica.state.level == level
        answer = await sealed(node, request_id())

        assert (answer.error_code, answer.already) == (NONE, False)

    told(story)


@pytest.mark.parametrize(
    "failure",
    [
        StateDamaged(Path("state"), "its sum is wrong", database="events"),
        OSError(errno.EIO, "Input/output error"),
        CodecError("not readable", "event record"),
    ],
)
def test_s5_a_disk_that_cannot_be_read_is_told_and_nothing_was_changed(failure: Exception) -> None:
    """S5: the fault is of this node's disk, before it proposed anything.

    It is no defect of the node, which INTERNAL would ask to report; and no other node can answer
    while this one leads, so clients are not sent to look for one, as by UNAVAILABLE.
    """

    async def story(node: Served) -> None:
        await topic(node)
        cast("Any", node.node)._history.failure = failure
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await sealed(node, request_id())

        said = refused.value
        assert said.code() is grpc.StatusCode.DATA_LOSS
        assert str(failure) in (said.details() or "")
        assert "nothing was changed" in (said.details() or "")
        trailing = {key: str(value) for key, value in said.trailing_metadata() or ()}
        assert trailing["holdfast-outcome"] == "not-applied"
        assert boundaries(node) == []

        cast("Any", node.node)._history.failure = None
        assert not (await sealed(node, request_id())).already

    told(story)


def test_a_node_that_does_not_lead_names_the_one_that_does() -> None:
    async def story(node: Served) -> None:
        node.replica.step_down("node-2")
        answer = await sealed(node)

        assert answer.error_code == ErrorCode.ERROR_CODE_NOT_COORDINATOR
        assert answer.holdfast.leader_hint

    told(story)

"""LogService over a real gRPC server and a fake replica: what log.proto promises, word by word."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import grpc
import pytest

from holdfast.coordinator.model.ids import Position
from holdfast.server.rpc import log_service
from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import extras_pb2 as x
from holdfast.v1 import log_pb2 as lg
from holdfast.v1.errors_pb2 import ERROR_CODE_NONE
from unit.server.nodes import OTHER, Served, join, served

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.v1.events_pb2 import EventRecord


async def create(node: Served, *topics: str) -> None:
    """One entry a topic."""
    for name in topics:
        wanted = a.CreatableTopic(name=name, num_partitions=1)
        await node.admin.CreateTopics(a.CreateTopicsRequest(topics=[wanted]))


def places(records: Iterable[EventRecord]) -> list[Position]:
    return [Position(r.position.index, r.position.ordinal) for r in records]


def applied(node: Served) -> list[Position]:
    return [record.position for record in node.replica.records]


async def heard(stream: Any) -> lg.WatchResponse:  # noqa: ANN401 - a call of either kind
    """The next message of a watch."""
    message = await stream.read()
    assert message is not grpc.aio.EOF
    return cast("lg.WatchResponse", message)


async def collect(stream: Any, count: int) -> list[Position]:  # noqa: ANN401 - as above
    """The positions of so many records."""
    found: list[Position] = []
    while len(found) < count:
        found += places((await heard(stream)).records)
    return found


async def refusal(call: Any) -> tuple[grpc.StatusCode, str, str | bytes]:  # noqa: ANN401 - as above
    """The status of a call, its sentence, and what became of it (S5)."""
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await call
    trailing = dict(failed.value.trailing_metadata())
    return failed.value.code(), failed.value.details() or "", trailing["holdfast-outcome"]


def test_pages_from_the_first_to_the_end_are_the_log() -> None:
    async def story() -> None:
        async with served() as node:
            await create(node, "a", "b", "c", "d")
            found: list[Position] = []
            page = await node.log.ReadEvents(lg.ReadEventsRequest(events_max=2))
            while not page.end:
                assert len(page.records) == 2
                found += places(page.records)
                page = await node.log.ReadEvents(
                    lg.ReadEventsRequest(events_max=2, start=page.next)
                )
            assert found + places(page.records) == applied(node)
            assert page.error_code == ERROR_CODE_NONE
            assert page.first == x.Position(index=applied(node)[0].index)
            assert page.next.index == node.replica.state.applied_index + 1
            assert page.holdfast.applied_index == node.replica.state.applied_index

    asyncio.run(story())


def test_the_start_is_inclusive() -> None:
    async def story() -> None:
        async with served() as node:
            await create(node, "a", "b")
            index, ordinal = applied(node)[1]
            start = x.Position(index=index, ordinal=ordinal)
            page = await node.log.ReadEvents(lg.ReadEventsRequest(start=start))

            assert places(page.records) == applied(node)[1:]

    asyncio.run(story())


def test_one_groups_events_alone_and_where_to_read_on() -> None:
    async def story() -> None:
        async with served() as node:
            await create(node, "a")
            await node.group.JoinGroup(join("g"))
            await create(node, "b")
            page = await node.log.ReadEvents(lg.ReadEventsRequest(group_id="g"))
            mine = [r.position for r in node.replica.records if r.group_id == "g"]
            cluster = await node.log.ReadEvents(lg.ReadEventsRequest(group_id=""))

            assert mine
            assert places(page.records) == mine
            assert page.end
            assert {record.group_id for record in cluster.records} == {""}

    asyncio.run(story())


def test_a_message_has_a_bound_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """S7: gRPC's message limit must not be met; a record larger than the bound is still sent."""
    monkeypatch.setattr(log_service, "PAGE_BYTES", 1)

    async def story() -> None:
        async with served() as node:
            await create(node, "a", "b")
            page = await node.log.ReadEvents(lg.ReadEventsRequest())
            assert places(page.records) == applied(node)[:1]
            assert not page.end
            rest = await node.log.ReadEvents(lg.ReadEventsRequest(start=page.next))
            assert places(rest.records) == applied(node)[1:2]

    asyncio.run(story())


def test_any_node_serves_what_it_has_applied() -> None:
    """log.proto: what is applied is committed, so an answer can only be short."""

    async def story() -> None:
        async with served() as node:
            await create(node, "a")
            node.replica.step_down("node-2")
            page = await node.log.ReadEvents(lg.ReadEventsRequest())

            assert places(page.records) == applied(node)
            assert page.holdfast.leader_hint == str(OTHER)

    asyncio.run(story())


def test_what_is_not_held_is_out_of_range_and_names_the_first_position() -> None:
    async def story() -> None:
        async with served() as node:
            await create(node, "a", "b", "c")
            kept = applied(node)[2]
            cast("Any", node.node)._log._history.lost_before = kept
            start = x.Position(index=1)
            read = node.log.ReadEvents(lg.ReadEventsRequest(start=start))
            code, sentence, outcome = await refusal(read)
            watch = node.log.Watch(lg.WatchRequest(start=start))
            watched = await refusal(watch.read())
            whole = await node.log.ReadEvents(lg.ReadEventsRequest())

            assert code is grpc.StatusCode.OUT_OF_RANGE
            assert f"begins at {kept.index}.{kept.ordinal}" in sentence
            assert outcome == "not-applied"
            assert watched == (code, sentence, outcome)
            assert places(whole.records) == applied(node)[2:]

    asyncio.run(story())


def test_a_watch_from_a_position_sends_what_is_there_and_then_what_comes() -> None:
    async def story() -> None:
        async with served() as node:
            await create(node, "a", "b")
            watch = node.log.Watch(lg.WatchRequest(start=x.Position(index=1)))
            before = await collect(watch, len(applied(node)))
            await create(node, "c", "d")
            after = await collect(watch, len(applied(node)) - len(before))
            watch.cancel()

            assert before + after == applied(node)

    asyncio.run(story())


def test_a_watch_without_a_start_says_at_once_from_where_it_watches() -> None:
    """What is applied before the first message would otherwise be neither read nor watched."""

    async def story() -> None:
        async with served() as node:
            await create(node, "a")
            old = len(applied(node))
            watch = node.log.Watch(lg.WatchRequest())
            first = await heard(watch)
            await create(node, "b")
            new = await collect(watch, 1)
            watch.cancel()

            assert list(first.records) == []
            assert first.next.index == applied(node)[old - 1].index + 1
            assert new == applied(node)[old:]

    asyncio.run(story())


def test_a_watch_resumes_from_next_without_gap_or_duplicate() -> None:
    """It is cut anywhere, also in the middle of a page."""

    async def story() -> None:
        async with served() as node:
            await create(node, *(f"t{n}" for n in range(12)))
            found: list[Position] = []
            start = x.Position(index=1)
            while len(found) < len(applied(node)):
                watch = node.log.Watch(lg.WatchRequest(start=start))
                message = await heard(watch)
                watch.cancel()
                found += places(message.records)
                start = message.next
                if len(applied(node)) < 16:
                    await create(node, f"more{len(found)}")

            assert found == applied(node)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_service, "PAGE_RECORDS", 3)
        asyncio.run(story())


def test_a_watcher_that_does_not_read_costs_a_page_and_misses_nothing() -> None:
    """Bounded: the node keeps no queue for it; it reads the history from where the watcher is."""

    async def story() -> None:
        async with served() as node:
            watch = node.log.Watch(lg.WatchRequest(start=x.Position(index=1)))
            await heard(watch)
            history = cast("Any", node.node)._log._history
            await create(node, *(f"t{n}" for n in range(40)))
            found = await collect(watch, len(applied(node)) - 1)
            watch.cancel()

            assert found == applied(node)[-len(found) :]
            assert max(limit for _, limit in history.reads) <= log_service.PAGE_RECORDS

    asyncio.run(story())


def test_a_quiet_watch_is_told_how_far_the_log_is() -> None:
    """log.proto: empty `records` means that nothing happened, but `next` moved on."""

    async def story() -> None:
        async with served() as node:
            cast("Any", node.node)._log._idle_seconds = 0.0
            watch = node.log.Watch(lg.WatchRequest(group_id="nobody"))
            first = await heard(watch)
            await create(node, "a", "b")
            end = node.replica.state.applied_index + 1
            message = first
            while message.next.index < end:
                message = await heard(watch)
                assert list(message.records) == []
            watch.cancel()

    asyncio.run(story())


def test_a_watch_ends_when_the_node_stops_so_that_another_can_go_on() -> None:
    async def story() -> None:
        async with served() as node:
            watch = node.log.Watch(lg.WatchRequest())
            await heard(watch)
            cast("Any", node.node)._log.on_stopped("its disk failed")
            code, sentence, _ = await refusal(watch.read())

            assert code is grpc.StatusCode.UNAVAILABLE
            assert "ask another" in sentence

    asyncio.run(story())

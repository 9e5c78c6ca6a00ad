"""Which certificates the callers of open calls have shown, and how such a call is ended."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import grpc
import pytest

from holdfast.server.guard.open_streams import OpenStreams
from holdfast.server.rpc.errors import OUTCOME_KEY, CallFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from holdfast.server.rpc.callers import Context

WITHIN_S = 20.0
REVOKED = CallFailed(grpc.StatusCode.UNAUTHENTICATED, "it is revoked", "unknown", repeatable=False)


class Aborted(Exception):
    """What gRPC raises in a call that was ended."""


class Call:
    """A call's context, as far as it is asked here."""

    def __init__(self, *pems: bytes) -> None:
        self._pems = pems
        self.ended_with: tuple[Any, ...] = ()

    def auth_context(self) -> dict[str, tuple[bytes, ...]]:
        """What gRPC tells of the caller."""
        return {"x509_pem_cert": self._pems} if self._pems else {}

    async def abort(self, *with_what: object) -> None:
        self.ended_with = with_what
        raise Aborted


def context(*pems: bytes) -> Context:
    return cast("Context", Call(*pems))


async def began(streams: OpenStreams, call: Context, end: asyncio.Event) -> asyncio.Task[Any]:
    """A call that is open until the event."""
    task = asyncio.ensure_future(streams.served(call, end.wait()))
    await asyncio.sleep(0)
    return task


def test_only_calls_that_are_open_count() -> None:
    async def story() -> None:
        streams, end, sooner = OpenStreams(), asyncio.Event(), asyncio.Event()
        open_ = [await began(streams, context(*pems), end) for pems in ((b"a",), ())]
        short = [await began(streams, context(pem), sooner) for pem in (b"a", b"b")]

        assert streams.certificates() == {b"a", b"b"}
        sooner.set()
        await asyncio.gather(*short)
        assert streams.certificates() == {b"a"}
        end.set()
        await asyncio.gather(*open_)
        assert streams.certificates() == set()

    asyncio.run(story())


def test_a_call_that_is_ended_from_outside_ends_with_the_error_and_no_other_does() -> None:
    async def story() -> None:
        streams, end = OpenStreams(), asyncio.Event()
        one, other = context(b"a"), context(b"b")
        ended, spared = [await began(streams, each, end) for each in (one, other)]

        count = streams.end_where(lambda each: REVOKED if each is one else None)
        with pytest.raises(Aborted):
            await ended
        end.set()

        assert await spared is True
        assert count == 1
        status, sentence, trailing = cast("Call", one).ended_with
        assert (status, sentence) == (grpc.StatusCode.UNAUTHENTICATED, "it is revoked")
        assert (OUTCOME_KEY, "unknown") in trailing, "S5: what it asked for may be under way"
        assert streams.certificates() == set()

    asyncio.run(story())


def test_a_call_that_its_client_gives_up_is_cancelled_as_ever() -> None:
    async def story() -> None:
        streams, call = OpenStreams(), context(b"a")
        task = await began(streams, call, asyncio.Event())

        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        assert cast("Call", call).ended_with == ()

    asyncio.run(story())


@pytest.mark.parametrize("sending", ["the metadata", "the first message"])
def test_a_stream_that_is_ended_while_it_begins_ends(sending: str) -> None:
    """Else it would stand until its connection ends, and count against its caller."""

    async def story() -> None:
        streams = OpenStreams()

        def end_soon() -> None:
            asyncio.get_running_loop().call_soon(streams.end_where, lambda _: REVOKED)

        async def watch(context: Any) -> None:  # noqa: ANN401 - gRPC's own
            if sending == "the first message":
                end_soon()
            await context.write(b"first")
            await asyncio.Event().wait()

        async def run(_: bytes, context: Any) -> None:  # noqa: ANN401 - gRPC's own
            if sending == "the metadata":
                end_soon()
            await streams.streamed(context, lambda: watch(context))

        assert await _status_of(run) is grpc.StatusCode.UNAUTHENTICATED

    asyncio.run(story())


async def _status_of(stream: Callable[[bytes, Any], Coroutine[Any, Any, None]]) -> grpc.StatusCode:
    """How a stream ends that a real server serves."""
    server = grpc.aio.server()
    handler: Any = grpc.unary_stream_rpc_method_handler(stream)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("a.B", {"C": handler}),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            method: Any = channel.unary_stream("/a.B/C")
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await _to_its_end(method(b"", timeout=WITHIN_S))
            return caught.value.code()
    finally:
        await server.stop(None)


async def _to_its_end(call: Any) -> None:  # noqa: ANN401 - gRPC's own
    while await call.read() is not grpc.aio.EOF:
        pass


def test_a_call_is_ended_once() -> None:
    async def story() -> None:
        streams, call = OpenStreams(), context(b"a")
        task = await began(streams, call, asyncio.Event())

        assert [streams.end_where(lambda _: REVOKED) for _ in range(2)] == [1, 0]
        with pytest.raises(Aborted):
            await task

    asyncio.run(story())

"""10,000 calls at once, and none is refused, whatever the grpcio.

From 1.82 on the library refuses calls that wait to be taken up by Python: some above 1,000, all
above 3,000, as CANCELLED. Our options lift that; `./dev test grpcio` runs this file on the oldest
and on the newest grpcio. The loop is held while the burst arrives, so nothing depends on luck.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import grpc
import pytest

from grpcio.burst_server import METHOD
from holdfast.server.rpc.grpc_options import STREAMS_MAX

if TYPE_CHECKING:
    from collections.abc import Iterator

CALLS = 10_000
CHANNELS = 8
SECONDS_MAX = 120.0
VERSION = tuple(map(int, grpc.__version__.split(".")[:2]))
REFUSES = VERSION >= (1, 82)


@contextmanager
def server(options: str) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A server with our options or the library's defaults: its address and its process."""
    program = Path(__file__).with_name("burst_server.py")
    process = subprocess.Popen(
        [sys.executable, str(program), options], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        yield f"127.0.0.1:{int(process.stdout.readline())}", process
    finally:
        process.stdin.close()
        process.wait(SECONDS_MAX)
        process.stdout.close()


def burst(options: str, channels: int = CHANNELS) -> Counter[str]:
    """How 10,000 calls ended that all arrive while the server's loop is held."""
    with server(options) as (address, process), ExitStack() as stack:
        methods: list[grpc.UnaryUnaryMultiCallable[bytes, bytes]] = [
            stack.enter_context(channel(address)).unary_unary(METHOD) for _ in range(channels)
        ]
        for method in methods:
            assert method(b"connected", timeout=SECONDS_MAX) == b"connected"
        say(process, b"h")
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        calls = [methods[n % channels].future(b"x", timeout=SECONDS_MAX) for n in range(CALLS)]
        say(process, b"g")
        return Counter(call.code().name for call in calls)


def channel(address: str) -> grpc.Channel:
    """A connection of its own."""
    return grpc.insecure_channel(address, [("grpc.use_local_subchannel_pool", 1)])


def say(process: subprocess.Popen[bytes], word: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(word)
    process.stdin.flush()


def test_with_our_options_none_of_a_burst_is_refused() -> None:
    """The rule; it must hold on every grpcio, so that an upgrade cannot bring the loss back."""
    ended = burst("ours")
    print(f"grpcio {grpc.__version__}, our options: {dict(ended)}")

    assert ended == {"OK": CALLS}


@pytest.mark.skipif(VERSION < (1, 81), reason="1.76 cannot spare calls that have just ended")
def test_more_calls_than_one_connection_may_have_wait_for_their_turn() -> None:
    """The bound on calls of one connection is for hostile callers: a client of gRPC keeps to it."""
    assert CALLS > 2 * STREAMS_MAX
    assert burst("ours", channels=1) == {"OK": CALLS}


@pytest.mark.skipif(not REFUSES, reason="before 1.82 the library's limits do not bite")
def test_with_the_defaults_a_part_of_it_is_refused() -> None:
    """What our options are for: without them this very burst loses calls, as CANCELLED."""
    ended = burst("defaults")
    print(f"grpcio {grpc.__version__}, defaults: {dict(ended)}")

    assert set(ended) == {"OK", "CANCELLED"}
    assert ended["CANCELLED"] > 0


@pytest.mark.skipif(REFUSES, reason="from 1.82 on they do")
def test_before_1_82_the_defaults_refuse_nothing() -> None:
    """Why the server's extra has its ceiling there: the options alone cost nothing below it."""
    assert burst("defaults") == {"OK": CALLS}

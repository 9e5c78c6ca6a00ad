"""What is no Spark Connect server, or was one, is told soon: the client would try for minutes."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Thread

import grpc
import pytest
from pyspark.sql.connect.client.retries import Retrying

from holdfast.replay.findings import CannotCheck
from holdfast.replay.spark import connect

pytestmark = pytest.mark.slow  # it imports pyspark


class Failed(grpc.RpcError):
    """An error as a call raises it."""

    def __init__(self, status: grpc.StatusCode) -> None:
        self.status = status

    def code(self) -> grpc.StatusCode:
        return self.status

    def trailing_metadata(self) -> tuple[()]:
        return ()


def call(retrying: Retrying, status: grpc.StatusCode) -> None:
    for attempt in retrying:
        with attempt:
            raise Failed(status)


def waits_s(patience: connect.Patience, status: grpc.StatusCode, raised: type[Exception]) -> float:
    """Fail each try of one call; return how long it was waited between tries."""
    waits: list[float] = []
    with pytest.raises(raised):
        call(Retrying(patience, sleep=waits.append), status)
    return sum(waits)


def hang_up(server: socket.socket) -> None:
    """Take each connection, and end it without a word."""
    with suppress(OSError):
        while True:
            server.accept()[0].close()


def test_what_listens_but_is_no_server_of_spark_connect_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As the port of a standalone master is, which `--remote` was given by mistake."""
    monkeypatch.setattr(connect, "_TRIES_MAX", 1)

    with socket.create_server(("127.0.0.1", 0)) as one:
        Thread(target=hang_up, args=(one,), daemon=True).start()
        address = f"sc://127.0.0.1:{one.getsockname()[1]}"
        with pytest.raises(CannotCheck, match=f"no Spark Connect server answers at {address}:"):
            connect.check_server(f"{address}/;user_id=x")
        one.shutdown(socket.SHUT_RDWR)


def test_a_server_that_went_away_is_waited_for_once_and_for_less_than_half_a_minute() -> None:
    """What is cleaned up behind the call that found it are calls as well."""
    patience = connect.Patience()

    assert 10 < waits_s(patience, grpc.StatusCode.UNAVAILABLE, CannotCheck) < 30
    assert waits_s(patience, grpc.StatusCode.UNAVAILABLE, CannotCheck) == 0


def test_another_server_of_grpc_is_no_server_of_spark_connect() -> None:
    """As a node of Holdfast's is: it answers, but that it has no such call."""
    server = grpc.server(ThreadPoolExecutor(1))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        with pytest.raises(CannotCheck, match=f"no Spark Connect server answers at .*:{port}:"):
            connect.check_server(f"sc://127.0.0.1:{port}")
    finally:
        server.stop(None)


def failed_at(times: Sequence[float]) -> list[int]:
    """Fail the tries of one call at these seconds; return how many ms were waited after each."""
    now = [0.0]
    tries, waits = connect.Patience(lambda: now[0]).to_state(), list[int]()
    for now[0] in times:
        waits.append(tries.next_attempt(Failed(grpc.StatusCode.UNAVAILABLE)) or 0)
    return waits


def test_failures_of_one_call_that_are_far_apart_are_no_end_of_the_server() -> None:
    """A call lasts for hours, and what is between may end an idle stream every ten minutes."""
    assert failed_at([600.0 * nth for nth in range(1, 13)]) == [50] * 12


def test_a_second_outage_is_waited_for_as_long_as_the_first() -> None:
    """Each wait is four times the one before, from 50 ms on."""
    first = [0.0, 0.1, 0.4]

    waits = failed_at([*first, *(120.0 + each for each in first)])

    assert waits == [50, 200, 800] * 2


def test_what_a_server_answers_is_not_tried_again() -> None:
    assert waits_s(connect.Patience(), grpc.StatusCode.INVALID_ARGUMENT, Failed) == 0

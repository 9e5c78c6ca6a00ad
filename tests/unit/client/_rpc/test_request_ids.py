"""Request ids: what they are made of, and whose log time the first one follows (S15)."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import pytest

from holdfast.client import Admin
from holdfast.client._rpc.caller import Caller
from holdfast.client._rpc.clock import boot_ms
from holdfast.client._rpc.request_ids import RequestIds
from holdfast.client._session.session_io import Failure, FailureKind
from holdfast.v1 import extras_pb2, group_pb2

LEADER, FOLLOWER = "127.0.0.1:1", "127.0.0.1:2"
TRUE_MS, GUESSED_MS = 50_000_000, 1_000_000


class Nodes(Caller):
    """A caller whose calls are answered here: by a follower that guesses, and by the leader."""

    async def call(self, request: Any, answer: Any, *, timeout_ms: int = 30_000) -> Any:  # noqa: ANN401 - for a generic
        del request, timeout_ms
        at_leader = self.endpoints.current == LEADER
        extras = extras_pb2.ResponseExtras(
            log_time_ms=TRUE_MS if at_leader else GUESSED_MS, leader_hint=LEADER
        )
        self.ids.observe(extras.log_time_ms, boot_ms())
        return answer(holdfast=extras)


def test_s26_a_life_is_named_by_log_time_once_that_is_known_and_by_wall_time_before() -> None:
    ids = RequestIds(wall=lambda: GUESSED_MS)
    before = UUID(ids.make_life(now_ms=5))
    ids.observe(TRUE_MS, 5)
    after = UUID(ids.make_life(now_ms=7))

    assert [each.int >> 80 for each in (before, after)] == [GUESSED_MS, TRUE_MS + 2]
    assert {each.version for each in (before, after)} == {7}


def test_the_leader_is_asked_even_if_a_follower_answered_first() -> None:
    """A follower that started on an idle cluster does not know how long it was idle."""

    async def story() -> str:
        caller = Nodes([FOLLOWER, LEADER])
        return await caller.new_request_id()

    made_ms = UUID(asyncio.run(story())).int >> 80

    assert TRUE_MS <= made_ms < TRUE_MS + 60_000


def test_looking_for_the_log_time_is_part_of_the_time_that_a_call_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else a change asked for with 200 ms would wait half a minute where nobody answers."""
    now_ms = [0]
    given_ms: list[int] = []
    for module in ("_rpc.clock", "_rpc.caller", "aio.admin"):
        monkeypatch.setattr(f"holdfast.client.{module}.boot_ms", lambda: now_ms[0])

    class Slow(Nodes):
        async def call(self, request: Any, answer: Any, *, timeout_ms: int = 30_000) -> Any:  # noqa: ANN401 - for a generic
            given_ms.append(timeout_ms)
            now_ms[0] += 30
            return await super().call(request, answer, timeout_ms=timeout_ms)

    async def story() -> None:
        admin = Admin([FOLLOWER, LEADER], timeout_ms=100)
        admin._caller = Slow([FOLLOWER, LEADER])
        await admin.delete_topics("t")

    asyncio.run(story())
    assert given_ms == [100, 70, 40]


def test_a_node_that_knows_no_log_time_yet_is_asked_again() -> None:
    """Its cluster is not formed; without a log time there is no request id to begin with (S15)."""
    caller = Caller([FOLLOWER, LEADER])

    result = caller.read_answer(FOLLOWER, group_pb2.FindCoordinatorResponse())

    assert isinstance(result, Failure)
    assert result.kind is FailureKind.RETRY
    assert caller.endpoints.current == LEADER


def test_s15_there_is_no_id_before_a_log_time_and_log_time_never_runs_back() -> None:
    ids = RequestIds(lambda bits: (1 << bits) - 1)
    assert (ids.ready, ids.make(5)) == (False, "")
    ids.observe(1_000_000, now_ms=100)
    ids.observe(900_000, now_ms=150)  # an older answer, read later
    made = UUID(ids.make(200))
    assert made.int >> 80 == 1_000_100
    assert (made.version, made.variant) == (7, "specified in RFC 4122")


def test_ids_made_in_one_moment_differ() -> None:
    ids = RequestIds()
    ids.observe(1, now_ms=0)
    assert len({ids.make(7) for _ in range(1_000)}) == 1_000

"""When a call is tried again (S5), for how long, and what each node answers by itself."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.client import HoldfastError, OutcomeUnknown, Unavailable
from holdfast.client._rpc import retries
from holdfast.client._rpc.caller import Caller
from holdfast.client._rpc.retries import Retries
from holdfast.client._session.session_io import Failure, FailureKind
from holdfast.v1 import admin_pb2, extras_pb2, log_pb2
from unit.client.fake_cluster import fake_cluster

NOTHING = Failure(FailureKind.RETRY, Unavailable("nothing happened"), 10)
PERHAPS = Failure(FailureKind.RETRY, OutcomeUnknown("it may have happened"), 10)
FATAL = Failure(FailureKind.FATAL, HoldfastError("no"))
PLAIN = admin_pb2.TransferLeadershipRequest()
WITH_ID = admin_pb2.TransferLeadershipRequest(holdfast=extras_pb2.RequestExtras(request_id="id"))


@pytest.fixture
def now_ms(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The clock, in its first place."""
    now = [1_000]
    monkeypatch.setattr(retries, "boot_ms", lambda: now[0])
    return now


@pytest.mark.usefixtures("now_ms")
def test_s5_what_may_have_happened_is_repeated_by_its_id_alone() -> None:
    assert Retries(PLAIN, 100).pause_ms(NOTHING) == 10
    assert Retries(WITH_ID, 100).pause_ms(PERHAPS) == 10
    assert Retries(admin_pb2.ListTopicsRequest(), 100).pause_ms(PERHAPS) == 10
    assert Retries(log_pb2.WatchRequest(), 100).pause_ms(PERHAPS) == 10
    with pytest.raises(OutcomeUnknown):
        Retries(PLAIN, 100).pause_ms(PERHAPS)


def test_s5_an_attempt_that_may_have_happened_is_told_at_the_end(now_ms: list[int]) -> None:
    """Though the last one surely did not happen."""
    attempts = Retries(WITH_ID, 100)
    attempts.pause_ms(PERHAPS)
    now_ms[0] += 90
    with pytest.raises(OutcomeUnknown):
        attempts.pause_ms(NOTHING)


@pytest.mark.usefixtures("now_ms")
def test_what_cannot_be_helped_ends_the_call() -> None:
    with pytest.raises(HoldfastError, match="no"):
        Retries(WITH_ID, 100).pause_ms(FATAL)


def test_where_nobody_is_a_call_may_end_sooner(now_ms: list[int]) -> None:
    attempts = Retries(WITH_ID, 100, 50)
    now_ms[0] += 40
    assert attempts.pause_ms(NOTHING) == 10
    with pytest.raises(Unavailable):
        attempts.pause_ms(NOTHING, nobody=True)
    attempts.begin()
    assert attempts.pause_ms(NOTHING, nobody=True) == 10


def test_each_given_node_answers_for_itself_and_the_silent_are_named() -> None:
    async def story() -> None:
        async with fake_cluster(2) as (_, nodes):
            here = [node.address for node in nodes]
            caller = Caller([*here, "127.0.0.1:1"])
            asked = admin_pb2.DescribeClusterRequest()
            found = await caller.ask_each(
                asked, admin_pb2.DescribeClusterResponse, timeout_ms=2_000
            )
            await caller.close()
        assert list(found) == [*here, "127.0.0.1:1"]
        *answers, silent = found.values()
        assert all(isinstance(each, admin_pb2.DescribeClusterResponse) for each in answers)
        assert isinstance(silent, Unavailable)

    asyncio.run(story())

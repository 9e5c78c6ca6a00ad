"""When a call is tried again (S5), for how long, and what each node answers by itself."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from holdfast.client import HoldfastError, OutcomeUnknown, Unavailable
from holdfast.client._rpc import retries
from holdfast.client._rpc.caller import Caller
from holdfast.client._rpc.retries import Retries
from holdfast.client._session.session_io import Failure, FailureKind
from holdfast.v1 import admin_pb2, extras_pb2, log_pb2
from unit.client.fake_cluster import fake_cluster

if TYPE_CHECKING:
    from google.protobuf.message import Message

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


@pytest.mark.usefixtures("now_ms")
@pytest.mark.parametrize(
    "change",
    [
        admin_pb2.AddNodeRequest(name="node-4"),
        admin_pb2.PromoteNodeRequest(name="node-4"),
        admin_pb2.RemoveNodeRequest(name="node-4"),
    ],
)
def test_s5_a_change_of_nodes_is_repeated_by_its_name(change: Message) -> None:
    """S25: what is done already is answered so; but what is unknown at the end stays unknown."""
    attempts = Retries(change, 100)
    assert attempts.pause_ms(PERHAPS) == 10
    with pytest.raises(OutcomeUnknown):
        attempts.pause_ms(Failure(FailureKind.RETRY, Unavailable("nobody answers"), 200))


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


def answered(error: Unavailable | OutcomeUnknown) -> Failure:
    """A node's own failure: it has no room, or failed inside."""
    error.answered = True
    return Failure(FailureKind.RETRY, error, 10)


@pytest.mark.usefixtures("now_ms")
def test_s5_a_node_s_own_failure_ends_a_call_after_so_many_in_a_row() -> None:
    full = answered(Unavailable("no room"))
    attempts = Retries(PLAIN, 100, answered_max=2)
    attempts.pause_ms(full)
    attempts.pause_ms(NOTHING)  # no node served this one: the next failure is the first again
    attempts.pause_ms(full)
    with pytest.raises(Unavailable, match="no room"):
        attempts.pause_ms(full)


@pytest.mark.usefixtures("now_ms")
def test_s20_a_program_s_call_goes_on_for_its_whole_time_at_a_full_node() -> None:
    attempts = Retries(PLAIN, 100)
    for _ in range(50):
        assert attempts.pause_ms(answered(Unavailable("no room"))) == 10


def test_s5_a_read_ends_with_its_last_failure(now_ms: list[int]) -> None:
    """It changes nothing, so an earlier attempt has no outcome that could be unknown."""
    attempts = Retries(admin_pb2.ListTopicsRequest(), 100)
    attempts.pause_ms(PERHAPS)
    now_ms[0] += 90
    with pytest.raises(Unavailable):
        attempts.pause_ms(NOTHING)


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

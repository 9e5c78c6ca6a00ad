"""Finding the leader and judging failures: the endpoint walk, S5, and request ids (S15)."""

from __future__ import annotations

import asyncio
import random
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from grpc import StatusCode

from holdfast.client import Admin, Connection, Member
from holdfast.client._rpc.endpoints import BACKOFF_MAX_MS, Endpoints, is_address, parse
from holdfast.client._rpc.request_ids import RequestIds
from holdfast.client._rpc.status import classify
from holdfast.client._session.session_io import FailureKind
from holdfast.client.errors import (
    Forbidden,
    HoldfastError,
    IncompatibleServer,
    InvalidArgument,
    OutcomeUnknown,
    Unavailable,
)
from unit.client.fake_cluster import fake_cluster

if TYPE_CHECKING:
    from collections.abc import Callable

THREE = ("a:1", "b:2", "c:3")


def test_the_first_hint_is_followed_at_once_and_a_chain_of_hints_is_slowed_down() -> None:
    endpoints = Endpoints(THREE, fraction=lambda: 1.0)
    assert endpoints.redirected("a:1", "c:3") == 0
    assert endpoints.current == "c:3"
    assert endpoints.redirected("c:3", "a:1") > 0
    assert endpoints.current == "a:1"


def test_a_node_that_names_nobody_or_itself_is_left_for_the_next() -> None:
    endpoints = Endpoints(THREE)
    endpoints.redirected("a:1", None)
    assert endpoints.current == "b:2"
    endpoints.redirected("b:2", "b:2")
    assert endpoints.current == "c:3"


def test_several_calls_that_fail_at_one_node_move_on_once_and_count_once() -> None:
    """A hundred members of one process would else pause as after a hundred failures in a row."""
    endpoints = Endpoints(THREE, fraction=lambda: 1.0)
    delays = {endpoints.failed("a:1") for _ in range(100)}
    assert endpoints.current == "b:2"
    assert len(delays) == 1
    endpoints.succeeded("b:2")
    assert endpoints.failed("a:1") == 50  # a straggler at a node that was left: the first pause


def test_a_hint_outside_the_list_that_fails_leads_back_into_the_list() -> None:
    endpoints = Endpoints(THREE)
    endpoints.redirected("a:1", "elsewhere:9")
    endpoints.failed("elsewhere:9")
    assert endpoints.current in THREE


def test_a_single_endpoint_is_tried_again() -> None:
    endpoints = Endpoints(("a:1",))
    endpoints.failed("a:1")
    assert endpoints.current == "a:1"


def test_the_delay_has_full_jitter_and_a_bound_that_doubles_until_the_largest() -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}: random.Random({seed}).random")
    endpoints = Endpoints(THREE, fraction=random.Random(seed).random)
    bounds = [min(BACKOFF_MAX_MS, 50 * 2**n) for n in range(40)]
    for bound in bounds:
        assert 0 <= endpoints.failed(endpoints.current) <= bound
    longest = Endpoints(THREE, fraction=lambda: 1.0)
    assert [longest.failed(longest.current) for _ in bounds] == bounds
    longest.succeeded(longest.current)
    assert longest.failed(longest.current) == 50


@pytest.mark.parametrize("wrong", ["a", "a:", ":1", "a:b", ["a:1", "b"]])
def test_an_endpoint_that_is_none_is_refused(wrong: str | list[str]) -> None:
    with pytest.raises(ValueError, match="host:port"):
        parse(wrong)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        *((wrong, "port 0") for wrong in ("a:0", "a:00")),
        *((f"a:{port}", "a port above 65535") for port in (65_536, 99_999, "9" * 5_000)),
    ],
)
def test_a_port_that_no_node_has_is_refused(wrong: str, why: str) -> None:
    """As the `holdfast` command refuses it (server/config/address.py)."""
    with pytest.raises(ValueError, match=f"^Endpoint '{wrong[:40]}.* has {why}") as refused:
        parse(f"b:7400,{wrong}")
    assert len(str(refused.value)) < 200
    assert not is_address(wrong)
    assert parse("a:1,a:65535,a:007400") == ("a:1", "a:65535", "a:007400")


@pytest.mark.parametrize("wrong", [None, 7400, b"a:1", ["a:1", None], [("a", 1)]])
@pytest.mark.parametrize("make", [Admin, Connection, partial(Member, group="g", topics=["t"])])
def test_endpoints_that_are_no_texts_are_refused_by_name(
    make: Callable[[Any], object],
    wrong: Any,  # noqa: ANN401 - that is the point
) -> None:
    with pytest.raises(TypeError, match=r"^endpoints .*host:port"):
        make(wrong)


def test_endpoints_come_as_a_list_or_with_commas() -> None:
    assert parse("a:1, b:2,") == parse(["a:1", "b:2"]) == ("a:1", "b:2")
    with pytest.raises(ValueError, match="No endpoint"):
        Endpoints(())


def judged(code: StatusCode, **trailing: str) -> tuple[FailureKind, type[HoldfastError]]:
    metadata = [(key.replace("_", "-"), value) for key, value in trailing.items()]
    failed = classify(code, "details", metadata, subject="X at a:1", request_id="id-1")
    return failed.kind, type(failed.error)


def test_s5_a_failure_is_unknown_unless_the_metadata_says_not_applied() -> None:
    retry = FailureKind.RETRY
    for code in (StatusCode.UNAVAILABLE, StatusCode.DEADLINE_EXCEEDED, StatusCode.CANCELLED):
        assert judged(code) == (retry, OutcomeUnknown)
        assert judged(code, holdfast_outcome="unknown") == (retry, OutcomeUnknown)
        assert judged(code, holdfast_outcome="not-applied") == (retry, Unavailable)


def test_what_would_end_so_again_is_not_tried_again() -> None:
    """An answer that is too large is no smaller the next time: the caller has to ask for less."""
    code, applied = StatusCode.RESOURCE_EXHAUSTED, "not-applied"
    assert judged(code, holdfast_outcome=applied) == (FailureKind.RETRY, Unavailable)
    told = judged(code, holdfast_outcome=applied, holdfast_retry="no")
    assert told == (FailureKind.FATAL, InvalidArgument)


def test_s5_an_unknown_outcome_tells_the_request_id_to_repeat_it_with() -> None:
    failed = classify(StatusCode.CANCELLED, "", (), subject="X", request_id="id-1")
    assert isinstance(failed.error, OutcomeUnknown)
    assert failed.error.request_id == "id-1"


def test_s17_aborted_is_superseded() -> None:
    assert judged(StatusCode.ABORTED)[0] is FailureKind.SUPERSEDED


def test_what_cannot_heal_is_not_retried() -> None:
    fatal = FailureKind.FATAL
    assert judged(StatusCode.UNIMPLEMENTED) == (fatal, IncompatibleServer)
    assert judged(StatusCode.UNAUTHENTICATED) == (fatal, Forbidden)
    assert judged(StatusCode.INVALID_ARGUMENT) == (fatal, InvalidArgument)


def test_a_call_that_nobody_serves_there_may_have_gone_to_a_peer_port() -> None:
    """The node's own words say which address to use; gRPC's leave two causes, and both are told."""
    told = "this is the peer port of node 'a'; clients connect to 10.0.0.1:7400"
    words = [("holdfast-outcome", "not-applied")]
    by_node = classify(StatusCode.UNIMPLEMENTED, told, words, subject="X", request_id="")
    by_grpc = classify(
        StatusCode.UNIMPLEMENTED, "Method not found!", (), subject="X", request_id=""
    )

    assert "10.0.0.1:7400" in str(by_node.error)
    assert "upgrade" not in str(by_node.error)
    assert "peer port" in str(by_grpc.error)
    assert "client_address" in str(by_grpc.error)
    assert "upgrade" in str(by_grpc.error)


def test_a_peer_port_among_the_endpoints_is_passed_over() -> None:
    """One address that answers is enough, wherever in the list it stands."""

    async def scenario() -> None:
        async with fake_cluster(2) as (group, (wrong, right)):
            group.leader = right.address
            not_here = (StatusCode.UNIMPLEMENTED, (("holdfast-outcome", "not-applied"),))
            group.refuse["ListTopics"] = [not_here]
            async with Admin([wrong.address, right.address]) as admin:
                assert await admin.list_topics()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("details", "error"),
    [
        ("CLIENT: Sent message larger than max (18000165 vs. 16777216)", InvalidArgument),
        ("SERVER: Received message larger than max (18000165 vs. 16777216)", InvalidArgument),
        ("SERVER: Sent message larger than max (18000165 vs. 16777216)", OutcomeUnknown),
        ("CLIENT: Received message larger than max (18000165 vs. 16777216)", OutcomeUnknown),
        ("Received message larger than max (18000165 vs. 16777216)", OutcomeUnknown),
        ("received metadata size exceeds hard limit (17000 vs. 16384)", OutcomeUnknown),
    ],
)
def test_s5_an_answer_that_is_too_large_does_not_mean_that_nothing_happened(
    details: str, error: type[HoldfastError]
) -> None:
    """Only a message that never arrived changed nothing. A repetition would end the same way."""
    status = StatusCode.RESOURCE_EXHAUSTED
    failed = classify(status, details, (), subject="X", request_id="id-1")
    assert (failed.kind, type(failed.error)) == (FailureKind.FATAL, error)
    assert getattr(failed.error, "request_id", "id-1") == "id-1"


def test_a_proxy_that_is_overloaded_is_asked_again() -> None:
    expected = (FailureKind.RETRY, OutcomeUnknown)
    assert judged(StatusCode.RESOURCE_EXHAUSTED) == expected


def test_s15_a_request_id_older_than_the_window_has_an_unknown_outcome_and_no_retry() -> None:
    expected = (FailureKind.FATAL, OutcomeUnknown)
    assert judged(StatusCode.INVALID_ARGUMENT, holdfast_outcome="unknown") == expected


def test_s20_a_full_disk_is_retried() -> None:
    expected = (FailureKind.RETRY, Unavailable)
    assert judged(StatusCode.RESOURCE_EXHAUSTED, holdfast_outcome="not-applied") == expected


def test_every_status_is_judged_and_the_leader_is_read() -> None:
    for code in set(StatusCode) - {StatusCode.OK}:
        trailing = (("holdfast-leader", "b:2"), ("other-bin", b"\0"))
        failed = classify(code, "d", trailing, subject="X", request_id="")
        assert failed.leader == "b:2"


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

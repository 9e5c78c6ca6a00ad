"""Finding the leader: the walk over the endpoints, its delays, and what is no address."""

from __future__ import annotations

import asyncio
import random
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from grpc import StatusCode

from holdfast.client import Admin, Connection, Member
from holdfast.client._rpc.endpoints import Endpoints, is_address, parse
from unit.client.fake_cluster import fake_cluster

if TYPE_CHECKING:
    from collections.abc import Callable

THREE = ("a:1", "b:2", "c:3")


def test_a_hint_is_followed_at_once_and_hints_in_a_circle_are_slowed_down() -> None:
    endpoints = Endpoints(THREE, fraction=lambda: 1.0)
    assert endpoints.redirected("a:1", "c:3") == 0
    assert endpoints.current == "c:3"
    assert endpoints.redirected("c:3", "a:1") == 0
    assert endpoints.current == "a:1"
    assert endpoints.redirected("a:1", "c:3") > 0
    assert endpoints.redirected("c:3", "a:1") > 0


def test_a_new_leader_is_followed_at_once_after_a_long_search() -> None:
    """Else its election is over, and each call still waits for as long as it had searched."""
    endpoints = Endpoints(THREE, fraction=lambda: 1.0)
    endpoints.succeeded("a:1")
    for _ in range(10):
        assert endpoints.failed(endpoints.current) > 0
    endpoints.current = "b:2"
    assert endpoints.redirected("b:2", "c:3") == 0
    assert endpoints.current == "c:3"


def test_a_hint_back_to_the_node_that_has_failed_is_no_news() -> None:
    endpoints = Endpoints(THREE, fraction=lambda: 1.0)
    endpoints.succeeded("a:1")
    endpoints.failed("a:1")
    assert endpoints.redirected("b:2", "a:1") > 0
    assert endpoints.current == "a:1"


def test_a_hint_to_a_node_that_accepts_no_connection_leads_to_the_next() -> None:
    """Followers name a dead leader until they elect another one. Each is asked in turn."""
    endpoints = Endpoints(THREE)
    endpoints.succeeded("a:1")
    endpoints.unreachable("a:1")
    asked = []
    for _ in range(6):
        asked.append(endpoints.current)
        if endpoints.current == "a:1":
            endpoints.unreachable("a:1")
        else:
            endpoints.redirected(endpoints.current, "a:1")
    assert asked == ["b:2", "c:3", "a:1"] * 2
    endpoints.succeeded(endpoints.current)  # from here on a:1 may be back
    endpoints.redirected(endpoints.current, "a:1")
    assert endpoints.current == "a:1"


def test_a_node_outside_the_list_is_found_again_by_hints_alone() -> None:
    """The walk would never come back to it."""
    endpoints = Endpoints(THREE)
    endpoints.redirected("a:1", "elsewhere:9")
    endpoints.unreachable("elsewhere:9")
    endpoints.redirected(endpoints.current, "elsewhere:9")
    assert endpoints.current == "elsewhere:9"


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


def test_the_delay_has_full_jitter_and_a_bound_that_grows_until_the_largest() -> None:
    """It rests at 200 ms during about as long as an election lasts."""
    seed = random.randrange(2**32)
    print(f"seed {seed}: random.Random({seed}).random")
    endpoints = Endpoints(THREE, fraction=random.Random(seed).random)
    bounds = [50, 100, *[200] * 4, 400, 800, *[1_000] * 20]
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

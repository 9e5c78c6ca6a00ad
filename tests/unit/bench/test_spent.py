"""What an operation costs, from counters of known nodes and threads."""

import pytest

from bench.figures import Cost
from bench.spent import Snapshot, Spent, between

BEFORE = Snapshot(
    at=10.0,
    client=1.0,
    busy=50.0,
    nodes={"n1": 5.0, "n2": 7.0, "n3": 1.0},
    switches={"n1": {1: 100, 2: 50}, "n2": {1: 10}, "n3": {1: 10}},
)
AFTER = Snapshot(
    at=12.0,
    client=1.5,
    busy=54.0,
    nodes={"n1": 5.2, "n2": 8.0, "n3": 1.4},
    switches={"n1": {1: 120, 2: 50}, "n2": {1: 1_010, 9: 1_000}, "n3": {1: 50}},
)


def test_a_cost_is_a_difference_divided_by_the_operations() -> None:
    """The leader is told from the followers, which stand in the order of their names."""
    cost = between(BEFORE, AFTER, "n2", 0.0).cost(1_000)
    assert cost.leader_us == pytest.approx(1_000)
    assert cost.followers_us == pytest.approx((200, 400))
    assert cost.client_us == pytest.approx(500)
    assert cost.sum_us == pytest.approx(2_100)
    assert (cost.leader_switches, cost.followers_switches) == (2.0, (0.02, 0.04))


def test_a_thread_that_ended_takes_its_switches_with_it() -> None:
    """A difference of sums would fall below what the living threads did, or below 0."""
    ended = AFTER._replace(switches={**AFTER.switches, "n1": {2: 53}})
    assert between(BEFORE, ended, "n1", 0.0).switches["n1"] == 3


def test_a_node_that_died_is_left_out() -> None:
    died = AFTER._replace(nodes={"n2": 8.0, "n3": 1.4}, switches={"n2": {1: 10}, "n3": {1: 10}})
    spent = between(BEFORE, died, "n1", 0.0)
    assert set(spent.nodes) == {"n2", "n3"}
    assert spent.cost(1).leader_us == 0


def test_the_effort_is_in_cores_and_the_rest_of_the_machine_is_foreign() -> None:
    effort = between(BEFORE, AFTER, "n2", 3.5).effort
    assert effort.seconds == 2.0
    assert effort[1:5] == pytest.approx((0.5, 0.3, 0.25, 0.95))
    assert effort.load == 3.5


def test_coarser_counters_of_the_machine_never_make_foreign_work_negative() -> None:
    assert between(BEFORE, AFTER._replace(busy=50.0), "n2", 0.0).effort.foreign == 0.0


def test_stretches_add_up() -> None:
    one = between(BEFORE, AFTER, "n2", 0.0)
    both = one + one
    assert both.seconds == 4.0
    assert both.cost(2_000) == one.cost(1_000)


def test_a_single_server_has_no_followers() -> None:
    spent = Spent(1.0, "bare", {"bare": 0.5}, {"bare": 10}, 0.25, 1.0, 0.0)
    assert spent.cost(10) == Cost(50_000, (), 25_000, 1.0, ())


def test_no_operation_has_no_cost() -> None:
    with pytest.raises(ValueError, match="no operation"):
        between(BEFORE, AFTER, "n2", 0.0).cost(0)

"""The goal of unary heartbeats: processor time against that of an empty server in the same run."""

from bench.figures import Cost, Figure
from bench.heartbeats import beside_bare
from bench.shapes import BARE_ROW, Shape

COST = Cost(200, (20, 20), 160, 4, (1, 1))


def figure(row: str, cost: Cost) -> Figure:
    return Figure(row, "", 2_000, "heartbeats/s", cost=cost, shape=Shape.HEARTBEATS)


def test_a_heartbeat_may_cost_a_quarter_more_than_a_call_to_an_empty_server() -> None:
    for leader, verdict in ((240, "ok"), (320, "short")):
        bare = figure(BARE_ROW, COST._replace(leader_us=160, followers_us=()))
        (found,) = beside_bare([bare, figure("heartbeat", COST._replace(leader_us=leader - 40))])
        assert found.value == (leader + 160) / 320
        assert found.verdict == verdict


def test_without_an_empty_server_in_the_run_there_is_nothing_to_reach() -> None:
    assert not beside_bare([figure("heartbeat", COST)])

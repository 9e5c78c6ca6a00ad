"""When a node is ready: it knows a leader, has the newest state, and lacks no data."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.raft.api import Status
from holdfast.server.http.pages import health_pages
from holdfast.server.http.readiness import LAG_S_MAX, Freshness, Readiness
from unit.runtime.fake_replica import FakeReplica

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.server.http.pages import Answer

FOLLOWING = Status(
    role="follower",
    term=1,
    leader="node-2",
    stage="member",
    commit_index=10,
    handed_index=10,
    evolved_index=10,
    first_index=1,
    last_index=10,
    peers=(),
    current_at=0.0,
    current_index=10,
)
"""A follower that has everything that it has heard of."""


class Follower(FakeReplica):
    """A replica whose engine says what a test wants."""

    def __init__(self) -> None:
        super().__init__()
        self.node_id, self.lease = "node-1", False
        self.says = FOLLOWING
        self.applied(10)

    def applied(self, index: int) -> None:
        """Let the state reflect this entry, and a cluster."""
        self.state = self.state._replace(applied_index=index, cluster_id="c")

    def hears(self, index: int, at: float) -> None:
        """Let the leader have said at `at` that this is the last committed entry."""
        self.says = replace(self.says, commit_index=index, current_index=index, current_at=at)

    def status(self) -> Status:
        return self.says


class Probed:
    """A node and its checks, on a clock that a test moves."""

    def __init__(self) -> None:
        self.now, self.replica = 0.0, Follower()
        self.readiness = Readiness(lambda: self.now)
        self.must_recover, self.caught_up = False, True

    async def ask(self, path: str, **query: str) -> Answer:
        return await health_pages(self.readiness)[path].make(query)

    async def problems(self) -> str:
        """What /readyz says; `ok` if the status says so."""
        answer = await self.ask("/readyz")
        assert (answer.status == 200) == (answer.content == b"ok\n")
        return answer.content.decode().strip()


def probed(look: Callable[[Probed], Any]) -> None:
    """Run a test on a node that has opened its data."""

    async def run() -> None:
        it = Probed()
        it.readiness.opened(it.replica, lambda: it.must_recover, lambda: it.caught_up)
        await look(it)
        it.readiness.stopping()

    asyncio.run(run())


def test_a_follower_that_has_the_newest_state_is_ready() -> None:
    async def look(it: Probed) -> None:
        assert await it.problems() == "ok"

    probed(look)


@pytest.mark.parametrize(
    ("says", "check"),
    [
        (replace(FOLLOWING, leader=None), "leader"),
        (replace(FOLLOWING, stage="rebuilding"), "stage"),
        (replace(FOLLOWING, stage="forming"), "stage"),
    ],
)
def test_what_the_log_lacks_is_told(says: Status, check: str) -> None:
    async def look(it: Probed) -> None:
        it.replica.says = says
        assert (await it.problems()).startswith(f"[-] {check}: ")

    probed(look)


def test_a_node_without_a_cluster_is_not_ready() -> None:
    async def look(it: Probed) -> None:
        it.replica.state = it.replica.state._replace(cluster_id="")
        assert (await it.problems()).startswith("[-] state: ")

    probed(look)


def test_s13_a_restored_node_is_not_ready_before_the_recovery_number_is_raised() -> None:
    """Followers, too: what they apply is of the time before."""

    async def look(it: Probed) -> None:
        it.must_recover = True
        assert (await it.problems()).startswith("[-] recovered: the cluster was restored")
        it.must_recover = False
        assert await it.problems() == "ok"

    probed(look)


def test_s4_a_node_that_was_started_is_not_ready_before_it_has_caught_up() -> None:
    """It would be sent readers whom it refuses."""

    async def look(it: Probed) -> None:
        it.caught_up = False
        assert (await it.problems()).startswith("[-] caught-up: this node was started")
        it.caught_up = True
        assert await it.problems() == "ok"

    probed(look)


def test_a_follower_that_hears_nothing_any_more_is_not_ready() -> None:
    """It may still name a leader, for as long as no election begins."""

    async def look(it: Probed) -> None:
        it.now = LAG_S_MAX + 1
        assert (await it.problems()).startswith("[-] lag: for 6 s ")

    probed(look)


def test_a_follower_that_applies_more_slowly_than_entries_come_is_not_ready() -> None:
    """Something is applied all the time, and the leader is heard, yet the state grows older."""

    async def look(it: Probed) -> None:
        for second in range(1, 30):
            it.now = float(second)
            it.replica.hears(10 + 10 * second, it.now)
            it.replica.applied(10 + 5 * second)
            await it.ask("/readyz")
        assert (await it.problems()).startswith("[-] lag: ")

    probed(look)


def test_a_follower_that_keeps_up_under_load_is_ready() -> None:
    """It never has the very last entry, but always one of a moment ago."""

    async def look(it: Probed) -> None:
        for second in range(1, 30):
            it.now = float(second)
            it.replica.hears(10 + 10 * second, it.now)
            it.replica.applied(10 * second)
            assert await it.problems() == "ok"

    probed(look)


def test_a_leader_is_as_fresh_as_its_lease() -> None:
    async def look(it: Probed) -> None:
        it.replica.says = replace(FOLLOWING, role="leader", leader="node-1", current_index=0)
        it.replica.leading_term, it.replica.lease = 1, True
        it.now = 100.0
        assert await it.problems() == "ok"
        it.replica.lease = False
        it.now = 200.0
        assert (await it.problems()).startswith("[-] lag: ")

    probed(look)


def test_a_node_that_stops_is_not_ready_and_lives() -> None:
    async def look(it: Probed) -> None:
        it.readiness.stopping()
        assert (await it.problems()).startswith("[-] running: ")
        assert (await it.ask("/livez")).status == 200

    probed(look)


def test_a_node_whose_log_stopped_does_not_live() -> None:
    async def look(it: Probed) -> None:
        it.replica.callbacks.stopped("the disk failed")
        answer = await it.ask("/livez")
        assert (answer.status, answer.content) == (503, b"[-] log: the disk failed\n")

    probed(look)


def test_a_node_that_reads_its_disk_lives_and_is_not_ready() -> None:
    """A restart would only make it begin again."""

    async def look() -> None:
        it = Probed()
        assert (await it.ask("/livez")).status == 200
        assert (await it.problems()).startswith("[-] opened: ")

    asyncio.run(look())


def test_verbose_shows_each_check_in_a_line() -> None:
    async def look(it: Probed) -> None:
        it.replica.says = replace(FOLLOWING, leader=None)
        lines = (await it.ask("/readyz", verbose="")).content.decode().splitlines()
        names = [line.split()[1].removesuffix(":") for line in lines]
        ready = ["running", "opened", "stage", "leader", "caught-up", "lag", "state", "recovered"]
        assert names == ["loop", "log", *ready]
        assert [line[:3] for line in lines].count("[-]") == 1

    probed(look)


def test_what_is_applied_counts_from_when_it_was_heard_to_be_the_last() -> None:
    replica, now = Follower(), 0.0
    freshness = Freshness(replica, lambda: now)
    now = 2.0
    replica.hears(20, 1.5)
    freshness.look()
    replica.hears(30, 2.0)
    replica.applied(20)
    now = 3.0

    assert freshness.age_s() == 1.5

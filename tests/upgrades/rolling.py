"""Rolls a real cluster between this version and a test build of the next, under load.

A node is replaced as docs/operations/upgrading.md says: stopped gracefully, started as the other
version on its directory, and the next one only when the cluster is whole. The first that leads is
not spared. What must be so at every step is asserted here; what is counted goes into a row.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from cluster.kept import behind, fetched
from cluster.load import PARTITIONS, TOPIC
from cluster.processes import INSECURE, poll, running
from harness.next_version import LEVEL, RELEASE
from holdfast.cli.render.readiness import Readiness
from holdfast.coordinator.model.levels import LEVEL_MAX
from upgrades.crews import MixedLoad
from upgrades.evidence import CommitLog, generations, moved_since
from upgrades.judge import Row, longest_gap, lost, twice
from upgrades.plan import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from cluster.processes import RunningCluster
    from holdfast.v1.admin_pb2 import DescribeClusterResponse
    from upgrades.plan import Round, Step

REST_S: Final = 0.02
COMMITS: Final = 50
"""So many changes are acknowledged after each step before the next one."""
NODES: Final = 3
LOAD_SECONDS_MAX: Final = 86_400.0
"""Of one cluster, however many rounds it serves."""
TOO_NEW: Final = f"its state is of a newer level than {LEVEL_MAX}"


class Rolling:
    """A cluster of this version under load, and the rounds that it goes through."""

    def __init__(self, cluster: RunningCluster, newer: Mapping[str, str], load: MixedLoad) -> None:
        """`newer`: the environment of a node of the next version."""
        self.cluster, self._newer, self.load = cluster, newer, load
        self._log = CommitLog(cluster)
        self._judged = 0

    def run(self, planned: Round) -> Row:
        """Take the steps of a round; return what came of it."""
        before = generations(self.cluster)
        given_up, begin = len(self.load.lost), time.monotonic()
        for done, step in enumerate(planned.steps):
            if planned.kind is Kind.END and done == NODES - 1:
                self._end_is_refused(step.node)
            self._replace(step)
        restarts = len(planned.steps)
        if planned.kind is Kind.END:
            self._end()
            self._old_is_refused(planned.steps[0].node)
            restarts += 1
        end = time.monotonic()
        moves = moved_since(self.cluster, before) + len(self.load.lost) - given_up
        return self._row(planned, restarts, moves, (begin, end))

    def _row(self, planned: Round, restarts: int, moves: int, lasted: tuple[float, float]) -> Row:
        acked = self.load.witness[self._judged :]
        self._judged += len(acked)
        self._log.read_past(acked)
        missing = lost(acked, self._log.commits) or behind(fetched(self.cluster), acked)
        gap_s = longest_gap((each.ended for each in acked), *lasted)
        doubled = twice(self._log.commits)
        counts = (len(acked), moves, len(missing), len(doubled))
        return Row(planned.number, planned.kind, restarts, *counts, gap_s)

    # --- steps ---

    def _replace(self, step: Step) -> None:
        self.cluster.stop_gracefully(step.node)
        self._start(step.node, newer=step.newer)
        described = self.cluster.describe(step.node)
        assert described is not None
        assert (described.version == RELEASE) is step.newer

    def _start(self, node: str, *, newer: bool) -> None:
        self.cluster.environment = self._newer if newer else None
        self.cluster.bring_back(node)
        self._await_whole()
        self.load.await_more(COMMITS)

    def _await_whole(self) -> None:
        readiness = Readiness()
        try:
            poll(lambda: not readiness.missing(self._seen()), "the cluster is whole")
        except TimeoutError as error:
            error.add_note(readiness.missing(self._seen()))
            raise

    def _seen(self) -> list[tuple[str, DescribeClusterResponse | None]]:
        return [(name, self.cluster.describe(name)) for name in self.cluster.names]

    # --- the end of an upgrade ---

    def _end_is_refused(self, older: str) -> None:
        """While a node is of the older version, which could not read what would be written."""
        refused = self.cluster.ask("cluster", "upgrade", "finish")
        assert refused.returncode == 1, refused.stdout
        assert f"node {older!r} runs Holdfast" in refused.stderr
        assert f"whose newest level is {LEVEL_MAX}" in refused.stderr

    def _end(self) -> None:
        """Raise the level; an event that only the next version knows follows at once."""
        self.cluster.create_topic("before", 1)
        ended = self.cluster.ask("cluster", "upgrade", "finish")
        assert ended.stdout == f"level {LEVEL} is in force\n", ended.stderr
        self.cluster.create_topic("after", 1)
        self.load.await_more(COMMITS)

    def _old_is_refused(self, node: str) -> None:
        """From now on nobody can go back; the node says so, and nothing of it is lost."""
        self.cluster.stop_gracefully(node)
        self.cluster.environment = None
        assert TOO_NEW in self.cluster.try_to_start(node)
        self._start(node, newer=True)


@contextmanager
def rolled(directory: Path, newer: Mapping[str, str]) -> Iterator[Rolling]:
    """A cluster of this version with its load; at the end all nodes must have one state (S3)."""
    with running(directory, NODES, *INSECURE) as cluster:
        cluster.create_topic(TOPIC, PARTITIONS)
        given = cluster.addresses, cluster.tls, REST_S, LOAD_SECONDS_MAX
        with MixedLoad(*given) as load:
            load.await_crew()
            yield Rolling(cluster, newer, load)
        assert len({one.digest for one in cluster.settled()}) == 1

"""`holdfast replay tail` of real nodes under load: killed again and again, it has each event once.

The command is killed together with its JVM, whose workers end by that. Each life is a new one.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
from pyspark.sql import SparkSession

from cluster.load import PARTITIONS, TOPIC, Load
from cluster.processes import RunningCluster, running
from harness.children import environment
from harness.poll import until
from holdfast.replay.stream.followed import Segments, ServedLog
from holdfast.replay.stream.served import Nodes
from holdfast.storage.segments.segments import segments_in
from spark.followed_logs import LIMITS, alerts, events, followed

PATIENCE_S: Final = 600.0
"""How long a test waits for a batch or a segment: a start of Spark is much for a busy machine."""
PAUSE_S: Final = 2.0
"""Between two commits of a committer: there is always something new, and a processor is left."""
AT_ONCE: Final = ("--set", "group.initial_rebalance_delay_ms=0")
ALERTING: Final = (
    *("--restless", str(LIMITS.turns), "--storm", str(LIMITS.rebalances)),
    *("--ownerless", str(LIMITS.ownerless_ms / 1000)),
)


class Kill(NamedTuple):
    """When a life ends."""

    batches: int
    """Once there are so many more whole batches,"""
    behind: str
    """and then something new of this kind."""
    leader: bool = False
    """Whether the node that leads is killed at the same time."""


WRITES, SHOWN, NOTED = "writing/*/_temporary", "events/*", "checkpoint/commits/[0-9]*"
"""A batch is half written; it is shown, and its alerts may not be; Spark has noted it."""
KILLS: Final = (
    Kill(0, WRITES),
    Kill(0, SHOWN),
    Kill(1, NOTED, leader=True),
    Kill(1, WRITES),
    Kill(1, SHOWN),
)


@contextmanager
def tailing(cluster: RunningCluster, out: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Follow until the block ends; then the command, and all it has started, is killed at once."""
    asked = ("--cluster", str(cluster.directory), "--out", str(out), "--every", "0.1")
    with said(out).open("ab") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "holdfast.cli", "replay", "tail", *asked, *ALERTING],
            env=environment(),
            stdout=stream,
            stderr=stream,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def said(out: Path) -> Path:
    """What all lives have said."""
    return out.parent / "said"


def found(out: Path, kind: str) -> set[Path]:
    return set(out.glob(kind))


def under_way(out: Path) -> bool:
    """Whether a process was killed within a batch: it is half written, or what it left is."""
    shown = sorted(each.name for each in found(out, SHOWN))
    known = {each.stem for each in found(out, "state/*.json")}
    return bool(found(out, "writing/*")) or (bool(shown) and shown[-1] not in known)


def live_until(cluster: RunningCluster, out: Path, kill: Kill, down: str) -> str:
    """Follow up to a kill, while a node that is down comes back; return the node killed, or ""."""
    least = len(found(out, SHOWN)) + kill.batches
    with tailing(cluster, out) as process:

        def holds(reached: Callable[[], object]) -> bool:
            assert process.poll() is None, said(out).read_text()
            return bool(reached())

        if down:
            cluster.bring_back(down)
        wait = partial(until, within_s=PATIENCE_S)
        wait(lambda: holds(lambda: len(found(out, SHOWN)) >= least), f"{least} whole batches")
        seen = found(out, kill.behind)
        leader = cluster.leader() if kill.leader else ""
        wait(lambda: holds(lambda: found(out, kill.behind) - seen), f"a new {kill.behind}")
        if leader:
            cluster.kill(leader)
    return leader


def kill_again_and_again(cluster: RunningCluster, out: Path) -> set[tuple[int, int]]:
    """Have it killed while a cluster works; return where what was acknowledged is on the log.

    A kill may come too late for its window, and after the batch; not each of them.
    """
    down, within = "", list[bool]()
    with Load(cluster.addresses, cluster.tls, PAUSE_S, seconds_max=6 * PATIENCE_S) as load:
        load.await_crew()
        for kill in KILLS:
            down = live_until(cluster, out, kill, down)
            within.append(under_way(out))
        load.await_more(20, bounces=1)
        assert load.bounces > LIMITS.turns
        assert any(within), "no kill came within a batch"
    return {each.position for each in load.witness}


def sealed_at(cluster: RunningCluster) -> Path:
    """Have all that is on the log now sealed; return the directory of a node that has done it."""
    data = cluster.data(cluster.names[0])
    done = cluster.run("log", "seal", "--timeout", "0", "--cluster", str(cluster.directory))
    assert done.returncode == 0, done.stderr
    until(lambda: segments_in(data / "segments"), "a sealed segment", within_s=PATIENCE_S)
    return data


def places(rows: pa.Table) -> list[tuple[int, int]]:
    return list(zip(rows["idx"].to_pylist(), rows["ordinal"].to_pylist(), strict=True))


def before(told: list[dict[str, Any]], end_ms: int) -> list[dict[str, Any]]:
    """The alerts before a time: what is due at the end of a log is told by what comes after."""
    return [each for each in told if each["at_ms"] < end_ms]


def test_killed_five_times_under_load_it_has_every_event_and_alert_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    """As the archive has them: in and behind batches, and once as the leader is killed as well."""
    out, undisturbed = tmp_path / "out", tmp_path / "undisturbed"
    with running(tmp_path / "c", 3, *AT_ONCE) as cluster:
        cluster.create_topic(TOPIC, PARTITIONS)
        acknowledged = kill_again_and_again(cluster, out)
        folder = sealed_at(cluster)
        followed(spark, ServedLog.of(Nodes(tuple(cluster.addresses), cluster.tls)), out)
        followed(spark, Segments(folder), undisturbed)

    rows, archived = events(out), events(undisturbed)
    end_ms = max(archived["log_time_ms"].to_pylist())
    assert len(found(out, SHOWN)) > sum(each.batches for each in KILLS)
    assert len(set(places(rows))) == rows.num_rows
    assert acknowledged <= set(places(archived))
    assert rows.slice(0, archived.num_rows).equals(archived)
    assert before(alerts(out), end_ms) == before(alerts(undisturbed), end_ms)
    assert "restless" in {each["kind"] for each in before(alerts(out), end_ms)}

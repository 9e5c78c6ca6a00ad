"""What must be true in the end: the index is exact, and Spark proves the log of all three nodes.

The index is compared with the one that a plain single process made. The log is replayed from what
the nodes left on disk: their sealed segments, and the rest of the event log as an exported tail.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from demo import job
from holdfast.coordinator.model.ids import Position
from holdfast.storage.codec.state_image import digest_of, restore
from holdfast.storage.segments.seal import seal
from holdfast.storage.segments.segments import FORMAT_VERSION
from holdfast.storage.state.state_store import StateStore

if TYPE_CHECKING:
    from demo.cluster import Node, Published
    from demo.phases import Stage
    from demo.settings import Place
    from holdfast.storage.state.rules import StateMeta

STATE: Final = "state"
TAIL: Final = "tail"
SEGMENTS: Final = "segments"
ALONE_S: Final = 120.0
_CHAINS: Final = "chains"
_LAST_ORDINAL: Final = (1 << 31) - 1


class Left(NamedTuple):
    """What a stopped node left on disk: how far it had come, and the digest of its live state."""

    node: str
    meta: StateMeta
    digest: int


def require_spark() -> None:
    """Fail before anything is started where the proof could not be made.

    Raises `SparkMissing` or `NoJava`, whose sentences say what to install.
    """
    from holdfast.replay.spark.java import find_java  # noqa: PLC0415 - importing it is the question

    find_java()


class Alone:
    """The plain single process; it runs beside the cluster, with low priority."""

    def __init__(self, place: Place) -> None:
        command = [sys.executable, "-P", "-m", "demo.job", str(place.alone)]
        self._out = place.alone
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)

    def rows(self) -> list[job.Row]:
        """Its index, when it has ended. Raises if it fails."""
        if code := self._process.wait(ALONE_S):
            raise RuntimeError(f"the plain process that computes the index ended with code {code}")
        return job.read_rows(self._out)

    def kill(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()


def check_index(stage: Stage, alone: Alone) -> None:
    """The index equals the one of the plain process, each file exactly once."""
    expected = alone.rows()
    found = stage.store.results()
    wrong = set(expected) ^ set(found)
    exact = not wrong and len(found) == len(expected)
    stage.check("index exact", f"{len(found)} rows, {len(wrong)} differ", held=exact)


def read_left(cluster_id: str, nodes: Sequence[Node]) -> list[Left]:
    """Read the state of stopped nodes, and export the unsealed rest of each one's event log."""
    return [_read_one(cluster_id, node) for node in nodes]


def _read_one(cluster_id: str, node: Node) -> Left:
    store = StateStore(node.data / STATE)
    try:
        meta = store.meta()
        contents = [record.content for record in store.load() if record.database != _CHAINS]
    finally:
        store.close()
    if meta is None:
        raise RuntimeError(
            f"{node.name} stopped without making its state durable; see its node.log"
        )
    end = Position(meta.index, _LAST_ORDINAL)
    list(seal(node.data / STATE, node.data / TAIL, end, cluster_id, node.name, FORMAT_VERSION))
    return Left(node.name, meta, digest_of(restore(contents)))


def check_log(
    stage: Stage, nodes: Sequence[Node], left: Sequence[Left], published: Sequence[Published]
) -> None:
    """Equal digests on three nodes, live and stopped; and each has sealed a part of its log."""
    live = {(one.index, one.digest.hex()) for one in published}
    stage.check("live digests equal on three nodes", _said(live), held=len(live) == 1)
    states = {(one.meta.index, f"{one.digest:016x}{one.meta.chain.hex()}") for one in left}
    equal = len(states) == len(
        {index for index, _ in states}
    )  # one may have stopped an entry later
    stage.check("stopped states equal on three nodes", _said(states), held=equal)
    sealed = [len(list((node.data / SEGMENTS).glob("[0-9]*"))) for node in nodes]
    stage.check("sealed segments on each node", sealed, held=min(sealed) > 0)


def _said(digests: Iterable[tuple[int, str]]) -> str:
    return ", ".join(f"{digest[:16]} at {index}" for index, digest in sorted(digests))


def replay(stage: Stage, place: Place, nodes: Sequence[Node], left: Sequence[Left]) -> str:
    """Verify and draw with Spark; returns the table of the verification for people."""
    from holdfast.replay import app  # noqa: PLC0415 - Spark's modules take a second to load

    farthest = max(left, key=lambda one: one.meta.index)
    meta = farthest.meta
    expected = app.Expected(meta.index, meta.log_time_ms, farthest.digest, meta.chain)
    frozen = [
        app.Frozen(one.worker, int(one.at * 1000), int(one.until * 1000)) for one in stage.freezes
    ]
    folders = [node.data for node in nodes]
    marks = [app.Mark(int(mark.at * 1000), mark.text) for mark in stage.marks]
    with app.session(quick=True) as spark:
        report = app.verify(
            folders, expected_digest=expected, witness=place.witnesses(), spark=spark
        )
        stage.say("verified; now the report and its picture")
        app.report(folders, place.folder, marks=marks, frozen=frozen, spark=spark)
    stage.check("log verified by Spark", report.table().splitlines()[-1], held=report.passed)
    return report.table()

"""`./dev agree`: exit codes tell a difference from a failure, and evidence stays as it was."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import duckdb
import pytest

from agreement import run
from holdfast.chaos.workload.anchors import ANCHORS as TOLD_IN_CHAOS
from holdfast.replay.generate.plan import Plan
from holdfast.replay.generate.write import ANCHORS, write_history
from holdfast.replay.read.node_logs import TAIL
from holdfast.storage.codec.event_codec import CodecError
from holdfast.storage.segments.checkpoint import CheckpointFlawed

COPIES = "import shutil, sys; shutil.copytree({!r}, sys.argv[4])"
"""In the place of the command that exports: what it would write is there already."""


def asked(monkeypatch: pytest.MonkeyPatch, *options: object) -> int:
    monkeypatch.setattr(sys, "argv", ["agree", *map(str, options)])
    return run.main()


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a run of chaos leaves of one node, whose tail lies aside."""
    folder = tmp_path_factory.mktemp("evidence")
    plan = Plan(600, groups=6, seed=1, nodes=1, segment_events=250, witness=False, anchors=9)
    made = write_history(plan, folder / "made").folder
    shutil.move(made / "node-1", folder / "out/cluster/n1/data")
    shutil.move(folder / "out/cluster/n1/data" / TAIL, folder / "exported")
    shutil.move(made / ANCHORS, folder / "out" / TOLD_IN_CHAOS)
    return folder


def test_the_evidence_of_chaos_is_only_read(
    evidence: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What the node had not sealed is exported to where the run works."""
    exported = str(evidence / "exported")
    monkeypatch.setattr(run, "EXPORT", (sys.executable, "-c", COPIES.format(exported)))
    before = sorted((evidence / "out").rglob("*"))

    assert asked(monkeypatch, "--chaos", evidence / "out", "--seed", 1, "--work", tmp_path) == 0
    assert sorted((evidence / "out").rglob("*")) == before
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "error",
    [
        ValueError("bad\nmore of it"),
        CodecError("bad", "record"),
        CheckpointFlawed("bad"),
        duckdb.IOException("bad\nLINE 1"),
        OSError("bad"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_cannot_be_compared_is_told_in_one_line_and_is_no_difference(
    error: Exception,
    evidence: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Code 1 belongs to a difference that was found."""
    monkeypatch.setattr(run, "compare", raising(error))

    assert asked(monkeypatch, "--node-dir", evidence / "out/cluster/n1/data") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "bad" in line


def test_ctrl_c_ends_it_with_130(evidence: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "compare", raising(KeyboardInterrupt()))

    assert asked(monkeypatch, "--node-dir", evidence / "out/cluster/n1/data") == 130


def raising(error: BaseException) -> object:
    def compare(*_: object) -> object:
        raise error

    return compare


def test_no_place_at_all_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit) as ended:
        asked(monkeypatch, "--positions", 0)

    assert ended.value.code == 2

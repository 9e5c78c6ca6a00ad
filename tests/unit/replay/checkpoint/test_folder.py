"""A checkpoint that is damaged, of something else, or of another history proves nothing (S13).

Each gives one sentence or a finding, and never leaves a log verified by mistake.
"""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from holdfast.coordinator.kernel.apply import replay
from holdfast.coordinator.model.events import RecoveryNumberRaised
from holdfast.coordinator.model.state import State
from holdfast.replay.checkpoint.folder import Folder, opened
from holdfast.replay.checkpoint.record import Verified, parsed, written
from holdfast.replay.findings import CannotCheck, Report, WrongUse
from holdfast.replay.read.log_rows import part_name
from holdfast.storage.segments.checkpoint import encode_checkpoint
from holdfast.storage.segments.file_contents import sha256_of
from holdfast.storage.segments.segment_writer import write_segment
from holdfast.storage.segments.segments import bucket_file, bucket_of, segments_in
from spark.cut_logs import checkpoint_at
from spark.event_logs import EventLog, committed, write_node
from unit.replay.checkpoint.plain_run import CUT_AT, LOG, run


def kinds(report: Report) -> set[str]:
    return {finding.kind for finding in report.findings}


def record_in(folder: Path) -> Verified:
    return parsed((folder / "verified.json").read_bytes())


def rewritten(folder: Path, **values: Any) -> None:  # noqa: ANN401 - fields of a record
    """Make the record say something else, and its sum fit."""
    record = record_in(folder)._replace(**values)
    (folder / "verified.json").write_bytes(written(record))


# --- damaged ---


def flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def a_record_cut_short(folder: Path) -> None:
    path = folder / "verified.json"
    path.write_bytes(path.read_bytes()[:-20])


def a_record_that_is_none(folder: Path) -> None:
    (folder / "verified.json").write_text('{"format": 1}')


def a_number_changed(folder: Path) -> None:
    path = folder / "verified.json"
    path.write_text(path.read_text().replace('"records": 30', '"records": 31'))


def a_part_of_the_state_flipped(folder: Path) -> None:
    flipped(next(iter(sorted(folder.glob("state-*/bucket-*")))))


def a_part_of_the_state_gone(folder: Path) -> None:
    next(iter(sorted(folder.glob("state-*/cluster*")))).unlink()


DAMAGE: Sequence[Callable[[Path], None]] = (
    a_record_cut_short,
    a_record_that_is_none,
    a_number_changed,
    a_part_of_the_state_flipped,
    a_part_of_the_state_gone,
)


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_checkpoint_is_refused_and_full_replaces_it(
    damage: Callable[[Path], None], nodes: list[Path], kept: Path
) -> None:
    damage(kept)

    with pytest.raises(CannotCheck, match=r"the checkpoint is damaged: .* --full"):
        run(nodes, kept)

    report = run(nodes, kept, full=True).report
    assert report.passed
    assert any("compared with nothing" in note for note in report.notes)
    assert run(nodes, kept).report.passed


def test_a_newer_form_is_refused_and_is_not_overwritten(nodes: list[Path], kept: Path) -> None:
    path = kept / "verified.json"
    path.write_text(path.read_text().replace('"format": 1', '"format": 2'))

    for full in (False, True):
        with pytest.raises(WrongUse, match="format 2, and this version reads 1"):
            run(nodes, kept, full=full)


def test_the_checkpoint_of_another_cluster_is_refused_and_is_not_overwritten(
    kept: Path, tmp_path: Path
) -> None:
    write_segment(tmp_path / "other" / "segments", LOG.rows, "another", "n1")

    for full in (False, True):
        with pytest.raises(WrongUse, match="of the cluster 'c', and these segments are of 'ano"):
            run([tmp_path / "other"], kept, full=full)


def test_a_folder_of_something_else_is_refused(nodes: list[Path]) -> None:
    with pytest.raises(WrongUse, match="holds segments, and no run left that"):
        run(nodes, nodes[0])


def test_a_second_run_at_the_same_time_is_refused(nodes: list[Path], kept: Path) -> None:
    with opened(kept), pytest.raises(CannotCheck, match="another verification uses"):
        run(nodes, kept)


# --- broken off ---


def test_a_run_that_is_interrupted_leaves_the_last_checkpoint(
    nodes: list[Path], kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (kept / "verified.json").read_bytes()

    def interrupted(_: Folder, record: Verified) -> None:
        raise KeyboardInterrupt(record.state)

    monkeypatch.setattr(Folder, "keep", interrupted)
    with pytest.raises(KeyboardInterrupt) as caught:
        run(nodes, kept)
    monkeypatch.undo()

    assert (kept / str(caught.value)).is_dir()
    assert (kept / "verified.json").read_bytes() == before
    assert run(nodes, kept).report.passed
    assert len(list(kept.glob("state-*"))) == 1, "what was left over is removed"


def test_s20_a_disk_that_is_full_is_told_and_the_last_checkpoint_is_there(
    nodes: list[Path], kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (kept / "verified.json").read_bytes()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("holdfast.replay.checkpoint.folder.rename_durably", full)
    with pytest.raises(CannotCheck, match=r"cannot be written to .*No space .* as it was"):
        run(nodes, kept)

    assert (kept / "verified.json").read_bytes() == before


# --- lies ---


def test_a_checkpoint_that_lies_about_a_chain_is_found(nodes: list[Path], kept: Path) -> None:
    """The record and the sums fit; the first records behind it do not go on with what it says."""
    record = record_in(kept)
    path = kept / record.state / part_name("")
    told = checkpoint_at(LOG, CUT_AT[1])
    alone = told._replace(heads={"": bytes(32)}, state=State(raised_to=told.state.raised_to))
    path.write_bytes(b"".join(encode_checkpoint(alone)))
    rewritten(kept, parts={**record.parts, path.name: sha256_of(path)})
    for name in ("g0", "g1", "g2"):
        lying_about_a_group(kept, name)

    report = run(nodes, kept).report

    assert "chain" in kinds(report)
    assert report.kept is None


def lying_about_a_group(kept: Path, group: str) -> None:
    record, told = record_in(kept), checkpoint_at(LOG, CUT_AT[1])
    path = kept / record.state / part_name(bucket_file(bucket_of(group)))
    path.write_bytes(b"".join(encode_checkpoint(told._replace(heads={group: bytes(32)}))))
    rewritten(kept, parts={**record.parts, path.name: sha256_of(path)})


def test_full_tells_of_a_state_that_was_not_what_the_records_lead_to(
    nodes: list[Path], kept: Path
) -> None:
    """The chain is right, so that nothing in the log is doubtful; a new checkpoint is left."""
    rewritten(kept, digest=record_in(kept).digest ^ 1)

    report = run(nodes, kept, full=True).report

    assert report.passed
    assert any("proved nothing" in note for note in report.notes)


# --- another history ---


def other_history(nodes: list[Path], *, restored: bool) -> None:
    """All nodes go on otherwise behind the first segment, as after a restore or a forgery."""
    log, begun = EventLog(), checkpoint_at(LOG, CUT_AT[0])
    log.records, log.rows = LOG.records[: CUT_AT[0]], LOG.rows[: CUT_AT[0]]
    log.state, log.heads = replay(State(), log.records), dict(begun.heads)
    log.index = begun.last.index
    if restored:
        log.entry("", RecoveryNumberRaised(1, begun.last.index))
    for nth in range(40):
        log.entry("g0", committed(nth % 4, 1000 + nth))
    for node in nodes:
        shutil.rmtree(node)
        write_node(node, node.name, log.rows, CUT_AT)


def test_logs_that_were_rewritten_with_their_chains_are_found(
    nodes: list[Path], kept: Path
) -> None:
    other_history(nodes, restored=False)

    report = run(nodes, kept).report
    assert not report.passed
    assert kinds(report) & {"missing", "bytes", "manifest"}

    report = run(nodes, kept, full=True).report
    assert kinds(report) == {"checkpoint"}
    assert "one of both was rewritten" in report.findings[0].text
    assert report.kept is None


def test_s13_after_a_restore_the_checkpoint_is_of_another_line(
    nodes: list[Path], kept: Path
) -> None:
    other_history(nodes, restored=True)

    with pytest.raises(WrongUse, match=r"another line .* recovery 1 kept entries up to \d+ only"):
        run(nodes, kept)

    report = run(nodes, kept, full=True).report
    assert report.passed
    assert any("another line" in note for note in report.notes)
    assert run(nodes, kept).report.passed


def test_a_log_that_ends_before_the_checkpoint_is_found(nodes: list[Path], kept: Path) -> None:
    for node in nodes:
        for segment in segments_in(node / "segments")[1:]:
            shutil.rmtree(segment)

    assert kinds(run(nodes, kept).report) == {"missing"}
    assert kinds(run(nodes, kept, full=True).report) == {"checkpoint"}


@pytest.mark.parametrize("others", [0, 3])
def test_an_empty_directory_is_no_log_that_was_verified(
    others: int, nodes: list[Path], kept: Path, tmp_path: Path
) -> None:
    """Also where nothing is new on the other nodes."""
    run(nodes, kept)
    (tmp_path / "empty").mkdir()

    report = run([*nodes[:others], tmp_path / "empty"], kept).report

    assert {(f.kind, f.node) for f in report.findings} == {("missing", str(tmp_path / "empty"))}

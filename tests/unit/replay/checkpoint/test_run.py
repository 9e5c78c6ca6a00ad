"""A run with a checkpoint reads only what is new, and never calls verified what is not (S22, S24).

The log of three nodes grows by a segment; what the first run has verified is left alone, found if
it changed, and proven anew with --full.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.replay.checkpoint.folder import opened
from holdfast.replay.checkpoint.run import CheckpointRun
from holdfast.replay.findings import Report, WrongUse
from holdfast.replay.read.log_rows import Bucket
from holdfast.replay.read.node_logs import node_logs
from holdfast.replay.read.url_path import archive_path
from holdfast.replay.verify.checkpoint.rows import checkpoint_rows
from holdfast.storage.segments.checkpoint import write_checkpoint
from holdfast.storage.segments.segment_writer import write_segment
from holdfast.storage.segments.segments import BUCKETS, bucket_file, segments_in
from spark.cut_logs import beginning, checkpoint_at
from spark.event_logs import EventLog, busy_log, committed, eventful_log, write_node
from unit.replay.checkpoint.plain_run import CUT_AT, LOG, grown, run, sealed


def kinds(report: Report) -> set[tuple[str, str]]:
    return {(finding.kind, finding.node) for finding in report.findings}


def test_s24_only_what_is_new_is_read_and_leads_to_the_same_state(
    nodes: list[Path], kept: Path
) -> None:
    done = run(nodes, kept)

    assert done.report.findings == ()
    assert done.report.passed
    assert done.state == LOG.state._replace(applied_index=LOG.records[-1].position.index)
    new = {str(segments_in(node / "segments")[2]) for node in nodes}
    assert {os.path.dirname(path) for path in done.read} == new  # noqa: PTH120 - paths as text
    assert done.report.records == len(LOG.rows) - CUT_AT[1]
    assert done.report.kept == LOG.rows[-1].position


def test_s24_sql_gets_the_same_rows_as_from_a_checkpoint_of_retention(tmp_path: Path) -> None:
    """Among them the count of the cluster's own records, which are in another part."""
    log = eventful_log()
    count = len(log.rows) // 2
    node = write_node(tmp_path / "n1", "n1", log.rows[:count])
    run([node], tmp_path / "kept")
    write_segment(node / "segments", log.rows[count:], "c", "n1")

    with opened(tmp_path / "kept") as folder:
        (narrowed,) = CheckpointRun(folder, node_logs([node]), full=False).logs
    other = beginning(tmp_path / "cut", log, count)
    of_all = narrowed.begins._replace(touched_only=False)

    for name in map(bucket_file, range(BUCKETS)):
        mine = list(checkpoint_rows(Bucket(name, (), of_all)))
        assert mine == list(checkpoint_rows(Bucket(name, (), other)))
    assert narrowed.begins.digest == other.digest


def test_the_report_says_how_much_was_not_read_again(nodes: list[Path], kept: Path) -> None:
    trusted = run(nodes, kept).report.trusted

    assert trusted is not None
    old = [path for n in nodes for s in segments_in(n / "segments")[:2] for path in s.iterdir()]
    assert trusted.files == sum(path.suffix == ".parquet" for path in old)
    assert trusted.records == CUT_AT[1]
    assert trusted.last == LOG.rows[CUT_AT[1] - 1].position


def test_trust_is_chained_from_run_to_run(nodes: list[Path], kept: Path) -> None:
    run(nodes, kept)
    more = continued()
    for node in nodes:
        write_segment(node / "segments", more.rows[len(LOG.rows) :], "c", node.name)

    third = run(nodes, kept)

    assert third.report.passed
    assert third.state == more.state
    assert third.report.trusted is not None
    assert third.report.trusted.records == len(LOG.rows)


def continued() -> EventLog:
    """The same log, and some commits more."""
    log = busy_log()
    for nth in range(5):
        log.entry("g0", committed(nth % 4, 100 + nth))
    return log


def test_nothing_new_is_told_without_reading_anything(nodes: list[Path], kept: Path) -> None:
    run(nodes, kept)

    again = run(nodes, kept)

    assert (again.read, again.report.passed, again.report.records) == (set(), True, 0)
    assert again.report.last == LOG.rows[-1].position


def test_a_tail_is_read_each_time_for_other_bytes_come_in_its_place(
    nodes: list[Path], tmp_path: Path
) -> None:
    for node in nodes:
        write_segment(node / "tail", LOG.rows[15:45], "c", node.name)

    first = run(nodes, tmp_path / "checkpoint").report
    assert (first.passed, first.records) == (True, 45)
    assert first.kept == LOG.rows[CUT_AT[1] - 1].position

    second = run(nodes, tmp_path / "checkpoint").report
    assert (second.passed, second.records) == (True, 45 - CUT_AT[1])


def test_without_a_sealed_segment_in_common_no_checkpoint_is_left(tmp_path: Path) -> None:
    nodes = [write_node(tmp_path / n, n, LOG.rows, cut) for n, cut in (("a", ()), ("b", ()))]
    shutil.move(nodes[0] / "segments", nodes[0] / "tail")

    report = run(nodes[:1], tmp_path / "checkpoint").report

    assert (report.passed, report.kept) == (True, None)
    assert any("no checkpoint was left" in note for note in report.notes)


# --- what was verified has changed since ---


def first_file(node: Path) -> Path:
    return next(path for path in sorted(segments_in(node / "segments")[0].glob("*.parquet")))


def flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def flipped_with_its_times_set_back(path: Path) -> None:
    """Whoever does that changes the time of the change."""
    before = path.stat()
    flipped(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def shortened(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def removed(path: Path) -> None:
    shutil.rmtree(path.parent)


def added(path: Path) -> None:
    """A segment that was not there then, before the end of what was verified."""
    write_segment(path.parent.parent, LOG.rows[5:8], "c", "n2")


def in_one_piece(path: Path) -> None:
    """What was sealed as two segments is one, and reaches behind the checkpoint."""
    shutil.rmtree(segments_in(path.parent.parent)[2])
    write_segment(path.parent.parent, LOG.rows[25:], "c", "n2")


def other_manifest(path: Path) -> None:
    manifest = path.parent / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"count": 20', '"count": 21'))


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (flipped, "bytes"),
        (flipped_with_its_times_set_back, "bytes"),
        (shortened, "bytes"),
        (removed, "missing"),
        (added, "extra"),
        (in_one_piece, "manifest"),
        (other_manifest, "manifest"),
    ],
)
def test_s22_what_has_changed_since_is_found_and_blamed_on_its_node(
    change: Callable[[Path], None], kind: str, nodes: list[Path], kept: Path
) -> None:
    before = (kept / "verified.json").read_bytes()
    change(first_file(nodes[1]))

    report = run(nodes, kept).report

    assert (kind, "n2") in kinds(report)
    assert {node for _, node in kinds(report)} == {"n2"}
    assert not report.passed
    assert (kept / "verified.json").read_bytes() == before, "the old checkpoint is kept"


def test_a_file_that_was_only_touched_or_copied_is_hashed_and_trusted(
    nodes: list[Path], kept: Path
) -> None:
    first_file(nodes[1]).touch()

    report = run(nodes, kept).report

    assert report.passed
    check = next(check for check in report.checks if check.name == "files verified before")
    assert int(check.covered.split(",")[1].split()[0]) > 0


def test_a_log_behind_a_url_is_hashed_and_trusted(nodes: list[Path], kept: Path) -> None:
    """A store tells no times to trust, but the bytes of its files are those that were verified."""
    run(nodes, kept)
    behind_urls = [archive_path(f"file://{node}") for node in nodes]

    done = run(behind_urls, kept)

    assert done.report.findings == ()
    assert done.report.passed


def test_a_change_that_leaves_no_trace_is_found_by_full_alone(
    nodes: list[Path], kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the disk itself flips a bit; the report tells that the file was not read."""
    monkeypatch.setattr("holdfast.replay.checkpoint.run.look_of", lambda _: "same")
    monkeypatch.setattr("holdfast.replay.checkpoint.narrowing.look_of", lambda _: "same")
    run(nodes, kept, full=True)
    flipped(first_file(nodes[1]))

    report = run(nodes, kept).report
    assert report.passed
    assert "not read again" in report.table()

    assert "n2" in {node for _, node in kinds(run(nodes, kept, full=True).report)}


def test_full_reads_everything_and_leaves_a_new_checkpoint(nodes: list[Path], kept: Path) -> None:
    done = run(nodes, kept, full=True)

    assert done.report.passed
    assert done.report.trusted is None
    assert done.report.records == len(LOG.rows)
    assert done.report.kept == LOG.rows[-1].position


def test_a_run_that_finds_something_leaves_the_old_checkpoint(
    nodes: list[Path], kept: Path
) -> None:
    before = sorted(path.name for path in kept.iterdir())
    flipped(next(iter(segments_in(nodes[2] / "segments")[2].glob("*.parquet"))))

    report = run(nodes, kept).report

    assert not report.passed
    assert report.kept is None
    assert sorted(path.name for path in kept.iterdir()) == before


# --- other nodes ---


def test_a_node_that_is_new_is_trusted_if_its_files_are_those_of_another(
    nodes: list[Path], kept: Path, tmp_path: Path
) -> None:
    (more,) = sealed(tmp_path / "nodes", ["n4"])
    grown([more])

    report = run([*nodes, more], kept).report

    assert report.passed
    assert report.trusted is not None


def test_a_node_that_is_new_and_holds_other_bytes_is_refused(
    nodes: list[Path], kept: Path, tmp_path: Path
) -> None:
    (more,) = sealed(tmp_path / "nodes", ["n4"])
    grown([more])
    flipped(first_file(more))

    with pytest.raises(WrongUse, match=r"node n4 is not in the checkpoint .* --full"):
        run([*nodes, more], kept)


def test_a_node_that_is_not_given_is_told(nodes: list[Path], kept: Path) -> None:
    report = run(nodes[:2], kept).report

    assert report.passed
    assert any("n3" in note for note in report.notes)


def test_s24_retention_may_delete_what_was_verified(nodes: list[Path], kept: Path) -> None:
    for node in nodes:
        write_checkpoint(node / "segments", checkpoint_at(LOG, CUT_AT[0]))
        shutil.rmtree(segments_in(node / "segments")[0])

    done = run(nodes, kept)

    assert done.report.findings == ()
    assert done.report.passed
    assert done.state == LOG.state._replace(applied_index=LOG.records[-1].position.index)


def test_s24_a_log_that_begins_behind_the_checkpoint_is_read_whole(
    nodes: list[Path], kept: Path
) -> None:
    """Between both lies what nobody has verified: nothing is trusted, and the report says so."""
    for node in nodes:
        write_checkpoint(node / "segments", checkpoint_at(LOG, CUT_AT[1] + 5))
        for segment in segments_in(node / "segments")[:2]:
            shutil.rmtree(segment)

    report = run(nodes, kept).report

    assert report.passed
    assert report.trusted is None
    assert any("was not compared: the log" in note for note in report.notes)

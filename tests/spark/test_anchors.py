"""A log is compared with what nodes told of it earlier, which nobody could rewrite with it (S3)."""

from __future__ import annotations

import fcntl
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from holdfast.coordinator.model.events import LevelRaised, RecoveryNumberRaised
from holdfast.coordinator.model.ids import Position
from holdfast.replay.app import verify
from holdfast.replay.read.anchor_files import Anchor
from holdfast.replay.read.log_rows import HEAD, Cut
from holdfast.replay.read.node_logs import buckets_of, node_log, sources_by_segment
from holdfast.replay.read.own_states import own_states
from holdfast.replay.verify.anchor_marks import MARK, restores_in, summed
from holdfast.replay.verify.anchors import Outcome, compared, marks_of
from holdfast.replay.verify.cluster_fold import fold_cluster
from holdfast.replay.verify.group_fold import fold_bucket
from holdfast.storage.segments.segment_reader import CLUSTER_FILE
from spark.anchored import anchor_of, rewritten, store_state, write_anchors
from spark.cut_logs import write_cut_node
from spark.event_logs import EventLog, busy_log, committed, eventful_log, write_node, write_nodes

LOG = busy_log()
VICTIM = next(n for n, r in enumerate(LOG.records) if r.request_id == "c13")
AT = LOG.records[VICTIM].position.index
FORGED = rewritten(LOG, VICTIM, committed(1, 999_999))


def compare(folder: Path, anchors: Sequence[Anchor]) -> Outcome:
    """Fold a log and compare it with anchors: what the workers do, one after the other, here."""
    log = node_log(folder)
    marks, buckets = marks_of(anchors, log.begins), buckets_of(log)
    cluster = buckets[CLUSTER_FILE].sources if CLUSTER_FILE in buckets else ()
    rows = [row for each in buckets.values() for row in fold_bucket(each, cluster, Cut(), marks)]
    rows += fold_cluster(sources_by_segment(log), Cut(), log.begins, marks)
    reached = summed([row for row in rows if row.tag == MARK], marks)
    (head,) = (row for row in rows if row.tag == HEAD)
    last = Position(head.idx, head.ordinal)
    return compared(anchors, reached, restores_in(rows), log.begins, last)


def test_s3_a_log_that_all_nodes_had_rewritten_with_its_chains_is_found_by_anchors(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Nothing else finds it. An anchor from before the change holds; those from after it do not."""
    nodes = [write_node(tmp_path / n, n, FORGED) for n in ("n1", "n2", "n3")]
    store_state(nodes[1], LOG, AT + 2, "n2")  # it was left as it was
    kept = write_anchors(tmp_path / "kept", anchor_of(LOG, AT - 1), anchor_of(LOG, AT, "n3"))

    report = verify(nodes, anchors=[kept], spark=spark)

    assert [c.name for c in report.checks if not c.passed] == [
        "anchors",
        "states on the nodes' disks",
    ]
    assert [(f.kind, f.node, f.position and f.position.index) for f in report.findings] == [
        ("anchor", "", AT),
        ("anchor", "", AT),
        ("anchor", "n2", AT + 2),
        ("anchor", "n2", AT + 2),
    ]
    told = f"the anchor of node n3 at index {AT} ({kept}, number 2) tells"
    assert all(f.text.startswith(told) for f in report.findings[:2])
    assert "the chain" in report.findings[0].text
    assert "digest" in report.findings[1].text


@pytest.mark.parametrize("log", [LOG, eventful_log()], ids=["busy", "eventful"])
def test_s3_anchors_at_every_index_of_an_honest_log_hold(log: EventLog, tmp_path: Path) -> None:
    """Groups that are deleted and come again, levels, settings, requests; over three segments."""
    anchors = [anchor_of(log, index) for index in range(1, log.index + 1)]

    found = compare(write_node(tmp_path, "n1", log.rows, (9, 30)), anchors)

    assert found == Outcome(log.index, [], [])


def test_s3_a_state_that_the_records_do_not_lead_to_is_told_from_another_chain(
    tmp_path: Path,
) -> None:
    """Equal chains and unequal digests: the node had another state after the same records."""
    wrong = anchor_of(LOG, AT)._replace(digest=1)

    found = compare(write_node(tmp_path, "n1", LOG.rows), [wrong])

    assert [f.kind for f in found.findings] == ["anchor"]
    assert "digest 0000000000000001" in found.findings[0].text


def test_s3_an_anchor_beyond_the_log_does_not_pass_in_silence(
    tmp_path: Path,
) -> None:
    """The end is missing on all nodes. Behind it, an entry without a record would be no loss."""
    folder = write_node(tmp_path, "n1", LOG.rows[:-3])
    shorter = EventLog(records=LOG.records[:-3])
    end = shorter.records[-1].position.index
    anchors = [anchor_of(LOG, LOG.index), anchor_of(shorter, end + 1)]
    own = anchor_of(LOG, LOG.index)._replace(own=True)

    found = compare(folder, [*anchors, own])

    assert found.compared == 1
    assert [f.kind for f in found.findings] == ["anchor"]
    assert f"{anchors[0]} lies beyond the log" in found.findings[0].text
    assert [note.startswith(f"{own} lies beyond the log") for note in found.notes] == [True]


def test_s24_an_anchor_from_before_the_checkpoint_is_noted_and_later_ones_are_compared(
    tmp_path: Path,
) -> None:
    count = 20
    cut = LOG.records[count - 1].position
    anchors = [anchor_of(LOG, index) for index in (cut.index - 1, cut.index, AT, LOG.index)]

    found = compare(write_cut_node(tmp_path, "n1", LOG, count), anchors)

    where = f"lies before the checkpoint at {cut.index}.{cut.ordinal}: it was not compared"
    assert found == Outcome(3, [], [f"the anchor of node n1 at index {cut.index - 1} {where}"])


def branch(log: EventLog, *, commits: int, offset: int) -> EventLog:
    """The log, and changes that another branch of it does not have."""
    made = replace(log, records=[*log.records], rows=[*log.rows], heads={**log.heads})
    for _ in range(commits):
        made.entry("g0", committed(1, offset))
    return made


def restored(log: EventLog) -> EventLog:
    """The log as a restored cluster goes on with it: the next leader's entries, and a change."""
    made = branch(log, commits=0, offset=0)
    made.silent_entry()
    made.entry("", LevelRaised(2))
    made.entry("", RecoveryNumberRaised(1, log.index))
    return branch(made, commits=3, offset=8)


def test_s13_an_anchor_of_what_a_restore_dropped_is_noted_and_accuses_nobody(
    tmp_path: Path,
) -> None:
    """It is of entries that are in no log any more; also one that is beyond the restored log."""
    dropped, kept = branch(LOG, commits=9, offset=7), restored(LOG)
    old = [anchor_of(dropped, index) for index in (LOG.index, LOG.index + 2, dropped.index)]
    new = [anchor_of(kept, index) for index in range(1, kept.index + 1)]

    found = compare(write_node(tmp_path, "n1", kept.rows), [*old, *new])

    assert dropped.index > kept.index
    assert (found.compared, found.findings) == (1 + kept.index, [])
    why = f"is of recovery 0, and by the log recovery 1 kept entries up to {LOG.index} only"
    assert [note.split(":")[0] for note in found.notes] == [f"{each} {why}" for each in old[1:]]


def test_s13_a_restore_excuses_no_rewriting_of_what_it_kept_or_of_what_followed_it(
    tmp_path: Path,
) -> None:
    log = restored(LOG)
    last = len(log.records) - 1
    before, after = anchor_of(log, AT), anchor_of(log, log.index)

    kept = compare(
        write_node(tmp_path / "kept", "n1", rewritten(log, VICTIM, committed(1, 999_999))), [before]
    )
    new = compare(
        write_node(tmp_path / "new", "n1", rewritten(log, last, committed(1, 999_999))), [after]
    )

    assert {f.text.split(" tells ")[0] for f in kept.findings} == {str(before)}
    assert {f.text.split(" tells ")[0] for f in new.findings} == {str(after)}
    assert "of recovery 1" in str(after)


def test_s13_a_log_that_begins_behind_a_restore_knows_of_it_by_its_checkpoint(
    tmp_path: Path,
) -> None:
    dropped, kept = branch(LOG, commits=9, offset=7), restored(LOG)
    anchors = [anchor_of(dropped, dropped.index), anchor_of(kept, kept.index)]

    found = compare(write_cut_node(tmp_path, "n1", kept, len(kept.records) - 1), anchors)

    assert (found.compared, found.findings) == (1, [])
    assert "recovery 1 kept entries" in found.notes[0]


def test_s13_old_disks_are_told_from_the_restored_cluster_that_told_an_anchor(
    tmp_path: Path,
) -> None:
    """The log of before the restore does not lead to what was told after it."""
    dropped, kept = branch(LOG, commits=9, offset=7), restored(LOG)

    found = compare(write_node(tmp_path, "n1", dropped.rows), [anchor_of(kept, kept.index)])

    assert {f.kind for f in found.findings} == {"anchor"}
    assert all("of recovery 1 tells" in f.text for f in found.findings)


def test_an_anchor_of_another_cluster_is_refused_by_name(tmp_path: Path) -> None:
    nodes = write_nodes(tmp_path, LOG)

    with pytest.raises(ValueError, match=r"'other', and these segments are of 'c'"):
        verify(nodes, anchors=[anchor_of(LOG, AT, cluster="other")])


@pytest.mark.parametrize("log", [LOG, eventful_log()], ids=["busy", "eventful"])
def test_s3_the_state_on_a_disk_is_an_anchor_of_its_index(log: EventLog, tmp_path: Path) -> None:
    """Every kind of record of a state is in the digest."""
    store_state(tmp_path, log, log.index, "n1")

    found = own_states([("n1", tmp_path)], {"c"})

    told = anchor_of(log, log.index)._replace(source=str(tmp_path), own=True)
    assert found == ([told], [], [])


def test_a_directory_on_which_a_node_runs_is_left_alone(tmp_path: Path) -> None:
    store_state(tmp_path, LOG, AT, "n1")

    with (tmp_path / "lock").open("rb+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # as a node does
        found = own_states([("n1", tmp_path)], {"c"})

    assert found == ([], [], [f"the state in {tmp_path} was not compared: a node runs on it"])


def test_s21_a_state_that_is_cut_short_is_a_finding(tmp_path: Path) -> None:
    """LMDB maps its file, and a page that is not there kills its reader: a child reads first."""
    store_state(tmp_path, LOG, AT, "n1")
    data = tmp_path / "state" / "data.mdb"
    data.write_bytes(data.read_bytes()[:9_000])

    found = own_states([("n1", tmp_path)], {"c"})

    assert found.anchors == []
    assert [(f.kind, f.node) for f in found.findings] == [("unreadable", "n1")]


def test_a_state_of_another_cluster_beside_the_segments_is_a_finding(tmp_path: Path) -> None:
    store_state(tmp_path, LOG, AT, "n1")

    found = own_states([("n1", tmp_path)], {"another"})

    assert found.anchors == []
    assert [(f.kind, f.node) for f in found.findings] == [("anchor", "n1")]
    assert "another cluster" in found.findings[0].text


def test_a_folder_of_segments_alone_has_no_state_to_compare(tmp_path: Path) -> None:
    assert own_states([("n1", write_node(tmp_path, "n1", LOG.rows))], {"c"}) == ([], [], [])

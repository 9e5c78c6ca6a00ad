"""What a folder holds is checked from its first record or from a checkpoint (S24)."""

from __future__ import annotations

from shutil import rmtree
from typing import TYPE_CHECKING

import pytest

from holdfast.coordinator.model.events import HistoryCut, LevelRaised
from holdfast.replay.read.node_logs import node_log
from holdfast.storage.segments.checkpoint import (
    checkpoint_name,
    read_checkpoint,
    write_checkpoint,
)
from holdfast.storage.segments.cut import make_checkpoint, remove_cut
from holdfast.storage.segments.held_log import held_log
from holdfast.storage.segments.log_check import FROM_THE_FIRST, NodeLog, check_node
from holdfast.storage.segments.segments import MANIFEST, segments_in
from unit.storage.segments.sealed_history import History, history

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def node(tmp_path: Path) -> History:
    return history(tmp_path)


def checked(node: History) -> NodeLog:
    held = held_log("n1", node.segments)
    rest = [row for row in node.log.rows if row.position > node.boundaries[-1]]
    log = check_node("n1", held.segments, rest, held.start)
    return log._replace(flaws=[*held.flaws, *log.flaws])


def with_checkpoint(node: History, number: int) -> History:
    last = node.boundaries[number]
    make_checkpoint(node.segments, last, node.digest_at(last), iter(()))
    return node


def test_a_log_that_was_never_cut_is_checked_from_its_first_record(node: History) -> None:
    log = checked(node)
    assert (log.flaws, log.whole, log.cut) == ([], True, None)


def test_s24_all_that_is_there_is_checked_although_there_is_a_checkpoint(node: History) -> None:
    """A leader has made one, and its proposal was lost: nothing was deleted."""
    with_checkpoint(node, 1)

    assert held_log("n1", node.segments).start is FROM_THE_FIRST
    assert len(checked(node).hashes) == len(node.log.rows)


@pytest.mark.parametrize("number", [0, 1, 2])
def test_s24_a_log_that_was_cut_off_is_checked_from_the_checkpoint(
    node: History, number: int
) -> None:
    last = node.boundaries[number]
    with_checkpoint(node, number)
    remove_cut(node.segments, last)

    log = checked(node)
    assert (log.flaws, log.whole, log.cut) == ([], True, last)
    assert list(log.hashes) == [row.position for row in node.rows_behind(last)]


def test_s24_segments_that_a_crash_left_before_the_checkpoint_are_passed_over(
    node: History,
) -> None:
    with_checkpoint(node, 1)
    rmtree(segments_in(node.segments)[0])

    log = checked(node)
    assert (log.flaws, log.cut) == ([], node.boundaries[1])


def test_s24_a_damaged_checkpoint_is_named(node: History) -> None:
    last = node.boundaries[0]
    with_checkpoint(node, 0)
    remove_cut(node.segments, last)
    path = node.segments / checkpoint_name(last)
    path.write_bytes(path.read_bytes()[:-3])

    log = checked(node)
    assert "is damaged" in str(log.flaws[0])
    assert not log.whole


def test_s24_with_nothing_sealed_behind_two_checkpoints_the_newer_one_counts(
    node: History,
) -> None:
    """A crash came between the removal of the last segment and that of the older checkpoint."""
    last = node.boundaries[-1]
    with_checkpoint(with_checkpoint(node, 0), -1)
    for segment in segments_in(node.segments):
        rmtree(segment)

    log = checked(node)
    assert (log.flaws, log.cut) == ([], last)


def test_s24_a_segment_that_is_missing_behind_the_checkpoint_is_a_flaw(node: History) -> None:
    with_checkpoint(node, 0)
    remove_cut(node.segments, node.boundaries[0])
    rmtree(segments_in(node.segments)[0])

    assert "are missing" in str(checked(node).flaws[0])


def test_s24_a_replay_begins_at_the_checkpoint_of_a_log_without_its_beginning(
    node: History,
) -> None:
    """A spare checkpoint is none: everything is there, and is replayed."""
    with_checkpoint(node, 1)
    log = node_log(node.segments.parent)
    assert (len(log.segments), log.begins.cut) == (3, False)

    last = node.boundaries[1]
    remove_cut(node.segments, last)
    log = node_log(node.segments.parent)
    assert (len(log.segments), log.begins.last, log.findings) == (1, last, ())
    assert log.begins.digest == node.digest_at(last)


def test_s24_a_checkpoint_without_the_digest_that_the_log_tells_is_a_flaw(node: History) -> None:
    """The hash chains go on from it all the same: they say nothing of the state in it."""
    last = node.boundaries[0]
    right = node.digest_at(last)
    node.log.entry("", LevelRaised(2), HistoryCut(last, node.log.now_ms, right))
    with_checkpoint(node, 0)
    remove_cut(node.segments, last)
    assert checked(node).flaws == []

    made = read_checkpoint(node.segments / checkpoint_name(last))
    write_checkpoint(node.segments, made._replace(state=made.state._replace(backed_up=7)))

    (flaw,) = checked(node).flaws
    assert f"and the log says {right.hex()[:16]}" in str(flaw)


def test_s24_a_manifest_that_is_damaged_behind_a_checkpoint_is_a_flaw(node: History) -> None:
    with_checkpoint(node, 0)
    remove_cut(node.segments, node.boundaries[0])
    (segments_in(node.segments)[0] / MANIFEST).write_text("{")

    assert "damaged manifest" in str(checked(node).flaws[0])

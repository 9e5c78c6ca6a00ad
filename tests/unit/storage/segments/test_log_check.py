"""`check_node` and `compare`: a log that was written passes, and every kind of damage is named."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from shutil import rmtree

import pytest

from holdfast.coordinator.model.events import (
    Cause,
    ClusterFormed,
    Event,
    GroupCreated,
    GroupEmptied,
    Record,
    SegmentSealed,
)
from holdfast.coordinator.model.ids import Position
from holdfast.storage.codec.event_codec import (
    CHAIN_START,
    append_chain,
    chain_hash,
    encode_record,
    split_chain,
)
from holdfast.storage.segments.log_check import NodeLog, check_node, compare
from holdfast.storage.segments.segment_writer import write_segment
from holdfast.storage.segments.segments import MANIFEST, Row, segments_in

BOUNDARIES = (10, 20)
LAST = 30
CHAIN = 34
"""Bytes of the chain hash at the end of a record, with its tag."""


def written(*, changed: int = 0) -> list[Row]:
    """A log as nodes write it: chains as S3 says. `changed`: another cause at that index."""
    heads: dict[str, bytes] = {}
    counts: dict[str, int] = {}
    total, rows = CHAIN_START, []
    for index in range(1, LAST + 1):
        group, event = _event(index)
        counts[group] = counts.get(group, 0) + 1
        cause = Cause("A1", "Changed" if index == changed else "JoinGroup")
        place = Position(index, 0)
        payload = encode_record(Record(place, group, counts[group], 1, 1, cause, "", "", event))
        total = chain_hash(total, payload)
        if group:
            heads[group] = chain_hash(heads.get(group, CHAIN_START), payload)
        rows.append(Row(place, append_chain(payload, heads[group] if group else total)))
    return rows


def _event(index: int) -> tuple[str, Event]:
    if index == 1:
        return "", ClusterFormed("c", ())
    if index - 1 in BOUNDARIES:
        return "", SegmentSealed(Position(index - 1, 0))
    group = f"g{index % 3}"
    return group, GroupCreated() if index <= 4 else GroupEmptied(index)


def sealed(folder: Path, rows: list[Row]) -> tuple[Path, list[Row]]:
    """Segments up to the last boundary, and the rest."""
    for before, last in pairwise((0, *BOUNDARIES)):
        write_segment(folder, [r for r in rows if before < r.position.index <= last], "c", "n")
    return folder, [row for row in rows if row.position.index > BOUNDARIES[-1]]


def checked(folder: Path, rest: list[Row], node: str = "n") -> NodeLog:
    return check_node(node, segments_in(folder), rest)


def test_what_was_written_passes(tmp_path: Path) -> None:
    log = checked(*sealed(tmp_path, written()))

    assert log.flaws == []
    assert log.whole
    assert list(log.hashes) == [Position(index, 0) for index in range(1, LAST + 1)]


LAST_OF_THEIR_CHAINS = {21, 28, 29, 30}


@pytest.mark.parametrize("index", sorted({*range(1, LAST)} - LAST_OF_THEIR_CHAINS))
def test_a_record_that_is_not_there_is_noticed(index: int) -> None:
    """S3: by the chain of its group or over all records, and by the group's count."""
    rows = [row for row in written() if row.position.index != index]

    assert check_node("n", [], rows).flaws


@pytest.mark.parametrize("index", sorted(LAST_OF_THEIR_CHAINS - {LAST}))
def test_the_last_record_of_a_chain_is_noticed_by_another_node(index: int) -> None:
    """Nothing follows it in its own chain; what it should be, a peer or a manifest knows."""
    short = check_node("b", [], [row for row in written() if row.position.index != index])

    flaws = list(compare([check_node("a", [], written()), short]))
    assert [(flaw.node, flaw.position) for flaw in flaws] == [("b", Position(index, 0))]


def test_s3_the_head_of_the_chain_tells_every_record_of_the_log(tmp_path: Path) -> None:
    """A backup's manifest knows the head, so a record that is lost at the end is found, too."""
    head = CHAIN_START
    for row in written():
        head = chain_hash(head, split_chain(row.content)[0])
    folder, rest = sealed(tmp_path, written())
    assert checked(folder, rest).head == head
    assert checked(folder, rest[:-1]).head != head
    rmtree(segments_in(folder)[0])
    assert checked(folder, rest).head == head  # a boundary behind the gap tells the chain


@pytest.mark.parametrize("index", range(1, LAST + 1))
def test_a_changed_record_breaks_its_chain(index: int) -> None:
    honest, forged = written(), written(changed=index)
    content = forged[index - 1].content[:-CHAIN] + honest[index - 1].content[-CHAIN:]
    rows = [*honest[: index - 1], Row(Position(index, 0), content), *honest[index:]]

    flaws = check_node("n", [], rows).flaws
    assert flaws[0].position == Position(index, 0)
    assert "chain" in flaws[0].text


def test_a_segment_that_is_missing_in_between_is_a_gap(tmp_path: Path) -> None:
    folder, rest = sealed(tmp_path, written())
    rmtree(segments_in(folder)[1])

    flaws = checked(folder, rest).flaws
    assert [flaw.position for flaw in flaws] == [Position(21, 0)]
    assert "records up to 20.0 are missing" in flaws[0].text


def test_a_log_that_begins_later_is_no_flaw_and_says_so(tmp_path: Path) -> None:
    """A node that was installed from a snapshot lacks what others sealed."""
    folder, rest = sealed(tmp_path, written())
    rmtree(segments_in(folder)[0])
    log = checked(folder, rest)

    assert log.flaws == []
    assert not log.whole


def test_a_manifest_that_promises_otherwise_is_noticed(tmp_path: Path) -> None:
    """S22: the digest is over positions and payloads."""
    folder, rest = sealed(tmp_path, written())
    path = segments_in(folder)[0] / MANIFEST
    manifest = json.loads(path.read_text())
    manifest["blocks"][0]["low"] += 1
    path.write_text(json.dumps(manifest))

    assert any("digest of block 0" in flaw.text for flaw in checked(folder, rest).flaws)


def test_a_file_that_is_damaged_names_its_segment(tmp_path: Path) -> None:
    folder, rest = sealed(tmp_path, written())
    segment = segments_in(folder)[1]
    next(iter(sorted(segment.glob("*.parquet")))).write_bytes(b"PAR1 is not enough")

    assert any(segment.name in flaw.text for flaw in checked(folder, rest).flaws)


def test_what_overlaps_is_passed_over(tmp_path: Path) -> None:
    """An exported tail, or a crash while the event log was shortened, repeats records."""
    folder, _ = sealed(tmp_path, written())

    assert checked(folder, written()[5:]).flaws == []


def test_nodes_are_compared_where_both_have_records() -> None:
    """S22: a node that is behind is not wrong; one that differs is, at the first difference."""
    honest = check_node("a", [], written())
    behind = check_node("b", [], written()[:12])
    other = check_node("c", [], written(changed=17))

    assert other.flaws == []
    assert list(compare([honest, behind])) == []
    assert [(f.node, f.position) for f in compare([honest, behind, other])] == [
        ("c", Position(17, 0))
    ]

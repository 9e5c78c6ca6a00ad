"""State by checkpoint and the rest equals state by the whole log, at every boundary (S24)."""

from __future__ import annotations

from itertools import combinations
from shutil import rmtree
from typing import TYPE_CHECKING

import pytest

from holdfast.coordinator.model.events import GroupCreated, Record, SegmentSealed
from holdfast.coordinator.model.ids import Position
from holdfast.storage.codec.event_codec import (
    CHAIN_START,
    append_chain,
    chain_hash,
    decode_record,
    encode_record,
    split_chain,
)
from holdfast.storage.segments.checkpoint import NOTHING, Checkpoint
from holdfast.storage.segments.fold import CannotFold, RecordsMissing, fold, goes_on
from holdfast.storage.segments.segment_writer import write_segment
from holdfast.storage.segments.segments import Row, segments_in
from spark.event_logs import busy_log
from unit.storage.segments.sealed_history import History, history

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> History:
    return history(tmp_path_factory.mktemp("n1"), segments=4)


def test_s24_a_fold_leads_to_what_the_whole_log_leads_to(whole: History) -> None:
    segments = segments_in(whole.segments)
    for nth, last in enumerate(whole.boundaries, start=1):
        made = fold(NOTHING, segments[:nth], last)
        assert made.digest == whole.digest_at(last)
        assert made.state.applied_index == last.index


def test_s24_a_fold_from_a_checkpoint_is_a_fold_from_the_first_record(whole: History) -> None:
    segments = segments_in(whole.segments)
    for one, other in combinations(range(len(whole.boundaries)), 2):
        base = fold(NOTHING, segments[: one + 1], whole.boundaries[one])
        made = fold(base, segments[one + 1 : other + 1], whole.boundaries[other])
        assert made.digest == whole.digest_at(whole.boundaries[other])


def test_s24_records_behind_the_cut_in_the_same_segment_are_left_out(whole: History) -> None:
    """A node that was away may have sealed two boundaries at once."""
    first, last = whole.boundaries[0], whole.boundaries[1]
    folder = whole.segments.parent / "merged"
    write_segment(folder, whole.rows_through(last), "c", "n1")

    assert fold(NOTHING, segments_in(folder), first).digest == whole.digest_at(first)


def test_s24_a_checkpoint_is_continued_by_the_records_behind_it_and_by_no_others(
    whole: History,
) -> None:
    last = whole.boundaries[1]
    made = fold(NOTHING, segments_in(whole.segments)[:2], last)
    behind = whole.rows_behind(last)

    assert goes_on(made, behind)
    assert not goes_on(made, behind[1:]), "the boundary behind it is missing"
    assert not goes_on(made._replace(heads={**made.heads, "": bytes(32)}), behind)
    assert not goes_on(made, [])


@pytest.mark.parametrize("absent", [0, 1])
def test_s24_a_history_with_a_gap_is_not_folded(tmp_path: Path, absent: int) -> None:
    here = history(tmp_path)
    rmtree(segments_in(here.segments)[absent])

    with pytest.raises(RecordsMissing, match="missing"):
        fold(NOTHING, segments_in(here.segments), here.boundaries[-1])


def test_s24_a_history_that_ends_before_the_cut_is_not_folded(tmp_path: Path) -> None:
    here = history(tmp_path)

    with pytest.raises(RecordsMissing, match="missing"):
        fold(NOTHING, segments_in(here.segments)[:-1], here.boundaries[-1])


def test_s24_a_history_with_a_flaw_is_not_folded(tmp_path: Path) -> None:
    here = history(tmp_path)
    manifest = segments_in(here.segments)[1] / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"low": ', '"low": 1'))

    with pytest.raises(CannotFold, match="is not the manifest's"):
        fold(NOTHING, segments_in(here.segments), here.boundaries[-1])


def test_s24_a_record_that_the_rules_refuse_stops_the_fold(tmp_path: Path) -> None:
    """S6 has put such a group into quarantine on every node, of which no record tells."""
    log = busy_log(groups=1, commits=1)
    last = log.records[-1].position
    twice = _again(log.rows, GroupCreated)
    write_segment(tmp_path, twice, "c", "n1")

    with pytest.raises(CannotFold):
        fold(NOTHING, segments_in(tmp_path), Position(last.index + 1, 0))


def _record(row: Row) -> Record:
    return decode_record(split_chain(row.content)[0])


def _again(rows: list[Row], kind: type) -> list[Row]:
    """The log with a record of a kind once more at its end, rightly chained."""
    heads: dict[str, bytes] = {}
    for row in rows:
        payload, _ = split_chain(row.content)
        record = decode_record(payload)
        heads[record.group_id] = chain_hash(heads.get(record.group_id, CHAIN_START), payload)
    found = next(r for r in map(_record, rows) if isinstance(r.event, kind))
    place = Position(rows[-1].position.index + 1, 0)
    payload = encode_record(found._replace(position=place))
    chain = chain_hash(heads[found.group_id], payload)
    return [*rows, Row(place, append_chain(payload, chain))]


def test_s3_a_checkpoint_tells_counts_and_heads_to_a_check(whole: History) -> None:
    made: Checkpoint = fold(NOTHING, segments_in(whole.segments)[:1], whole.boundaries[0])
    begin = made.begin()

    assert begin.last == whole.boundaries[0]
    for name, head in begin.heads.items():
        records = [r for r in whole.log.records if r.group_id == name]
        seqs = [r.group_seq for r in records if r.position <= begin.last]
        assert begin.counts[name] == seqs[-1]
        assert len(head) == 32
    assert isinstance(whole.log.records[-9].event, SegmentSealed)

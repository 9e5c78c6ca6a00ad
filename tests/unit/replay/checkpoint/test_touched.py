"""Behind a run's checkpoint only what has new records is taken up, and nothing else changes.

That are groups, and of their offsets those that were committed or deleted. The digest of the whole
state, at each place at which it is wanted, and the next checkpoint are as if all had been (S3,
S24). What they should be is told by the model's state, and by a fold of the whole log
(docs/adr/0067, 0068).
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from holdfast.coordinator.kernel.evolve import evolve_apart
from holdfast.coordinator.model.events import (
    GroupCreated,
    GroupDeleted,
    GroupEvent,
    MemberRefused,
    MemberUpdated,
    OffsetsDeleted,
    RequestRecorded,
)
from holdfast.coordinator.model.ids import TopicPartition
from holdfast.coordinator.model.member_profile import MemberProfile, Protocol
from holdfast.coordinator.model.state import Group, Offset
from holdfast.coordinator.structures.pmap import PMap
from holdfast.replay.checkpoint import narrowing
from holdfast.replay.checkpoint.folder import opened
from holdfast.replay.checkpoint.parts import PART, Stand, Stood, stood
from holdfast.replay.checkpoint.run import CheckpointRun
from holdfast.replay.checkpoint.touched import touched
from holdfast.replay.read.log_rows import (
    BEGAN,
    FINDING,
    GROUP,
    REST,
    Cut,
    ResultRow,
    Source,
    part_name,
)
from holdfast.replay.read.node_logs import NodeLog, buckets_of, node_log, node_logs
from holdfast.replay.verify.anchor_marks import Mark, Reached, summed
from holdfast.replay.verify.checkpoint.rows import checkpoint_rows
from holdfast.replay.verify.fold_job import fold
from holdfast.replay.verify.group_fold import fold_bucket
from holdfast.storage.codec.state_image import DIGEST_SPAN, digest_of
from holdfast.storage.segments.checkpoint import (
    Checkpoint,
    CheckpointFlawed,
    encode_checkpoint,
    read_checkpoint,
    stored_groups,
)
from holdfast.storage.segments.columns import SCHEMA
from holdfast.storage.segments.segment_writer import write_segment
from holdfast.storage.segments.segments import BUCKETS, bucket_file, bucket_of, offsets_of
from spark.consumer_logs import eventful_consumer_log
from spark.cut_logs import beginning
from spark.event_logs import (
    EventLog,
    committed,
    eventful_log,
    rebalance_started,
    two_static_members,
    write_node,
)
from spark.mixed_logs import mixed_log
from unit.replay.checkpoint.plain_run import folded, run

PROFILE = MemberProfile("client", "host", 10_000, 15_000, (Protocol("range", b"", ("t",)),))
STILL = [f"still {number}" for number in range(20)]
"""Groups to which nothing more happens, but for one; some share a bucket with one that moves."""


def standing() -> EventLog:
    """What the first run finds."""
    log = eventful_log()
    for name in STILL:
        log.entry(name, GroupCreated(), committed(0, 1), committed(1, 2), request=name)
    log.entry("many", GroupCreated(), *(committed(each, each) for each in range(4)))
    return log


def moving() -> EventLog:
    """What comes behind it: groups go on, one is new, and one is deleted and made anew."""
    log = standing()
    log.entry("g", committed(2, 7), request="goes on")
    log.entry(STILL[3], committed(0, 9), request="no longer")
    log.entry("many", committed(2, 9), OffsetsDeleted((TopicPartition("t", 3),)), committed(4, 1))
    log.entry(STILL[8], GroupDeleted(), request="deleted")
    log.entry(STILL[8], GroupCreated(), committed(6, 1), request="and anew")
    log.entry("new here", GroupCreated(), committed(0, 3), request="new")
    log.silent_entry()
    log.entry("g", committed(1, 8), request="goes on again")
    return log


BEFORE, LOG = standing(), moving()
FIRST_END = BEFORE.rows[-1].position
MOVED = {"g", STILL[3], STILL[8], "many", "new here"}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A node that went on behind a first run; the checkpoint of that is beside it."""
    count, folder = len(BEFORE.rows), tmp_path_factory.mktemp("touched")
    node = write_node(folder / "n1", "n1", LOG.rows[:count])
    assert run([node], folder / "kept").report.kept == FIRST_END
    write_segment(node / "segments", LOG.rows[count:], "c", "n1")
    return node


@pytest.fixture(scope="module")
def narrowed(node: Path) -> NodeLog:
    return behind_checkpoint(node)


def behind_checkpoint(node: Path) -> NodeLog:
    """The log as the second run has it."""
    with opened(node.parent / "kept") as folder:
        (log,) = CheckpointRun(folder, node_logs([node]), full=False).logs
    return log


def told(rows: Sequence[ResultRow]) -> set[str]:
    return {row.grp for row in rows if row.tag == GROUP} - {""}


def digest(rows: Sequence[ResultRow]) -> int:
    return sum(row.idx for row in rows if row.tag in {GROUP, REST}) % DIGEST_SPAN


def kept_by(rows: Sequence[ResultRow], folder: Path) -> dict[str, Checkpoint]:
    """The parts of a checkpoint, as the next run reads them; no record is there twice."""
    folder.mkdir()
    for row in rows:
        if row.tag == PART:
            with (folder / part_name(row.key)).open("ab") as file:
                file.write(row.content)
    for path in folder.iterdir():
        keys = [each.key for each in stored_groups(path, lambda _: True)]
        assert len(keys) == len(set(keys)), path
    return {path.name: read_checkpoint(path) for path in sorted(folder.iterdir())}


def test_only_groups_with_new_records_are_taken_up(narrowed: NodeLog) -> None:
    assert {bucket_of(name) for name in STILL} & {bucket_of(name) for name in MOVED}

    assert told(folded(narrowed, ())) == MOVED


def offsets_folded(log: NodeLog, group_id: str, *named: str) -> set[str]:
    """The offsets of a group that the fold tells, to be compared with those by SQL."""
    rows = [row for row in folded(log, (), named=named) if row.tag == GROUP]
    entries = [each for row in rows if row.grp == group_id for each in row.entries]
    return {each.key for each in entries if each.kind == "offset"}


def offsets_told(log: NodeLog, group_id: str, *named: str) -> set[str]:
    """The offsets of a group that SQL is told of, as the checkpoint has them."""
    told = [row for each in buckets_of(log).values() for row in checkpoint_rows(each, named)]
    rows = [dict(zip(SCHEMA.names, row, strict=True)) for row in told]
    lists: list[Any] = [row["offsets"] or () for row in rows if row["grp"] == group_id]
    return {f"{each['topic']}/{each['partition']}" for several in lists for each in several}


def test_of_a_group_only_offsets_with_new_records_are_taken_up(narrowed: NodeLog) -> None:
    """One of two is committed again; of four one is, and one is deleted, and a fifth is new."""
    assert offsets_told(narrowed, STILL[3]) == {"t/0"}
    assert offsets_folded(narrowed, STILL[3]) == {"t/0"}
    assert offsets_told(narrowed, "many") == {"t/2", "t/3"}
    assert offsets_folded(narrowed, "many") == {"t/2", "t/4"}


@pytest.mark.parametrize("name", [STILL[3], STILL[5]])
def test_a_group_that_is_asked_for_has_all_its_offsets(narrowed: NodeLog, name: str) -> None:
    """A node has published the digest of the whole group, with new records or without."""
    assert offsets_told(narrowed, name, name) == {"t/0", "t/1"}
    assert offsets_folded(narrowed, name, name) == {"t/0", "t/1"}


def test_a_group_that_was_deleted_takes_all_its_offsets_with_it(narrowed: NodeLog) -> None:
    """The deletion names none of them; what its next life commits is all that is left."""
    assert offsets_told(narrowed, STILL[8]) == {"t/0", "t/1"}
    assert offsets_folded(narrowed, STILL[8]) == {"t/6"}


def test_only_what_a_record_names_or_a_deletion_changes_offsets() -> None:
    """So that it is enough to take up what columns of new records tell (docs/adr/0068).

    It holds for each kind of event, in a group that has offsets.
    """
    place = TopicPartition("lies", 7)
    standing = PMap([(place, Offset(1, -1, "", 0))])
    seen = set[type]()
    for log in (eventful_log(), eventful_consumer_log(), mixed_log(), seldom_log()):
        groups = dict[str, Group[Any] | None]()
        for record in filter(lambda each: each.group_id, log.records):
            before, event = groups.get(record.group_id), record.event
            after = evolve_apart(before, record, 0)
            if before is not None and type(event) is not GroupDeleted:
                assert after is not None
                changed = set(after.offsets.changed_since(before.offsets))
                assert changed <= {(e.topic, e.partition) for e in offsets_of(event) or ()}, event
                assert place in after.offsets
            seen.update([type(event)] if before is not None else [])
            groups[record.group_id] = after and after._replace(
                offsets=after.offsets.set(place, standing[place])
            )
    assert seen - {RequestRecorded} == set(get_args(GroupEvent)) - {GroupCreated}


def seldom_log() -> EventLog:
    """Events that the other logs have not."""
    log = EventLog()
    two_static_members(log, "g")
    log.entry("g", rebalance_started("more"), MemberUpdated("a1", PROFILE, "again"))
    log.entry("g", MemberRefused("b1"))
    return log


def test_s3_the_digest_is_that_of_the_whole_state(narrowed: NodeLog) -> None:
    whole = LOG.state._replace(applied_index=narrowed.last.index)

    assert digest(folded(narrowed, ())) == digest_of(whole)


def test_s3_digests_at_anchors_and_at_ends_of_segments_are_those_of_a_whole_fold(
    node: Path,
    narrowed: NodeLog,
) -> None:
    """Between the new records, and before the first of them."""
    first = narrowed.begins.last
    marks = [Mark(index, 1) for index in range(first.index, narrowed.last.index + 1)]
    stands = [Stand(narrowed.last, keep=True)]

    mine = reached(narrowed, stands, marks)

    assert mine == reached(node_log(node), stands, marks)
    assert len({each.digest for each in mine[0].values()}) == len(marks)


def reached(
    log: NodeLog, stands: list[Stand], marks: list[Mark]
) -> tuple[dict[Mark, Reached], list[Stood]]:
    rows = folded(log, stands, marks)
    at_marks = [row for row in rows if row.tag == "mark"]
    return summed(at_marks, marks), stood([row for row in rows if row.tag == "stood"], stands)


def test_s24_the_next_checkpoint_has_all_groups(
    node: Path, narrowed: NodeLog, tmp_path: Path
) -> None:
    """Those that lie still, too, and the heads of their chains; each part is read by itself."""
    stands = [Stand(narrowed.last, keep=True)]
    whole = node_log(node)

    mine = kept_by(folded(narrowed, stands), tmp_path / "mine")

    assert mine == kept_by(folded(whole, stands), tmp_path / "whole")
    assert len(mine) == BUCKETS + 1
    groups = [name for part in mine.values() for name in part.state.groups]
    assert sorted(groups) == sorted(LOG.state.groups)


def test_a_group_that_is_asked_for_is_taken_up_by_both_implementations(narrowed: NodeLog) -> None:
    """A node may have published the digest of a group that lies still."""
    named = {STILL[5]}

    rows = folded(narrowed, (), named=tuple(named))

    assert told(rows) == MOVED | named
    assert digest(rows) == digest(folded(narrowed, ()))
    by_sql = {
        str(row[2])
        for bucket in buckets_of(narrowed).values()
        for row in checkpoint_rows(bucket, named)
    }
    assert by_sql - {""} == (MOVED | named) - {"new here"}


def test_a_run_of_another_version_takes_up_all_groups(node: Path) -> None:
    """Its states may have other digests, though they tell the same."""
    with patch.object(narrowing, "writer", return_value="holdfast of tomorrow"):
        log = behind_checkpoint(node)

    rows = folded(log, ())

    assert told(rows) == set(LOG.state.groups)
    assert digest(rows) == digest_of(LOG.state._replace(applied_index=log.last.index))


def test_what_was_cut_off_by_retention_is_taken_up_whole(node: Path, tmp_path: Path) -> None:
    """Nobody has verified what its checkpoint stands for."""
    begins = beginning(tmp_path / "cut", LOG, len(BEFORE.rows))
    (_, new) = node_log(node).segments

    log = NodeLog("n1", (new,), begins=begins)

    rows = folded(log, ())

    assert told(rows) == set(LOG.state.groups)
    assert digest(rows) == digest_of(LOG.state._replace(applied_index=log.last.index))


@pytest.mark.parametrize("count", [9, 24, 37, 51, 66])
def test_s3_wherever_the_checkpoint_lies_all_is_as_without_it(count: int, tmp_path: Path) -> None:
    """Groups are deleted behind it and begin another life; one has a served request alone."""
    log = eventful_log()
    middle = (count + len(log.rows)) // 2
    node = write_node(tmp_path / "n1", "n1", log.rows[:count])
    assert run([node], tmp_path / "kept").report.kept
    for start, end in ((count, middle), (middle, len(log.rows))):
        write_segment(node / "segments", log.rows[start:end], "c", "n1")
    (mine, whole), last = (behind_checkpoint(node), node_log(node)), log.rows[-1].position
    assert mine.begins.touched_only
    marks = [Mark(index, 1) for index in range(mine.begins.last.index, last.index + 1)]
    stands = [Stand(last, keep=True)]

    assert reached(mine, stands, marks) == reached(whole, stands, marks)
    assert digest(folded(mine, ())) == digest_of(log.state._replace(applied_index=last.index))
    kept = kept_by(folded(mine, stands), tmp_path / "mine")
    assert kept == kept_by(folded(whole, stands), tmp_path / "whole")


def test_a_segment_that_was_read_before_touches_nothing(node: Path) -> None:
    """A log with nothing new keeps its last segment, for what is compared with its end."""
    run([node], node.parent / "all")
    with opened(node.parent / "all") as folder:
        (log,) = CheckpointRun(folder, node_logs([node]), full=False).logs

    assert log.segments
    assert told(folded(log, ())) == set()


def test_a_checkpoint_that_does_not_hold_what_it_claims_accuses_no_node(
    narrowed: NodeLog,
) -> None:
    """Its parts were written by us: whatever went wrong there, no node did it."""
    rows = folded(narrowed, ())
    assert began(rows) == narrowed.begins.digest[:8]
    of_fewer = narrowed.begins.path.replace("kept", "fewer")
    shutil.copytree(narrowed.begins.path, of_fewer)
    part = Path(of_fewer, part_name(bucket_file(bucket_of(STILL[5]))))
    made = read_checkpoint(part)
    (topic, partition), *_ = made.state.groups[STILL[5]].offsets
    lacking = made.state.groups[STILL[5]].offsets.changed({TopicPartition(topic, partition): None})
    group = made.state.groups[STILL[5]]._replace(offsets=lacking)
    state = made.state._replace(groups=made.state.groups.set(STILL[5], group))
    part.write_bytes(b"".join(encode_checkpoint(made._replace(state=state))))

    other = folded(narrowed._replace(begins=narrowed.begins._replace(path=of_fewer)), ())

    assert began(other) != narrowed.begins.digest[:8]


def test_who_takes_up_all_groups_does_not_ask_what_was_claimed(node: Path) -> None:
    """Another version may store the same state with other bytes, and so have another digest."""
    with patch.object(narrowing, "writer", return_value="holdfast of tomorrow"):
        rows = folded(behind_checkpoint(node), ())

    assert not [row for row in rows if row.tag == BEGAN]


def began(rows: Sequence[ResultRow]) -> bytes:
    added = sum(row.idx for row in rows if row.tag == BEGAN)
    return (added % DIGEST_SPAN).to_bytes(8, "big")


def test_the_whole_state_is_not_to_be_had_where_groups_are_left_out(narrowed: NodeLog) -> None:
    """What is not taken up would be missing in it, and nobody would notice."""
    with pytest.raises(ValueError, match="no fold has the whole state"):
        fold(None, narrowed, records=True)  # type: ignore[arg-type]  # no Spark is asked


def test_a_part_that_is_damaged_meanwhile_is_told_with_what_helps(
    node: Path, tmp_path: Path
) -> None:
    """No node has it, so none can fetch it again: for who folds, tells rows, or copies."""
    log = behind_checkpoint(node)
    parts = Path(shutil.copytree(log.begins.path, tmp_path / "parts"))
    log = log._replace(begins=log.begins._replace(path=str(parts)))
    (part,) = (
        each for each in buckets_of(log).values() if each.name == bucket_file(bucket_of("g"))
    )
    file = parts / part_name(part.name)
    file.write_bytes(file.read_bytes()[:-1])
    told = r"ends before its end.*: verify with --full"

    with pytest.raises(CheckpointFlawed, match=told):
        touched(part).read()
    with pytest.raises(CheckpointFlawed, match=told):
        list(checkpoint_rows(part))
    with pytest.raises(CheckpointFlawed, match=told):
        list(touched(part).others())


@pytest.mark.parametrize(
    "forged",
    [{"topic": None}, {"partition": None}, {"topic": "t" * 70_000}, {"partition": -1}, None],
    ids=["no topic", "no partition", "a topic that no key holds", "below 0", "nothing at all"],
)
def test_whatever_a_column_says_it_is_a_finding(
    node: Path, tmp_path: Path, forged: dict[str, Any] | None
) -> None:
    """The column is asked what has moved before anybody compares it with the payloads (S22)."""
    log = behind_checkpoint(node)
    bucket = buckets_of(log)[bucket_file(bucket_of("many"))]
    table = pq.read_table(bucket.sources[0].path)
    named = [
        several and forged and [{**each, **forged} for each in several]
        for several in table.column("offsets").to_pylist()
    ]
    at = table.schema.get_field_index("offsets")
    kind = table.schema.field(at).type
    path = tmp_path / bucket.name
    pq.write_table(table.set_column(at, "offsets", pa.array(named, kind)), path)
    lying = bucket._replace(sources=(Source(str(path), bucket.sources[0].after),))

    found = [row for row in fold_bucket(lying, (), Cut()) if row.tag == FINDING]

    assert found
    assert {(row.kind, "offsets" in row.text) for row in found} == {("payload", True)}
    list(checkpoint_rows(lying))

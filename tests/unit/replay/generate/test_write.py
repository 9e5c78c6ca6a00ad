"""What is written is what nodes would have written; a failure leaves nothing behind."""

from __future__ import annotations

import errno
import json
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.coordinator.kernel.apply import replay
from holdfast.coordinator.model.state import State
from holdfast.replay.generate import node_files
from holdfast.replay.generate.plan import Plan, PlanRefused
from holdfast.replay.generate.write import ANCHOR, WITNESS, write_history
from holdfast.storage.codec.event_codec import CHAIN_START, chain_hash, decode_record, split_chain
from holdfast.storage.codec.state_image import digest_of
from holdfast.storage.segments.log_check import check_node, compare
from holdfast.storage.segments.segment_writer import write_segment
from holdfast.storage.segments.segments import MANIFEST, segments_in
from unit.replay.generate.logs import files_of, rows_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from holdfast.coordinator.model.events import Record

PLAN = Plan(2_500, groups=12, giant=0.3, seed=7, segment_events=1_000)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A history in three directories, which tests only read."""
    return write_history(PLAN, tmp_path_factory.mktemp("made") / "cluster").folder


def records_of(node: Path) -> list[Record]:
    return [decode_record(row.content) for row in rows_of(node)]


def test_equal_plans_make_equal_bytes(made: Path, tmp_path: Path) -> None:
    again = write_history(PLAN, tmp_path / "again").folder

    assert files_of(again) == files_of(made)


def test_another_seed_makes_another_history(made: Path, tmp_path: Path) -> None:
    other = write_history(Plan(2_500, groups=12, giant=0.3, seed=8), tmp_path / "other").folder

    assert (other / ANCHOR).read_text() != (made / ANCHOR).read_text()


def test_each_node_verifies_and_all_are_alike(made: Path) -> None:
    """S3, S22: digests, chains, counts without a gap; the same record at the same position."""
    logs = []
    for node in ("node-1", "node-2", "node-3"):
        parts = [*segments_in(made / node / "segments"), *segments_in(made / node / "tail")]
        logs.append(check_node(node, parts, []))

    assert [log.flaws for log in logs] == [[], [], []]
    assert [len(log.hashes) for log in logs] == [2_500] * 3
    assert all(log.whole for log in logs)
    assert list(compare(logs)) == []
    assert len(segments_in(made / "node-1" / "segments")) == 2


def test_each_file_is_what_the_writer_of_nodes_makes_of_the_same_records(
    made: Path, tmp_path: Path
) -> None:
    """S22: the files of any node, its manifest included, byte for byte."""
    first = segments_in(made / "node-1" / "segments")[0]
    rows = [row for row in rows_of(made / "node-1") if first.name[21:] >= f"{row[0].index:020d}"]

    for node in ("node-1", "node-3"):
        write_segment(tmp_path / node, rows, "generated", node)
        assert files_of(tmp_path / node / first.name) == files_of(
            made / node / "segments" / first.name
        )


def test_nodes_share_no_file(made: Path) -> None:
    """What is damaged in one node's directory is whole in another's."""
    assert all(path.stat().st_nlink == 1 for path in made.rglob("*") if path.is_file())
    manifests = [json.loads(path.read_text()) for path in sorted(made.rglob(MANIFEST))]
    assert {each["node_id"] for each in manifests} == {"node-1", "node-2", "node-3"}


def test_the_anchor_says_where_the_records_lead_to(made: Path) -> None:
    """S3: index, chain head and state digest, made again from the records alone."""
    head, rows = CHAIN_START, rows_of(made / "node-2")
    for row in rows:
        head = chain_hash(head, split_chain(row.content)[0])
    state = replay(State(), records_of(made / "node-2"))

    anchor = json.loads((made / ANCHOR).read_text())
    assert (anchor["index"], anchor["records"]) == (rows[-1].position.index, 2_500)
    assert anchor["chain"] == head.hex()
    assert anchor["digest"] == f"{digest_of(state):016x}"


def test_the_witness_tells_of_each_change_that_a_caller_was_told_is_done(made: Path) -> None:
    """By its place, its request id, or both; joins by the request that a record has."""
    records = records_of(made / "node-1")
    at = {(r.position.index, r.position.ordinal): r for r in records}
    served = {(r.group_id, rejoin.request_id) for r in records for rejoin in _rejoined(r)}
    carried = {(r.group_id, r.request_id) for r in records}
    lines = [json.loads(line) for line in (made / WITNESS).read_text().splitlines()]

    for line in lines:
        if "index" in line:
            record = at.pop((line["index"], line["ordinal"]))
            told = record.group_id, record.cause.command, record.request_id
            assert told == (line["group"], line["kind"], line.get("request_id", ""))
        else:
            assert (line["group"], line["request_id"]) in served | carried
    assert {line["kind"] for line in lines} >= {"CommitOffsets", "JoinGroup", "SyncGroup"}
    assert not [r for r in at.values() if r.cause.command == "CommitOffsets" and _is_change(r)]


def _rejoined(record: Record) -> Sequence[Any]:
    return getattr(record.event, "rejoined", ())


def _is_change(record: Record) -> bool:
    return type(record.event).__name__ != "RequestRecorded"


def test_a_witness_that_nobody_wants_is_not_written(tmp_path: Path) -> None:
    folder = write_history(Plan(50, nodes=1, witness=False), tmp_path / "made").folder

    assert sorted(path.name for path in folder.iterdir()) == [ANCHOR, "node-1"]


def test_an_empty_folder_is_used(tmp_path: Path) -> None:
    (tmp_path / "made").mkdir()

    write_history(Plan(50, nodes=2), tmp_path / "made")

    assert (tmp_path / "made" / "node-2" / "tail").is_dir()


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("kept")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")

    for taken in (tmp_path, tmp_path / "mine", tmp_path / "link"):
        with pytest.raises(PlanRefused, match=r"another one|does not exist"):
            write_history(Plan(50), taken)

    assert files_of(tmp_path) == {"mine": b"kept"}


def test_two_runs_do_not_write_to_one_place(tmp_path: Path) -> None:
    (tmp_path / ".made.unfinished").mkdir()

    with pytest.raises(PlanRefused, match="another run"):
        write_history(Plan(50), tmp_path / "made")

    assert (tmp_path / ".made.unfinished").is_dir()


@pytest.mark.parametrize("failure", [OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()])
def test_what_cannot_be_finished_leaves_nothing(
    failure: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk, or Ctrl-C, while the second segment is written."""
    calls: list[int] = []

    def fails(*arguments: Any) -> Any:  # noqa: ANN401 - those of the writer
        calls.append(1)
        if len(calls) > 1:
            raise failure
        return write_segment(*arguments)

    monkeypatch.setattr(node_files, "write_segment", fails)

    with pytest.raises(type(failure)):
        write_history(PLAN, tmp_path / "made")

    assert len(calls) == 2
    assert list(tmp_path.iterdir()) == []

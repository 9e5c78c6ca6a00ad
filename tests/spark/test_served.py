"""The log as a cluster serves it: all of it, from whichever node, in the form of a segment."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from threading import Event
from types import SimpleNamespace

import pyarrow as pa
import pytest

from holdfast.client import Tls
from holdfast.coordinator.model.ids import Position
from holdfast.replay.findings import WrongUse
from holdfast.replay.read.log_rows import ENTRY_LAST, START
from holdfast.replay.stream import links, sealed, served
from holdfast.replay.stream.endings import TailStopped, Unreached
from holdfast.replay.stream.followed import ServedLog
from holdfast.replay.stream.log_source import LogStream
from holdfast.replay.stream.offsets import offset_of
from holdfast.replay.stream.served import LogReader, Nodes, batch_of
from holdfast.storage.codec.event_codec import CHAIN_START
from holdfast.storage.segments.columns import SCHEMA
from holdfast.storage.segments.segments import segments_in
from spark.consumer_logs import eventful_consumer_log
from spark.event_logs import EventLog, busy_log, eventful_log, write_node
from spark.mixed_logs import mixed_log
from spark.served_logs import NEEDS, PAGE, serves, serving

LOG = busy_log(groups=2, commits=8)
ENDS = Position(LOG.index, ENTRY_LAST)
NOBODY = "127.0.0.1:1"
"""Nobody listens there."""


def read(nodes: Nodes, after: Position = START, last: Position = ENDS) -> list[Position]:
    """The positions of what is read."""
    with LogReader(nodes) as reader:
        pages = list(reader.between(after, last))
    return [Position(e.position.index, e.position.ordinal) for page in pages for e in page]


def places(log: EventLog) -> list[Position]:
    return [each.position for each in log.records]


@pytest.mark.parametrize("made", [eventful_log, eventful_consumer_log, mixed_log])
def test_rows_are_those_of_the_archive(made: Callable[[], EventLog], tmp_path: Path) -> None:
    """Of all kinds of events, every column, in the order of the log."""
    log = made()
    folder = write_node(tmp_path, "n1", log.rows)
    (segment,) = segments_in(folder / "segments")

    with serving(serves(log)) as nodes, LogReader(nodes) as reader:
        pages = reader.between(START, Position(log.index, ENTRY_LAST))
        found = pa.Table.from_batches([batch_of(page) for page in pages], SCHEMA)

    assert found.num_rows > PAGE
    assert found.equals(pa.Table.from_batches(sealed.rows(segment, START), SCHEMA))


def test_batches_follow_on_each_other_and_have_no_more_than_they_may() -> None:
    """Also in the midst of an entry; together they are the log."""
    with serving(serves(LOG)) as nodes, LogReader(nodes) as reader:
        ends = [START]
        while (following := reader.reach(ends[-1], 3, None)) != ends[-1]:
            ends.append(following)
        parts = [read(nodes, *each) for each in pairwise(ends)]

    assert [place for part in parts for place in part] == places(LOG)
    assert {len(part) for part in parts[:-1]} == {3}


def test_a_batch_does_not_go_beyond_an_end_that_was_fixed() -> None:
    """As `--once` fixes one; what was there by then is in it."""
    end = Position(LOG.index - 4, ENTRY_LAST)
    with serving(serves(LOG)) as nodes, LogReader(nodes) as reader:
        assert reader.newest() == ENDS
        assert reader.reach(START, 10_000, end) == end
        assert reader.reach(end, 10_000, end) == end
        assert reader.reach(ENDS, 10_000, None) == ENDS, "nothing is behind it"

        assert read(nodes, START, end) == [each for each in places(LOG) if each <= end]


def test_entries_without_a_record_are_no_batch() -> None:
    """A cluster where nothing happens writes no files."""
    log = busy_log(groups=1, commits=2)
    before = Position(log.index, ENTRY_LAST)
    log.silent_entry()
    with serving(serves(log)) as nodes, LogReader(nodes) as reader:
        assert reader.reach(before, 10, None) == before


def test_a_node_that_is_away_or_lags_behind_gives_way_to_the_next() -> None:
    """What a node has told is read of another one that has it."""
    behind = serves(LOG, applied=5)
    with serving(behind, serves(LOG)) as nodes:
        found = read(Nodes((NOBODY, *nodes.addresses)))

    assert behind.asked
    assert found == places(LOG)


def test_a_node_that_hangs_gives_way_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is frozen keeps its connections, and would take all the time there is."""
    monkeypatch.setattr(served, "CALL_MS", 500)
    thaws = Event()
    frozen = serves(LOG, thaws=thaws)
    with serving(frozen, serves(LOG)) as nodes:
        try:
            found = read(nodes)
        finally:
            thaws.set()

    assert frozen.asked == [Position(0, 0)]
    assert found == places(LOG)


def test_what_no_node_has_though_one_told_it_ends_the_stream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(served, "LAG_S", 0.0)
    with (
        serving(serves(LOG, applied=5)) as nodes,
        pytest.raises(TailStopped, match=f"behind entry 5, .* up to entry {LOG.index}: .* --out"),
    ):
        read(nodes)


def test_the_time_of_whoever_takes_the_records_is_not_the_nodes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A worker waits for Spark between two pages, and a node that lags then still has its time."""
    node, now_s = serves(LOG, applied=5), [0.0]

    def catch_up(_: float) -> None:
        node.applied = None

    clock = SimpleNamespace(monotonic=lambda: now_s[0], sleep=catch_up)
    monkeypatch.setattr(served, "time", clock)
    found = list[Position]()
    with serving(node) as nodes, LogReader(nodes) as reader:
        for page in reader.between(START, ENDS):
            found += [Position(each.position.index, each.position.ordinal) for each in page]
            now_s[0] += 2 * served.LAG_S

    assert found == places(LOG)


def test_s24_a_history_that_begins_later_is_one_sentence() -> None:
    with (
        serving(serves(LOG, first=9), serves(LOG, first=12)) as nodes,
        pytest.raises(TailStopped, match=r"behind the beginning are on no node .* --node-dir"),
    ):
        read(nodes)


def test_a_node_with_more_of_the_history_is_found() -> None:
    """Segments may be missing on a node that was sent a snapshot (S22)."""
    with serving(serves(LOG, first=9), serves(LOG)) as nodes:
        assert read(nodes) == places(LOG)


def test_who_may_not_read_everything_is_told_before_and_after_a_batch() -> None:
    """A node leaves out what its caller may not read, and says nothing of it."""
    node = serves(LOG, refuses=True)
    with serving(node) as nodes:
        with pytest.raises(ValueError, match=f"leave out unseen what we may not: {NEEDS}"):
            ServedLog.of(nodes)
        stream = LogStream(nodes.option(), 10_000)
        (part,) = stream.partitions(offset_of(START), offset_of(ENDS))
        with pytest.raises(TailStopped, match=NEEDS):
            list(stream.read(part))


def test_no_node_that_serves_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served, "UNCONNECTED_MS", 200)
    with pytest.raises(Unreached, match=r"no node served the log; last: .* nobody listens there"):
        ServedLog.of(Nodes((NOBODY,)))


def test_a_log_that_became_shorter_than_what_was_read_ends_the_stream() -> None:
    """A restore from a backup drops entries, and gives their positions to others (S13)."""
    with serving(serves(LOG)) as nodes:
        stream = LogStream(nodes.option(), 10)
        with pytest.raises(TailStopped, match="was restored from a backup"):
            stream.latestOffset(offset_of(Position(LOG.index + 1, 0)), stream.getDefaultReadLimit())
        stream.stop()


def test_nodes_reach_other_processes_as_text(tmp_path: Path) -> None:
    """Files by whole paths, since workers run in other directories; never what is in them."""
    file = Path("relative")
    nodes = Nodes(("a:1", "b:2"), Tls(tmp_path / "ca.pem", token=file))

    read_there = Nodes.read(nodes.option())

    assert read_there.addresses == nodes.addresses
    assert read_there.tls == Tls(str(tmp_path / "ca.pem"), token=str(file.absolute()))
    assert Nodes.read(Nodes(("a:1",)).option()) == Nodes(("a:1",))
    with pytest.raises(WrongUse, match="give a file of it"):
        Nodes(("a:1",), Tls("ca.pem", token=lambda: "t")).option()


# --- the chain over all records ----------------------------------------------------------------


def table(log: EventLog) -> pa.Table:
    with serving(serves(log)) as nodes, LogReader(nodes) as reader:
        pages = reader.between(START, Position(log.index, ENTRY_LAST))
        return pa.Table.from_batches([batch_of(page) for page in pages], SCHEMA)


def last_of_the_cluster(rows: pa.Table) -> int:
    """The number of the last record that belongs to no group."""
    return max(n for n, group in enumerate(rows["grp"].to_pylist()) if not group)


def test_s3_the_chain_goes_on_from_batch_to_batch() -> None:
    log = eventful_log()
    rows, head = table(log), CHAIN_START
    for start in range(0, rows.num_rows, 4):
        made = links.head_after(head, rows.slice(start, 4))
        assert made is not None
        head = made

    assert head == log.heads[""]


def test_s3_a_record_that_lacks_before_one_of_the_clusters_own_is_found() -> None:
    """Whoever left it out: the head that the cluster's record has is over all before it."""
    rows = table(eventful_log())
    number = last_of_the_cluster(rows)
    lacking = pa.concat_tables([rows.slice(0, number - 1), rows.slice(number)])

    with pytest.raises(TailStopped, match="are not all there are"):
        links.head_after(CHAIN_START, lacking)


def test_a_chain_that_is_not_known_is_taken_from_the_next_record_that_has_it() -> None:
    """An output that an earlier version began has no head of it."""
    log = eventful_log()
    rows = table(log)

    assert links.head_after(None, rows.slice(2)) == log.heads[""]
    assert links.head_after(None, rows.slice(last_of_the_cluster(rows) + 1)) is None

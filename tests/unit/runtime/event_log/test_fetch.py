"""S22: missing sealed segments are fetched from peers, and count when they are verified."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from shutil import copytree, rmtree
from signal import SIGABRT, SIGKILL, SIGSEGV, SIGTERM

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.plain_child import run_plain_child
from harness.poll import until_async
from holdfast.coordinator.model.ids import Position
from holdfast.runtime.event_log.child import Ended
from holdfast.runtime.event_log.fetch import Fetching, FetchingPlace
from holdfast.runtime.event_log.history import NotHeld
from holdfast.runtime.event_log.segment_calls import Piece, SegmentSource, encode_read
from holdfast.storage.codec.event_codec import (
    CodecError,
    append_chain,
    chain_hash,
)
from holdfast.storage.segments.adopt import EXIT_FLAWED, Gap
from holdfast.storage.segments.segment_writer import write_segment
from holdfast.storage.segments.segments import (
    FIRST_FORMAT,
    FORMAT_VERSION,
    MANIFEST,
    Row,
    read_manifest,
    read_rows,
    segments_in,
)
from unit.runtime.event_log.fetching_node import (
    BOUNDARIES,
    LAST,
    LOG,
    Node,
    verify_here,
)


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A peer's three segments: 1-10, 11-20, 21-30."""
    folder = tmp_path_factory.mktemp("peer") / "segments"
    for last in BOUNDARIES:
        write_segment(folder, LOG[last - 10 : last], "c", "n2")
    return folder


@pytest.fixture
def in_a_child(monkeypatch: pytest.MonkeyPatch) -> None:
    """Verify in a process of its own, as a node does."""
    monkeypatch.setattr("holdfast.runtime.event_log.fetch.run_child", run_plain_child)


@pytest.fixture
def node(tmp_path: Path, sealed: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    """After the install of a snapshot: the event log begins behind the last boundary."""
    monkeypatch.setattr("holdfast.runtime.event_log.fetch.run_child", verify_here)
    made = Node(tmp_path, live=31)
    made.sources["n2"] = SegmentSource(sealed)
    return made


@pytest.mark.usefixtures("node", "in_a_child")
def test_s22_after_an_install_the_history_becomes_whole(node: Node) -> None:
    """Until then it names what is missing instead of skipping it."""
    with pytest.raises(NotHeld, match=r"begins at 31\.0"):
        node.indexes(Position(1, 0))
    assert node.history.missing() == [Gap(Position(0, 0), Position(30, 0))]

    fetching = node.fetch()

    assert fetching.missing == ()
    assert node.indexes() == list(range(1, LAST + 1))
    assert [read_manifest(path).node_id for path in segments_in(node.segments)] == ["n1"] * 3
    assert list(node.segments.glob(".*")) == []


def test_s22_only_what_is_missing_is_fetched(node: Node, sealed: Path) -> None:
    """A node that was away for a while holds the beginning."""
    first = segments_in(sealed)[0]
    copytree(first, node.segments / first.name)
    before = (node.segments / first.name / MANIFEST).stat().st_mtime_ns
    assert node.history.missing() == [Gap(Position(10, 0), Position(30, 0))]

    assert node.fetch().missing == ()

    assert node.indexes() == list(range(1, LAST + 1))
    assert (node.segments / first.name / MANIFEST).stat().st_mtime_ns == before


def test_s22_a_hole_between_segments_is_found_and_closed(node: Node, sealed: Path) -> None:
    """Reads go back as far as there is no gap."""
    for path in (segments_in(sealed)[0], segments_in(sealed)[2]):
        copytree(path, node.segments / path.name)
    assert node.history.missing() == [Gap(Position(10, 0), Position(20, 0))]
    assert node.indexes()[0] == 21

    assert node.fetch().missing == ()
    assert node.indexes() == list(range(1, LAST + 1))


def test_s22_an_event_log_that_begins_within_a_segment_is_no_beginning(
    tmp_path: Path, sealed: Path
) -> None:
    """The snapshot was copied while the leader was dropping what it had sealed (26 to 30 left)."""
    node = Node(tmp_path, live=26)
    node.sources["n2"] = SegmentSource(sealed)
    with pytest.raises(NotHeld):
        node.indexes(Position(22, 0))

    assert node.fetch().missing == ()
    assert node.indexes() == list(range(1, LAST + 1))


def test_s22_a_segment_sealed_out_of_such_a_log_gives_way_to_the_whole_one(node: Node) -> None:
    """No record is in two segments, so that nothing counts it twice."""
    write_segment(node.segments, LOG[25:30], "c", "n1")
    assert node.history.missing()

    assert node.fetch().missing == ()
    assert node.indexes() == list(range(1, LAST + 1))
    ranges = [(m.first[0], m.last[0]) for m in map(read_manifest, segments_in(node.segments))]
    assert ranges == [(1, 10), (11, 20), (21, 30)]


def damage_a_file(folder: Path) -> None:
    """Another payload in one of its rows, in a file that is sound as Parquet."""
    file = next(folder.glob("bucket-*.parquet"))
    table = pq.ParquetFile(file).read()
    lines = table.to_pylist()
    lines[3]["payload"] = lines[3]["payload"].replace(b"topic-14", b"topic-41")
    assert lines != table.to_pylist()
    pq.write_table(pa.Table.from_pylist(lines, schema=table.schema), file)


def damage_a_digest(folder: Path) -> None:
    text = (folder / MANIFEST).read_text()
    low = str(read_manifest(folder).blocks[0].low)
    (folder / MANIFEST).write_text(text.replace(low, str(int(low) ^ 1)))


def pack_a_file_again(folder: Path) -> None:
    """The records that were sealed, in other bytes: the manifest's SHA-256 alone tells."""
    file = next(folder.glob("bucket-*.parquet"))
    pq.write_table(pq.ParquetFile(file).read(), file, compression="gzip")


def seal_as_0_1_0(folder: Path) -> None:
    """A peer of level 1: its manifest tells nothing of its files' bytes."""
    rows = read_rows(folder)
    rmtree(folder)
    write_segment(folder.parent, rows, "c", "n2", format_version=FIRST_FORMAT)


def damage_a_file_of_0_1_0(folder: Path) -> None:
    seal_as_0_1_0(folder)
    damage_a_file(folder)


def another_log(folder: Path) -> None:
    """Sound in itself, but its chain does not lead to what is held here."""
    rmtree(folder)
    forged, chain = [], b"\x07" * 32
    for row in LOG[10:20]:
        payload = row.content[:-34]
        chain = chain_hash(chain, payload)
        forged.append(Row(row.position, append_chain(payload, chain)))
    write_segment(folder.parent, forged, "c", "n2")


@pytest.mark.usefixtures("node", "in_a_child")
@pytest.mark.parametrize(
    "damage",
    [damage_a_file, damage_a_digest, another_log, damage_a_file_of_0_1_0, pack_a_file_again],
)
def test_s22_what_is_not_intact_is_not_taken_over(
    node: Node, sealed: Path, tmp_path: Path, damage: object
) -> None:
    """It stays missing, by name, until a peer has it intact."""
    for path in (segments_in(sealed)[0], segments_in(sealed)[2]):
        copytree(path, node.segments / path.name)
    copytree(sealed, tmp_path / "bad" / "segments")
    middle = segments_in(tmp_path / "bad" / "segments")[1]
    assert callable(damage)
    damage(middle)
    node.sources = {"n2": SegmentSource(tmp_path / "bad" / "segments")}

    assert node.fetch().missing == (Gap(Position(10, 0), Position(20, 0)),)
    assert len(segments_in(node.segments)) == 2

    node.sources["n3"] = SegmentSource(sealed)
    assert node.fetch().missing == ()
    assert node.indexes() == list(range(1, LAST + 1))


@pytest.mark.usefixtures("node")
def test_a_segment_is_taken_over_in_the_format_that_it_came_in(
    node: Node, sealed: Path, tmp_path: Path
) -> None:
    """While the cluster has nodes of 0.1.0, these read what was taken over from them (ADR 59)."""
    copytree(sealed, tmp_path / "old" / "segments")
    for path in segments_in(tmp_path / "old" / "segments")[:2]:
        seal_as_0_1_0(path)
    node.sources = {"n2": SegmentSource(tmp_path / "old" / "segments")}

    assert node.fetch().missing == ()

    taken = [read_manifest(path).format_version for path in segments_in(node.segments)]
    assert taken == [FIRST_FORMAT, FIRST_FORMAT, FORMAT_VERSION]


def flawed_middle(sealed: Path, path: Path) -> SegmentSource:
    copytree(sealed, path / "segments")
    damage_a_file(segments_in(path / "segments")[1])
    return SegmentSource(path / "segments")


def test_s22_a_flawed_segment_is_not_fetched_at_each_look_and_is_told_once(
    node: Node, sealed: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It is long, and a peer's disk does not become sound within a minute."""
    node.sources = {"n2": flawed_middle(sealed, tmp_path / "bad")}
    read = [bool(node.read_from) for _ in node.looks([0, 59, 60, 120, 179, 180])]

    assert read == [True, False, True, False, False, True]
    told = [text for text in caplog.messages if "is not taken over" in text]
    assert len(told) == 1
    assert "n2" in told[0]


def test_s22_a_flawed_segment_does_not_hold_back_the_others(
    node: Node, sealed: Path, tmp_path: Path
) -> None:
    node.sources = {"n2": flawed_middle(sealed, tmp_path / "bad")}
    assert node.fetch().missing == (Gap(Position(10, 0), Position(20, 0)),)
    assert len(segments_in(node.segments)) == 2


def test_s22_another_peer_is_asked_before_one_whose_segment_was_flawed(
    node: Node, sealed: Path, tmp_path: Path
) -> None:
    """n3 was away at the first look; n2 is due again at the second, and need not be asked."""
    node.sources = {
        "n2": flawed_middle(sealed, tmp_path / "bad"),
        "n3": SegmentSource(tmp_path / "later"),
    }
    looks = node.looks([0, 3_600])
    assert next(looks).missing
    copytree(sealed, tmp_path / "later")

    assert next(looks).missing == ()
    assert set(node.read_from) == {"n3"}


def test_s22_a_segment_of_another_cluster_is_not_taken_over(node: Node, tmp_path: Path) -> None:
    write_segment(tmp_path / "foreign", LOG[:30], "another", "n2")
    node.sources = {"n2": SegmentSource(tmp_path / "foreign")}

    assert node.fetch().missing == (Gap(Position(0, 0), Position(30, 0)),)


def test_s22_what_has_arrived_is_gone_on_with_after_a_restart(node: Node) -> None:
    """The connection broke after 50 bytes of a file; the next start asks for the rest."""
    node.breaks_off = True
    assert node.fetch().missing
    partial = next(node.segments.glob(".*.incoming/bucket-*"))
    assert partial.stat().st_size == 50

    node.breaks_off = False
    assert node.fetch().missing == ()
    first, last = (int(part) for part in partial.parent.name[1:].split(".")[0].split("-"))
    assert encode_read(Piece(first, last, int(partial.stem[-2:]), 50)) in node.asked
    assert node.indexes() == list(range(1, LAST + 1))


def test_s22_a_peer_that_has_nothing_or_is_away_changes_nothing(node: Node, tmp_path: Path) -> None:
    node.sources = {"n2": SegmentSource(tmp_path / "nowhere")}
    assert node.fetch().missing == (Gap(Position(0, 0), Position(30, 0)),)


class Stumbling:
    """A history that fails in these ways, one look after the other, before it can tell."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)

    def missing(self) -> list[Gap]:
        if self.failures:
            raise self.failures.pop(0)
        return [Gap(Position(0, 0), Position(30, 0))]


def test_a_look_that_fails_in_any_way_is_followed_by_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node that gave up would lack its history until its next start."""
    monkeypatch.setattr("holdfast.runtime.event_log.fetch.LOOK_AGAIN_SECONDS", 0.0)
    history = Stumbling(OSError("EMFILE"), CodecError("from a newer version", "event record"))

    async def story() -> None:
        place = FetchingPlace(tmp_path / "segments", "c", "n1")
        fetching = Fetching(place, history, lambda: ["n2"], lambda _peer, _request: iter(()), 0.0)
        fetching.start()
        await until_async(lambda: fetching.missing, "what is missing is found")
        await fetching.close()

    asyncio.run(story())


@pytest.mark.parametrize(("reserve", "arrives"), [(0, True), (1 << 62, False)])
def test_s20_nothing_is_fetched_below_the_configured_reserve(
    node: Node, sealed: Path, caplog: pytest.LogCaptureFixture, reserve: int, *, arrives: bool
) -> None:
    """Whatever the default reserve of this machine's disk would be."""
    node.sources = {"n2": SegmentSource(sealed)}
    node.reserve = reserve

    assert (node.fetch().missing == ()) is arrives
    assert (f"{reserve} bytes (node.disk_reserve_bytes)" in caplog.text) is not arrives


def test_s22_one_offer_closes_every_gap_that_it_covers(node: Node, sealed: Path) -> None:
    """A peer's segments may begin and end elsewhere than ours."""
    middle = segments_in(sealed)[1]
    copytree(middle, node.segments / middle.name)
    whole = node.segments.parent / "whole"
    write_segment(whole, LOG[:30], "c", "n2")
    node.sources = {"n2": SegmentSource(whole)}
    assert len(node.history.missing()) == 2

    assert node.fetch().missing == ()
    assert node.indexes() == list(range(1, LAST + 1))


def test_s22_a_longer_segment_of_an_older_node_is_not_taken_where_shorter_ones_do(
    node: Node, sealed: Path
) -> None:
    """S22: none is ever joined; an older node's does not take the place of what is sound here."""
    middle = segments_in(sealed)[1]
    copytree(middle, node.segments / middle.name)
    whole = node.segments.parent / "whole"
    write_segment(whole, LOG[:30], "c", "n0")
    node.sources = {"n0": SegmentSource(whole), "n2": SegmentSource(sealed)}

    assert node.fetch().missing == ()
    names = [path.name for path in segments_in(node.segments)]
    assert names == [path.name for path in segments_in(sealed)]


def child_that_ends(
    monkeypatch: pytest.MonkeyPatch, ended: Ended, then: Callable[..., Awaitable[Ended]]
) -> None:
    """The first verification ends so, later ones as `then` has it."""
    first = [ended]

    async def run(module: str, *arguments: str) -> Ended:
        return first.pop() if first else await then(module, *arguments)

    monkeypatch.setattr("holdfast.runtime.event_log.fetch.run_child", run)


@pytest.mark.parametrize("code", [1, -SIGKILL, -SIGTERM])
def test_s22_a_verification_that_ends_for_a_reason_of_our_own_is_no_flaw_of_a_peer(
    node: Node, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, code: int
) -> None:
    """A full disk or a killed child: the peer's segment is sound, and due at the next look."""
    ended = Ended(code, "", "OSError: [Errno 28] No space left on device\n")
    child_that_ends(monkeypatch, ended, verify_here)
    looks = node.looks([0, 1])

    assert next(looks).missing
    assert not [text for text in caplog.messages if "is not taken over" in text]
    assert [text for text in caplog.messages if str(code) in text and "No space left" in text]
    assert next(looks).missing == ()


@pytest.mark.parametrize("code", [EXIT_FLAWED, -SIGSEGV, -SIGABRT])
def test_s22_bytes_that_are_flawed_or_crash_their_reader_are_a_peers_flaw(
    node: Node, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, code: int
) -> None:
    """Else the segment would be fetched at each look, and hold back the ones behind it."""
    child_that_ends(monkeypatch, Ended(code, "", "flawed"), verify_here)
    looks = node.looks([0, 1, 60])

    assert next(looks).missing == (Gap(Position(0, 0), Position(10, 0)),)
    assert [text for text in caplog.messages if "is not taken over" in text]
    assert next(looks).missing
    assert next(looks).missing == ()

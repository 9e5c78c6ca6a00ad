"""A checkpoint is read as it was written, and no other file passes for one (S24)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.coordinator.model.events import GroupCreated, OffsetCommitted, OffsetsCommitted
from holdfast.coordinator.model.ids import Position
from holdfast.coordinator.structures.pmap import PMap
from holdfast.storage.codec.state_image import group_contents, group_of
from holdfast.storage.segments.checkpoint import (
    CHUNK_BYTES,
    NOTHING,
    Checkpoint,
    CheckpointFlawed,
    checkpoint_name,
    checkpoints_in,
    encode_checkpoint,
    newest_sound,
    publish_checkpoint,
    read_checkpoint,
    stored_groups,
    write_checkpoint,
)
from spark.event_logs import EventLog, busy_log

if TYPE_CHECKING:
    from pathlib import Path


def made() -> Checkpoint:
    log = busy_log()
    return Checkpoint(log.records[-1].position, log.state, log.heads)


def test_s24_a_checkpoint_is_read_as_it_was_written(tmp_path: Path) -> None:
    checkpoint = made()

    read = read_checkpoint(write_checkpoint(tmp_path / "segments", checkpoint))

    assert read.last == checkpoint.last
    assert read.state == checkpoint.state
    assert dict(read.heads) == checkpoint.heads
    assert read.digest == checkpoint.digest


def test_s24_groups_go_over_into_another_file_as_they_are_stored(tmp_path: Path) -> None:
    """Those whose keys LMDB cannot hold among them; what is not wanted stays behind.

    A key is shortened within the group's name: only the record tells whose it is.
    """
    log, wanted, other = busy_log(), "w" * 512, "o" * 512
    for name in (wanted, other):
        log.entry(name, GroupCreated(), OffsetsCommitted((OffsetCommitted("t", 0, 1, -1, ""),)))
    whole = Checkpoint(log.records[-1].position, log.state, log.heads)
    path = write_checkpoint(tmp_path / "segments", whole)
    rest = {name: group for name, group in log.state.groups.items() if name != wanted}
    without = whole._replace(state=log.state._replace(groups=PMap(rest)))
    passed = list[bytes]()

    others = stored_groups(path, lambda key: group_of(key) == wanted)
    (tmp_path / "made").write_bytes(b"".join(encode_checkpoint(without, others)))

    assert read_checkpoint(tmp_path / "made").state == log.state
    read = read_checkpoint(path, lambda key: group_of(key) in rest, passed.append)
    assert read.state == without.state
    assert sorted(passed) == sorted(group_contents(log.state.groups[wanted]))


def test_s24_a_change_of_any_byte_is_found(tmp_path: Path) -> None:
    """At some hundred places over the whole file; each record and the whole have a sum."""
    path = write_checkpoint(tmp_path, made())
    content = path.read_bytes()
    for place in range(0, len(content), max(1, len(content) // 300)):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        with pytest.raises(CheckpointFlawed, match="fetches it again"):
            read_checkpoint(path)


def test_s24_a_hole_in_a_long_file_is_found_also_by_who_wants_few_groups(tmp_path: Path) -> None:
    """It is read in chunks: records are seen before the sum of the whole is compared."""
    log = EventLog()
    for number in range(8):
        offsets = tuple(OffsetCommitted("t", at, 1, -1, "m" * 400) for at in range(120))
        log.entry(f"g{number}", GroupCreated(), OffsetsCommitted(offsets))
    path = write_checkpoint(
        tmp_path, Checkpoint(log.records[-1].position, log.state, dict(log.heads))
    )
    content = path.read_bytes()
    assert len(content) > CHUNK_BYTES
    for place in range(0, CHUNK_BYTES, CHUNK_BYTES // 40):
        path.write_bytes(content[:place] + bytes(4096) + content[place + 4096 :])
        with pytest.raises(CheckpointFlawed):
            read_checkpoint(path, lambda _: False)
        with pytest.raises(CheckpointFlawed):
            list(stored_groups(path, lambda _: True))


def test_s24_a_file_that_ends_early_is_refused_wherever_it_ends(tmp_path: Path) -> None:
    path = write_checkpoint(tmp_path, made())
    content = path.read_bytes()
    for size in range(0, len(content), max(1, len(content) // 300)):
        path.write_bytes(content[:size])
        with pytest.raises(CheckpointFlawed):
            read_checkpoint(path)


@pytest.mark.parametrize("digest", [b"", bytes(40)])
def test_s24_a_sound_file_with_another_digest_does_not_become_the_checkpoint(
    tmp_path: Path, digest: bytes
) -> None:
    """A peer may send what it has; the log says what it has to be."""
    path = write_checkpoint(tmp_path, made())
    arrived = path.rename(tmp_path / "arrived")

    with pytest.raises(CheckpointFlawed, match="it should be"):
        publish_checkpoint(arrived, path, digest)
    assert checkpoints_in(tmp_path) == []


def test_s24_a_file_of_another_position_does_not_become_the_checkpoint(tmp_path: Path) -> None:
    checkpoint = made()
    arrived = write_checkpoint(tmp_path, checkpoint).rename(tmp_path / "arrived")
    other = tmp_path / checkpoint_name(Position(checkpoint.last.index, 7))

    with pytest.raises(CheckpointFlawed, match="ends at"):
        publish_checkpoint(arrived, other, checkpoint.digest)
    assert not other.exists()


def test_checkpoints_are_listed_in_the_order_of_the_log(tmp_path: Path) -> None:
    places = [Position(900, 2), Position(9, 11), Position(9, 2), Position(10_000, 0)]
    for place in places:
        (tmp_path / checkpoint_name(place)).touch()
    (tmp_path / "notes.checkpoint").touch()
    (tmp_path / f".{checkpoint_name(places[0])}.new").touch()

    assert [place for place, _ in checkpoints_in(tmp_path)] == sorted(places)
    assert checkpoints_in(tmp_path / "absent") == []


def test_s24_of_several_checkpoints_the_newest_sound_one_is_taken(tmp_path: Path) -> None:
    sound = made()
    write_checkpoint(tmp_path, sound)
    damaged = Position(sound.last.index + 5, 0)
    (tmp_path / checkpoint_name(damaged)).write_bytes(b"damaged")
    later = tmp_path / checkpoint_name(Position(damaged.index + 5, 0))
    later.write_bytes(b"behind what is asked for")

    found, flaws = newest_sound(checkpoints_in(tmp_path), damaged)
    assert found.last == sound.last
    assert len(flaws) == 1
    assert newest_sound([], damaged) == (NOTHING, [])

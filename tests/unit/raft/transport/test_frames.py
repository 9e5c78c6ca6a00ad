"""Frames: whatever the pieces in which they come, and never more than may be kept (FAULT-29)."""

from __future__ import annotations

from random import Random

import pytest

from holdfast.raft.api import BadMessage
from holdfast.raft.transport.frames import ALIVE, FrameReader, pack

FRAMES = [b"one", b"", b"x" * 70_000, b"two", b"", b""]
SENT = b"".join(pack(frame) for frame in FRAMES)


def taken(reader: FrameReader) -> list[bytes]:
    """All frames that are complete."""
    frames = []
    while (frame := reader.take()) is not None:
        frames.append(frame)
    return frames


@pytest.mark.parametrize("seed", range(20))
def test_frames_are_the_same_in_whatever_pieces_they_come(seed: int) -> None:
    random, reader, at = Random(seed), FrameReader(), 0
    found: list[bytes] = []
    while at < len(SENT):
        size = random.choice((1, 3, 5, 16_384, 100_000))
        reader.feed(SENT[at : at + size])
        at += size
        if random.random() < 0.7:
            found += taken(reader)

    assert found + taken(reader) == FRAMES
    assert reader.unread == b""


def test_byte_by_byte_a_frame_is_there_with_its_last_one() -> None:
    reader = FrameReader()
    for byte in pack(b"12345678")[:-1]:
        reader.feed(bytes((byte,)))
        assert reader.take() is None
    reader.feed(b"8")
    assert reader.take() == b"12345678"


def test_no_more_is_wanted_than_the_present_frame_needs() -> None:
    """What follows a greeting on a connection belongs to somebody else."""
    reader, sent, frames = FrameReader(), SENT, []
    while sent:
        piece, sent = sent[: reader.wanted], sent[reader.wanted :]
        reader.feed(piece)
        if (frame := reader.take()) is not None:
            frames.append(frame)
            assert reader.unread == b""
            assert reader.wanted == 4
    assert frames == FRAMES


def test_a_frame_that_claims_too_much_is_refused_by_its_length_alone() -> None:
    reader = FrameReader(most=10)
    reader.feed(pack(b"0123456789") + b"\0\0\0\x0b")

    assert reader.take() == b"0123456789"
    with pytest.raises(BadMessage, match="claims 11 bytes, and may have 10"):
        reader.take()


def test_the_sign_of_life_is_an_empty_frame() -> None:
    assert pack(b"") == ALIVE

"""Packets of frames: what is cut short, or claims too much, is refused."""

from __future__ import annotations

import pytest

from holdfast.raft.api import BadMessage
from holdfast.raft.transport import frames


@pytest.mark.parametrize("cut", range(1, 12))
def test_half_a_packet_is_refused(cut: int) -> None:
    packet = frames.pack([b"1234", b"5678"])
    if cut == 8:  # exactly one whole frame: a shorter, valid packet
        assert list(frames.unpack(packet[:cut])) == [b"1234"]
        return
    with pytest.raises(BadMessage):
        list(frames.unpack(packet[:-cut] if cut < 8 else packet[:cut]))


def test_a_frame_that_claims_too_much_is_refused() -> None:
    with pytest.raises(BadMessage, match="claims"):
        list(frames.unpack(b"\xff\xff\xff\xff" + bytes(8)))

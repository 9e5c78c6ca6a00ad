"""One connection with a peer: bounded, never waiting, and given up when the peer is dead.

Pairs of sockets in one process and a clock that the test moves.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from holdfast.raft.api import BadMessage
from holdfast.raft.transport import peer_options
from holdfast.raft.transport.connections import ConnectionEnded, Incoming, Outgoing
from holdfast.raft.transport.frames import ALIVE, pack
from holdfast.raft.transport.peer_options import PING_SECONDS, PONG_SECONDS

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    """This node's end, and the peer's; the peer's waits for a moment at most."""
    ours, theirs = socket.socketpair()
    theirs.settimeout(5.0)
    with ours, theirs:
        yield ours, theirs


def drained(theirs: socket.socket) -> bytes:
    """What has arrived at the peer."""
    theirs.settimeout(0)
    found = bytearray()
    try:
        while piece := theirs.recv(1 << 20):
            found += piece
    except BlockingIOError:
        pass
    return bytes(found)


def fill(link: Outgoing) -> list[bytes]:
    """Send until the system takes no more; return the frames."""
    frames = list[bytes]()
    while not link.is_waiting:
        frames.append(bytes((len(frames) % 251,)) * 50_000)
        assert link.send(frames[-1])
    return frames


def test_what_arrives_in_part_waits_for_the_rest(pair: Pair) -> None:
    ours, theirs = pair
    link, got = Incoming("p", ours, 0.0), list[bytes]()
    for byte in pack(b"message"):
        assert got == []
        theirs.sendall(bytes((byte,)))
        got += link.frames(0.0)
        assert not link.has_more
    assert got == [b"message"]


def test_a_turn_reads_so_many_frames_and_no_more(pair: Pair) -> None:
    """A peer that sends without end must not keep the timers waiting."""
    ours, theirs = pair
    most = peer_options.READ_FRAMES_A_TURN
    link = Incoming("p", ours, 0.0)
    theirs.sendall(pack(b"m") * (most + 10))

    assert len(list(link.frames(0.0))) == most
    assert link.has_more, "the poller knows nothing of what was read and not taken"
    assert len(list(link.frames(0.0))) == 10
    assert not link.has_more


def test_a_turn_reads_so_many_bytes_and_no_more(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peer_options, "READ_BYTES_A_TURN", 1000)
    ours, theirs = pair
    link = Incoming("p", ours, 0.0)
    theirs.sendall(pack(b"m" * 40_000))

    turns = 0
    while not list(link.frames(0.0)):
        assert link.has_more
        turns += 1
    assert turns == 3, "a turn ends behind the piece of 16 KiB that reaches its bound"


def test_a_frame_that_is_too_long_is_refused_behind_those_before_it(pair: Pair) -> None:
    ours, theirs = pair
    theirs.sendall(pack(b"good") + b"\xff\xff\xff\xff")
    frames = Incoming("p", ours, 0.0).frames(0.0)

    assert next(frames) == b"good"
    with pytest.raises(BadMessage):
        next(frames)


def test_a_peer_that_asks_is_answered(pair: Pair) -> None:
    ours, theirs = pair
    theirs.sendall(ALIVE + pack(b"m") + ALIVE)

    assert list(Incoming("p", ours, 0.0).frames(0.0)) == [b"m"]
    assert drained(theirs) == ALIVE + ALIVE


def test_the_end_is_told_behind_what_came_before(pair: Pair) -> None:
    ours, theirs = pair
    theirs.sendall(pack(b"last"))
    theirs.close()
    link = Incoming("p", ours, 0.0)

    assert list(link.frames(0.0)) == [b"last"]
    with pytest.raises(ConnectionEnded):
        list(link.frames(0.0))


def test_a_full_buffer_makes_nobody_wait_and_loses_nothing(pair: Pair) -> None:
    ours, theirs = pair
    link = Outgoing("p", ours, 0.0)
    frames, got = fill(link), b""
    for number in range(100):
        frames.append(b"small %d" % number)
        assert link.send(frames[-1])

    while link.is_waiting:
        got += drained(theirs)
        link.flush()
    assert got + drained(theirs) == b"".join(pack(frame) for frame in frames)


def test_what_waits_for_a_peer_is_bounded(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """What has no room was surely not sent: Raft sends it again."""
    monkeypatch.setattr(peer_options, "OUTGOING_BYTES_MAX", 1 << 20)
    ours, theirs = pair
    link = Outgoing("p", ours, 0.0)
    frames = fill(link)
    while link.send(b"m" * 50_000):
        frames.append(b"m" * 50_000)
        assert len(frames) < 1000

    got = drained(theirs)
    while link.is_waiting:
        link.flush()
        got += drained(theirs)
    assert got == b"".join(pack(frame) for frame in frames)


def test_a_turn_sends_so_much_and_no_more(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_options, "WRITE_BYTES_A_TURN", 10_000)
    monkeypatch.setattr(peer_options, "WRITE_BYTES", 10_000)
    ours, theirs = pair
    link = Outgoing("p", ours, 0.0)
    fill(link)
    drained(theirs)
    while link.is_waiting:
        link.flush()
        drained(theirs)
    fill(link)
    for _ in range(100):
        assert link.send(b"m" * 1_000)
    drained(theirs)
    link.flush()

    assert link.is_waiting


def test_a_peer_that_answers_is_asked_again_after_a_silence_only(pair: Pair) -> None:
    ours, theirs = pair
    link = Outgoing("p", ours, 0.0)
    link.ask(PING_SECONDS - 0.1)
    assert drained(theirs) == b""

    for moment in (PING_SECONDS, 2 * PING_SECONDS + PONG_SECONDS, 1e6):
        link.ask(moment)
        link.ask(moment + PONG_SECONDS - 0.1)
        assert drained(theirs) == ALIVE
        theirs.sendall(ALIVE)
        link.hear(moment + PONG_SECONDS)
        link.ask(moment + PONG_SECONDS)
        assert drained(theirs) == b""


def test_a_peer_that_does_not_answer_is_given_up(pair: Pair) -> None:
    """A process that is stopped: its system takes what is sent to it all the same."""
    ours, _theirs = pair
    link = Outgoing("p", ours, 0.0)
    link.ask(PING_SECONDS)
    for _ in range(10):
        assert link.send(b"heartbeat")
    link.ask(PING_SECONDS + PONG_SECONDS - 0.1)

    with pytest.raises(ConnectionEnded, match=r"no sign of life for 3\.0 s"):
        link.ask(PING_SECONDS + PONG_SECONDS)


def test_a_peer_that_reads_slowly_is_alive(pair: Pair) -> None:
    """The question waits behind megabytes, and so does the answer."""
    ours, theirs = pair
    link, now = Outgoing("p", ours, 0.0), 0.0
    fill(link)
    for _ in range(20):
        assert link.send(b"m" * 60_000)
    while link.is_waiting:
        now += PONG_SECONDS - 0.1
        link.ask(now)
        theirs.recv(200_000)
        if link.flush():
            link.progressed(now)
    assert now > 3 * PONG_SECONDS


def test_a_full_queue_that_does_not_move_is_given_up(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no room for the question either."""
    monkeypatch.setattr(peer_options, "OUTGOING_BYTES_MAX", 1)
    ours, _theirs = pair
    link = Outgoing("p", ours, 0.0)
    assert not link.send(b"heartbeat")
    link.ask(PING_SECONDS)

    with pytest.raises(ConnectionEnded):
        link.ask(PING_SECONDS + PONG_SECONDS)


def test_an_acceptor_that_says_anything_else_is_refused(pair: Pair) -> None:
    """FAULT-29: what arrives on a connection that this node dialled is never a message."""
    ours, theirs = pair
    theirs.sendall(ALIVE + pack(b"message"))

    with pytest.raises(BadMessage):
        Outgoing("p", ours, 0.0).hear(0.0)

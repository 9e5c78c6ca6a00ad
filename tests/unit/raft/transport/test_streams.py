"""All connections of a node, turn by turn: nobody starves, and what is dead is given up.

Pairs of sockets and a clock that the test moves; the poller is the real one.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from holdfast.raft.messages import Message, VoteGranted
from holdfast.raft.transport import peer_options
from holdfast.raft.transport.frames import ALIVE, pack
from holdfast.raft.transport.peer_options import PING_SECONDS, PONG_SECONDS, SILENCE_SECONDS
from holdfast.raft.transport.peer_trouble import Trouble
from holdfast.raft.transport.poller import Poller
from holdfast.raft.transport.streams import Streams
from holdfast.raft.wire.codec import encode
from unit.raft.transport.transports import Recorder

AGE = 100.0
"""How old a connection may become, in seconds."""


class Node:
    """One node's streams, and the peers' ends of them."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack, self.seen, self.downs = stack, Recorder(), list[str]()
        self.replaced: set[str] = set()
        """Peers to which another outgoing connection is about to come."""
        poller = Poller()
        stack.callback(poller.close)
        self.streams = Streams(
            *(self.seen, poller, self.downs.append, Trouble()),
            *(self.replaced.__contains__, AGE),
        )
        stack.callback(self.streams.close)

    def pair(self) -> tuple[socket.socket, socket.socket]:
        ours, theirs = socket.socketpair()
        theirs.settimeout(0)
        self._stack.enter_context(theirs)
        return ours, theirs

    def reads_from(self, peer: str, now: float = 0.0) -> socket.socket:
        ours, theirs = self.pair()
        self.streams.add_incoming(peer, ours, now)
        return theirs

    def sends_to(self, peer: str, now: float = 0.0) -> socket.socket:
        ours, theirs = self.pair()
        self.streams.add_outgoing(peer, ours, now)
        return theirs

    def turn(self, now: float = 0.0) -> None:
        """What the engine's thread does at each tick."""
        self.streams.tell_of_ended()
        self.streams.wait(0.0)
        self.streams.turn(now)
        self.streams.tell_of_ended()

    def terms(self, peer: str) -> list[int]:
        """What a peer's messages said, in the order in which they were delivered."""
        votes = (m for p, m in self.seen.seen if p == peer and isinstance(m, VoteGranted))
        return [vote.term for vote in votes]


@pytest.fixture
def node() -> Iterator[Node]:
    with ExitStack() as stack:
        yield Node(stack)


def vote(term: int) -> bytes:
    return pack(encode(VoteGranted(term)))


def is_closed(theirs: socket.socket) -> bool:
    """Whether the node has closed its end."""
    try:
        while theirs.recv(1 << 16):
            pass
    except BlockingIOError:
        return False
    except ConnectionError:
        return True
    return True


def test_s25c_the_end_of_a_connection_that_leads_elsewhere_is_told_at_once(node: Node) -> None:
    """Also if another one is about to come: it leads to another place."""
    theirs = node.sends_to("b")
    node.replaced.add("b")

    node.streams.end_outgoing("b", "it has moved")
    node.streams.end_outgoing("b", "it has moved")
    node.streams.end_outgoing("c", "there is none")

    assert is_closed(theirs)
    assert not node.streams.send("b", encode(VoteGranted(1)))
    assert node.streams.has_more
    node.turn()
    assert node.seen.seen == [("b", "up"), ("b", "down")]
    assert node.downs == ["b"]


def test_a_peer_that_never_stops_keeps_nobody_waiting(node: Node) -> None:
    """Each turn does a bounded amount for each peer, and ends."""
    loud, quiet, most = node.reads_from("loud"), node.reads_from("quiet"), 256
    sent = most * 10
    loud.sendall(b"".join(vote(term) for term in range(sent)))
    quiet.sendall(vote(7))

    node.turn()
    assert node.terms("quiet") == [7]
    assert len(node.terms("loud")) <= most
    while len(node.terms("loud")) < sent:
        assert node.streams.has_more, "the poller does not know what was read and not taken"
        node.turn()
    assert node.terms("loud") == list(range(sent))
    node.turn()
    assert not node.streams.has_more


def test_what_comes_while_a_turn_reads_belongs_to_it(node: Node) -> None:
    """One sync then serves all of it, as when a follower was syncing while the leader sent."""
    theirs, other = node.reads_from("p"), node.reads_from("q")
    theirs.sendall(vote(1))
    heard = node.seen.on_message

    def on_message(peer: str, message: Message) -> None:
        heard(peer, message)
        if node.terms("p") == [1] and not node.terms("q"):
            other.sendall(vote(2))

    node.seen.on_message = on_message  # type: ignore[method-assign]  # a peer that is quick
    node.turn()

    assert (node.terms("p"), node.terms("q")) == ([1], [2])


def test_a_turn_ends_whatever_comes_while_it_reads(node: Node) -> None:
    theirs = node.reads_from("p")
    theirs.sendall(vote(1))
    heard = node.seen.on_message

    def on_message(peer: str, message: Message) -> None:
        heard(peer, message)
        theirs.sendall(vote(1))

    node.seen.on_message = on_message  # type: ignore[method-assign]  # a peer that is quick
    node.turn()

    assert 1 < len(node.terms("p")) < 100


def test_half_a_message_keeps_nobody_waiting(node: Node) -> None:
    slow, other = node.reads_from("slow"), node.reads_from("other")
    for byte in vote(1)[:-1]:
        slow.sendall(bytes((byte,)))
        node.turn()
        assert not node.streams.has_more
    other.sendall(vote(2))
    node.turn()
    assert (node.terms("slow"), node.terms("other")) == ([], [2])

    slow.sendall(vote(1)[-1:])
    node.turn()
    assert node.terms("slow") == [1]


def test_a_newer_connection_ends_the_older_one_and_all_that_came_on_it(node: Node) -> None:
    """FAULT-29: what an older connection still held would come after what the newer one says."""
    older = node.reads_from("p")
    older.sendall(vote(1))
    node.turn()
    older.sendall(vote(2))
    newer = node.reads_from("p")
    newer.sendall(vote(3))
    node.turn()

    assert node.terms("p") == [1, 3]
    assert is_closed(older)
    assert not is_closed(newer)


def test_a_peer_that_reads_nothing_costs_a_bounded_queue_and_then_its_connection(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tick goes on meanwhile, for all other peers, too."""
    monkeypatch.setattr(peer_options, "OUTGOING_BYTES_MAX", 1 << 20)
    deaf, other = node.sends_to("deaf"), node.sends_to("other")
    count = 0
    while node.streams.send("deaf", b"m" * 10_000):
        count += 1
        assert count < 1_000
    assert node.streams.send("other", b"m")
    waiting = node.streams.waiting()
    assert 1_000_000 < waiting["deaf"] <= 1 << 20
    assert waiting["other"] == 0
    node.turn(PING_SECONDS)
    node.turn(PING_SECONDS + PONG_SECONDS / 2)
    assert node.downs == []
    other.send(ALIVE)
    node.turn(PING_SECONDS + PONG_SECONDS)

    assert node.downs == ["deaf"]
    assert node.seen.seen == [("deaf", "up"), ("other", "up"), ("deaf", "down")]
    assert not node.streams.send("deaf", b"m")
    assert is_closed(deaf)


def test_a_peer_is_not_sent_what_its_protocol_does_not_have(node: Node) -> None:
    """It would end the connection for it. The sender hears that it was surely not sent."""
    ours, theirs = node.pair()
    node.streams.add_outgoing("old", ours, 0.0, protocol=4)

    assert not node.streams.send("old", b"later", since=5)
    assert node.streams.send("old", b"m", since=4)
    assert theirs.recv(100) == pack(b"m")


def test_a_connection_that_breaks_in_a_send_is_told_in_the_next_turn(node: Node) -> None:
    """Not inside the send: whoever sends is in the middle of something."""
    theirs = node.sends_to("p")
    theirs.close()

    sent = [node.streams.send("p", b"m") for _ in range(3)]

    assert sent[-1] is False
    assert node.seen.seen == [("p", "up")]
    assert node.streams.has_more, "the next wait is short"
    node.turn()
    assert node.seen.seen == [("p", "up"), ("p", "down")]
    assert node.downs == ["p"]


def test_a_peer_that_closes_is_told_once(node: Node) -> None:
    node.sends_to("p").close()
    for _ in range(3):
        node.turn()
    assert node.seen.seen == [("p", "up"), ("p", "down")]


def test_a_peer_that_is_silent_is_not_listened_to_any_longer(node: Node) -> None:
    """A dialler asks every second: one that does not is frozen, or the network is cut."""
    silent, alive = node.reads_from("silent"), node.reads_from("alive")
    for now in (1.0, 2.0, 3.0):
        alive.sendall(ALIVE)
        node.turn(now)
    assert is_closed(silent)
    assert not is_closed(alive)


def test_time_in_which_this_process_stood_still_counts_for_nobody(node: Node) -> None:
    """What the peers said meanwhile waits in the sockets, and is read before anybody is judged."""
    reading, sending = node.reads_from("p"), node.sends_to("p")
    node.turn(PING_SECONDS)
    reading.sendall(ALIVE)
    sending.sendall(ALIVE)
    node.streams.wait(0.0)
    node.streams._ready = [(-1, 0)]  # the wait ended for another reason, and then time stood still
    node.streams.turn(PING_SECONDS + 10 * SILENCE_SECONDS)
    node.streams.tell_of_ended()

    assert node.downs == []
    assert not is_closed(reading)


def test_an_acceptor_that_sends_messages_is_dialled_again(node: Node) -> None:
    """FAULT-29: messages come on connections that the peer dialled, and on no others."""
    theirs = node.sends_to("p")
    theirs.sendall(vote(1))
    node.turn()

    assert node.terms("p") == []
    assert node.downs == ["p"]


def test_a_connection_that_is_replaced_is_not_told_as_ended(node: Node) -> None:
    """Followers would stand for election: they would think that the leader's process has ended."""
    older = node.sends_to("b")
    node.replaced.add("b")
    older.close()
    node.turn()
    newer = node.sends_to("b")
    node.turn()

    assert node.seen.seen == [("b", "up"), ("b", "up")]
    assert node.downs == []
    assert node.streams.send("b", encode(VoteGranted(1)))
    assert newer.recv(1 << 16)


def test_a_replacement_that_fails_tells_of_the_end_that_came_meanwhile(node: Node) -> None:
    older = node.sends_to("b")
    node.replaced.add("b")
    older.close()
    node.turn()
    assert not node.streams.has_more  # nothing to do: a tick would else follow the other
    node.replaced.clear()
    assert node.streams.has_more
    node.turn()

    assert node.seen.seen == [("b", "up"), ("b", "down")]
    assert node.downs == ["b"]


def test_the_one_before_is_closed_when_another_takes_its_place(node: Node) -> None:
    older = node.sends_to("b")
    node.sends_to("b")
    node.turn()

    assert older.recv(1) == b""
    assert node.downs == []


def test_a_peer_that_keeps_a_connection_for_too_long_is_cut_off(node: Node) -> None:
    """It may be one that new credentials let in no more (it greets again, or does not come)."""
    theirs = node.reads_from("b")
    for now in range(0, 104, 2):
        theirs.sendall(pack(encode(VoteGranted(1))))
        node.turn(float(now))
        if now <= AGE:
            with pytest.raises(BlockingIOError):
                theirs.recv(1)

    assert theirs.recv(1) == b""

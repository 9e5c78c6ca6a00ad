"""Calls beside the peer streams: same identity, own connection, bounded (FAULT-29, S7, S18)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from harness.disk_class import IDLE, disk_class
from holdfast.raft.api import BadMessage
from holdfast.raft.messages import VoteGranted
from holdfast.raft.transport.peer_transport import PeerTransport
from holdfast.raft.transport.side_calls import Answer
from holdfast.raft.transport.tls import PeerTls
from holdfast.raft.wire.greeting import Greeting, encode_greeting
from unit.raft.transport.other_node import answer_to, dialled, ends
from unit.raft.transport.peer_authority import Authority
from unit.raft.transport.transports import DEADLINE, Nodes, Recorder, addresses

CHUNK = b"\x5a" * (256 << 10)
CHUNKS = 400


def answer(request: bytes) -> Iterator[bytes]:
    if request == b"nonsense":
        raise BadMessage("that is no request")
    if request == b"absent":
        raise OSError("there is no such thing")
    return (CHUNK for _ in range(CHUNKS))


@pytest.fixture
def nodes() -> Iterator[Nodes]:
    with ExitStack() as stack:
        yield Nodes(stack)


def serving(
    nodes: Nodes, node: str, at: dict[str, str], tls: PeerTls | None, offered: Answer = answer
) -> None:
    """Start a node that answers calls."""
    peers = {peer: address for peer, address in at.items() if peer != node}
    transport = PeerTransport("c", node, at[node], peers, tls)
    transport.offer("Things", offered)
    nodes.recorders[node] = Recorder()
    nodes.stack.callback(transport.close)
    transport.start(nodes.recorders[node], transport.unpark)
    nodes.transports[node] = transport


def test_s7_messages_pass_while_a_long_answer_is_being_read(nodes: Nodes) -> None:
    """100 MB wait to be read, and a vote sent meanwhile does not wait behind them."""
    at, authority = addresses("a", "b"), Authority()
    serving(nodes, "b", at, authority.node("b"))
    serving(nodes, "a", at, authority.node("a"))
    assert nodes.until(lambda: ("a", "up") in nodes.recorders["b"].seen)
    chunks = nodes.transports["a"].call("b", "Things", b"all")
    assert next(chunks) == CHUNK

    assert nodes.transports["b"].send("a", VoteGranted(7))
    assert nodes.until(lambda: ("b", VoteGranted(7)) in nodes.recorders["a"].seen)
    assert sum(1 for _ in chunks) == CHUNKS - 1


def test_nobody_but_a_peer_is_answered(nodes: Nodes) -> None:
    """The same identity as for a stream: certificate, cluster, addressee."""
    at, authority = addresses("a", "b"), Authority()
    serving(nodes, "b", at, authority.node("b"))
    serving(nodes, "a", at, authority.node("mallory"))

    with pytest.raises(OSError, match="does not belong to node 'a'"):
        list(nodes.transports["a"].call("b", "Things", b"all"))


@pytest.mark.parametrize(
    ("request_", "told"), [(b"nonsense", "no request"), (b"absent", "no such thing")]
)
def test_what_cannot_be_answered_is_told(nodes: Nodes, request_: bytes, told: str) -> None:
    at = addresses("a", "b")
    serving(nodes, "b", at, None)
    serving(nodes, "a", at, None)

    with pytest.raises(OSError, match=told):
        list(nodes.transports["a"].call("b", "Things", request_))


def test_a_peer_has_one_answer_of_a_kind_at_a_time(nodes: Nodes) -> None:
    """Threads that answer are few, and the streams need theirs."""
    at = addresses("a", "b")
    serving(nodes, "b", at, None)
    serving(nodes, "a", at, None)
    first = nodes.transports["a"].call("b", "Things", b"all")
    assert next(first) == CHUNK

    with pytest.raises(OSError, match="is being answered"):
        list(nodes.transports["a"].call("b", "Things", b"all"))
    assert sum(1 for _ in first) == CHUNKS - 1


def test_s22_an_answer_reads_its_disk_when_nobody_else_does(nodes: Nodes) -> None:
    """Segments are megabytes that nobody waits for; the sync beside them is waited for."""
    at = addresses("a", "b")
    serving(nodes, "b", at, None, lambda _request: iter([b"%d" % disk_class()]))
    serving(nodes, "a", at, None)

    assert list(nodes.transports["a"].call("b", "Things", b"all")) == [b"%d" % IDLE]


def test_a_peer_that_is_not_there_is_an_error(nodes: Nodes) -> None:
    at = addresses("a", "b")
    serving(nodes, "a", at, None)

    with pytest.raises(OSError, match="b does not answer Things"):
        list(nodes.transports["a"].call("b", "Things", b"all"))


def hanging(nodes: Nodes) -> Callable[[bytes], Iterator[bytes]]:
    """An answer that stops after its first chunk, until the nodes end."""
    ended = threading.Event()
    nodes.stack.callback(ended.set)

    def hang(_request: bytes) -> Iterator[bytes]:
        yield CHUNK
        ended.wait()

    return hang


def test_a_call_ends_with_the_transport_that_made_it(nodes: Nodes) -> None:
    """A peer whose disk hangs must not hold up the end of a node that asks it for something."""
    at = addresses("a", "b")
    serving(nodes, "b", at, None, hanging(nodes))
    serving(nodes, "a", at, None)
    chunks = nodes.transports["a"].call("b", "Things", b"all")
    assert next(chunks) == CHUNK
    ended: list[Exception | None] = []
    reader = threading.Thread(target=lambda: ended.append(_failure(chunks)), daemon=True)
    reader.start()

    nodes.transports["a"].close()
    reader.join(DEADLINE)
    assert [type(error) for error in ended] == [OSError]
    with pytest.raises(OSError, match="is being closed"):
        list(nodes.transports["a"].call("b", "Things", b"all"))


def test_a_call_ends_with_the_peers_signs_of_life(nodes: Nodes) -> None:
    """A peer that is stopped keeps the call's connection open: its stream tells that it is dead."""
    at = addresses("a", "b")
    serving(nodes, "b", at, None, hanging(nodes))
    serving(nodes, "a", at, None)
    assert nodes.until(lambda: ("b", "up") in nodes.recorders["a"].seen)
    chunks = nodes.transports["a"].call("b", "Things", b"all")
    assert next(chunks) == CHUNK

    del nodes.transports["b"]  # it ticks no more
    ended = nodes.meanwhile(lambda: _failure(chunks))
    assert isinstance(ended, OSError)


def test_a_method_that_nobody_offers_is_told(nodes: Nodes) -> None:
    at = addresses("a", "b")
    serving(nodes, "b", at, None)
    serving(nodes, "a", at, None)

    with pytest.raises(OSError, match=r"this node answers no calls of .*Nothing"):
        list(nodes.transports["a"].call("b", "Nothing", b"all"))


def _failure(chunks: Iterator[bytes]) -> Exception | None:
    try:
        for _ in chunks:
            pass
    except OSError as error:
        return error
    return None


def test_a_call_for_which_the_machine_has_no_thread_costs_the_port_nothing(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit on processes is met by anybody's threads; the peers must still come in afterwards."""
    at = addresses("a", "b")
    serving(nodes, "b", at, None)
    greeting = encode_greeting(Greeting("c", "a", "b", method="Things"))

    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with dialled(at["b"], greeting) as refused:
            assert ends(refused)

    assert isinstance(answer_to(at["b"], greeting), Greeting)

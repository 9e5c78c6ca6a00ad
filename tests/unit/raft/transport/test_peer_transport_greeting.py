"""Nodes greet each other before the first frame; unlike versions refuse each other, both ways.

The other node is played by hand, as versions to come look from outside.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from harness.poll import until
from holdfast.raft.api import Build
from holdfast.raft.messages import VoteGranted
from holdfast.raft.transport.frames import pack
from holdfast.raft.transport.lineage import Lineage
from holdfast.raft.transport.peer_transport import PeerTransport
from holdfast.raft.wire.codec import encode
from holdfast.raft.wire.greeting import (
    BYTES_MAX,
    OURS,
    Greeting,
    Versions,
    encode_answer,
    encode_greeting,
    encode_refusal,
)
from unit.raft.transport.other_node import OtherAcceptor, answer_to, dialled, ends, read
from unit.raft.transport.transports import Nodes, Recorder, addresses

B_TO_A = Greeting("c", "b", "a")
LATER = OURS.newest + 1
UNLIKE: dict[str, tuple[Versions, str]] = {
    "an older protocol": (
        Versions(2, OURS.oldest - 1, OURS.entries),
        f"speaks peer protocols 2 to {OURS.oldest - 1} with entries of schema {OURS.entries}",
    ),
    "later protocols": (
        Versions(LATER, LATER + 1, OURS.entries),
        f"speaks peer protocols {LATER} to {LATER + 1} with entries of schema {OURS.entries}",
    ),
    "later entries": (
        OURS._replace(entries=OURS.entries + 1),
        f"entries of schema {OURS.entries + 1}",
    ),
}
WHAT_TO_DO = "stop all nodes, install one version of Holdfast everywhere"
A_FIELD_OF_THE_FUTURE = b"\xfa\x01\x01x"
"""Field 31 of protobuf, a text."""
WRONG: dict[str, Greeting] = {
    "no sender": B_TO_A._replace(sender=""),
    "a range the wrong way round": B_TO_A._replace(versions=Versions(3, 2, 1)),
    "no versions": B_TO_A._replace(versions=Versions(0, 0, 0)),
    "a name far too long": B_TO_A._replace(cluster_id="c" * 300),
    "a method far too long": B_TO_A._replace(method="m" * 300),
}
NO_GREETINGS: dict[str, bytes] = {
    "no protobuf": b"\xff",
    "nothing in it": b"",
    **{name: encode_greeting(greeting) for name, greeting in WRONG.items()},
}
NO_ANSWERS: dict[str, bytes] = {
    "no protobuf": b"\xff",
    "nothing in it": b"",
    "both accepted and refused": encode_answer(B_TO_A) + encode_refusal("no"),
    **{name: encode_answer(greeting) for name, greeting in WRONG.items()},
}


@pytest.fixture
def nodes() -> Iterator[Nodes]:
    with ExitStack() as stack:
        yield Nodes(stack)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the logger `holdfast.raft` was told, from warnings on."""
    return [
        record.getMessage()
        for record in caplog.records
        if record.name.startswith("holdfast.raft") and record.levelno >= logging.WARNING
    ]


def refused(nodes: Nodes, caplog: pytest.LogCaptureFixture, answer: bytes, times: int = 3) -> str:
    """Start node a beside a node b with this answer; return what a warns of, once."""
    at, other = addresses("a", "b"), OtherAcceptor(answer)
    nodes.stack.enter_context(other.listening(at["b"]))
    nodes.start("a", at["a"], {"b": at["b"]})

    until(lambda: len(other.greeted) >= times, "redials")
    nodes.turn()

    assert not nodes.transports["a"].send("b", VoteGranted(1))
    assert other.heard == b""
    (warning,) = warnings(caplog)
    return warning


@pytest.mark.parametrize("unlike", UNLIKE)
def test_an_unlike_peer_is_sent_nothing(
    nodes: Nodes, caplog: pytest.LogCaptureFixture, unlike: str
) -> None:
    versions, said = UNLIKE[unlike]

    warning = refused(nodes, caplog, pack(encode_answer(B_TO_A._replace(versions=versions))))

    assert said in warning
    assert f"node 'a' {OURS}" in warning
    assert WHAT_TO_DO in warning


@pytest.mark.parametrize("unlike", UNLIKE)
def test_an_unlike_peer_is_not_listened_to(
    nodes: Nodes, caplog: pytest.LogCaptureFixture, unlike: str
) -> None:
    at, (versions, said) = addresses("a", "b"), UNLIKE[unlike]
    nodes.start("a", at["a"], {"b": at["b"]})
    greeting = encode_greeting(B_TO_A._replace(versions=versions))

    told = [answer_to(at["a"], greeting) for _ in range(3)]

    assert all(isinstance(each, str) and said in each for each in told)
    (warning,) = warnings(caplog)
    assert said in warning
    assert WHAT_TO_DO in warning


def test_why_a_peer_refuses_is_one_line_of_bounded_length(
    nodes: Nodes, caplog: pytest.LogCaptureFixture
) -> None:
    """It is text from another machine."""
    refusal = encode_refusal("no\nlevel=critical\x1b[2J" + "!" * 3_000)

    warning = refused(nodes, caplog, pack(refusal))

    assert len(refusal) < BYTES_MAX
    assert warning.startswith("node 'b' refuses this node: 'no\\nlevel=critical\\x1b[2J!!!")
    assert warning.isprintable()
    assert len(warning) < 1_200


def test_the_longest_refusal_is_one_that_a_dialler_reads() -> None:
    """Characters take up to four bytes."""
    assert len(encode_refusal("\U0001f512" * 5_000)) <= BYTES_MAX


def test_an_answer_of_an_unlike_peer_is_not_taken(nodes: Nodes) -> None:
    """Segments that another version wrote come only when all nodes are of one."""
    unlike = B_TO_A._replace(versions=Versions(LATER, LATER, OURS.entries))
    at, other = addresses("a", "b"), OtherAcceptor(pack(encode_answer(unlike)))
    nodes.stack.enter_context(other.listening(at["b"]))
    asking = PeerTransport("c", "a", at["a"], {"b": at["b"]}, None)

    with pytest.raises(OSError, match=f"speaks peer protocol {LATER}"):
        list(asking.call("b", "Things", b"x"))
    assert other.heard == b""


def test_a_call_of_an_unlike_peer_is_not_answered(nodes: Nodes) -> None:
    at = addresses("a", "b")
    transport = PeerTransport("c", "a", at["a"], {"b": at["b"]}, None)
    nodes.stack.callback(transport.close)
    transport.offer("Things", lambda request: iter([request]))
    transport.start(nodes.recorder("a"), transport.unpark)
    unlike = B_TO_A._replace(method="Things", versions=Versions(LATER, LATER, OURS.entries))

    assert WHAT_TO_DO in str(answer_to(at["a"], encode_greeting(unlike)))


@pytest.mark.parametrize("wrong", NO_GREETINGS)
def test_who_greets_wrongly_is_nobody(nodes: Nodes, wrong: str) -> None:
    """FAULT-29: a greeting is complete and within its bounds, or its sender gets no stream."""
    at = addresses("a", "b")
    nodes.start("a", at["a"], {"b": at["b"]})

    told = answer_to(at["a"], NO_GREETINGS[wrong])

    assert isinstance(told, str)
    assert "no node sends this" in told


def test_a_greeting_that_claims_too_much_is_refused_before_it_is_sent(nodes: Nodes) -> None:
    """FAULT-29: who it is that makes a node keep bytes is not known yet."""
    at = addresses("a", "b")
    nodes.start("a", at["a"], {"b": at["b"]})
    with dialled(at["a"], b"") as connection:
        ends(connection)
    with dialled(at["a"], b"c" * (BYTES_MAX + 1)) as connection:
        told = read(connection)

    assert b"claims 4097 bytes" in told


@pytest.mark.parametrize("wrong", NO_ANSWERS)
def test_who_answers_wrongly_is_sent_nothing(
    nodes: Nodes, caplog: pytest.LogCaptureFixture, wrong: str
) -> None:
    warning = refused(nodes, caplog, pack(NO_ANSWERS[wrong]), times=2)

    assert "who answers for node 'b' greets wrongly: no node sends this" in warning


@pytest.mark.parametrize(
    "told",
    [B_TO_A._replace(sender="x"), B_TO_A._replace(cluster_id="x"), B_TO_A._replace(addressee="x")],
)
def test_who_answers_as_another_is_sent_nothing(
    nodes: Nodes, caplog: pytest.LogCaptureFixture, told: Greeting
) -> None:
    """A peer address is wrong, and without TLS no certificate says so."""
    assert "a peer address is wrong" in refused(nodes, caplog, pack(encode_answer(told)), times=2)


def test_a_peer_address_that_is_a_port_of_grpc_is_told_so(
    nodes: Nodes, caplog: pytest.LogCaptureFixture
) -> None:
    """A clients' port, or a node of an older version; here by the first frame of its HTTP/2."""
    settings = b"\0\0\x1e\x04\0\0\0\0\0" + bytes(30)

    warning = refused(nodes, caplog, settings, times=2)

    assert "for node 'b' speaks gRPC: that is where clients connect, or that node runs" in warning
    assert "Correct the peer address" in warning


def test_nodes_whose_ranges_meet_run_together(nodes: Nodes) -> None:
    """Both ways, whatever else a later version tells."""
    reaching_back = B_TO_A._replace(versions=Versions(OURS.newest, LATER, OURS.entries))
    answer = encode_answer(reaching_back) + A_FIELD_OF_THE_FUTURE
    at, other = addresses("a", "b"), OtherAcceptor(pack(answer))
    nodes.stack.enter_context(other.listening(at["b"]))
    nodes.start("a", at["a"], {"b": at["b"]})
    assert nodes.until(lambda: ("b", "up") in nodes.recorders["a"].seen)

    later = encode_greeting(reaching_back) + A_FIELD_OF_THE_FUTURE
    assert answer_to(at["a"], later) == Greeting("c", "a", "b", peer_address=at["a"])


def test_nodes_know_what_their_peers_run(nodes: Nodes) -> None:
    """Also of one that is away: a cluster is formed at a level at which all can run (S19)."""
    at = addresses("a", "b")
    nodes.start("a", at["a"], {"b": at["b"]}, build=Build("0.2", 1, 2))
    assert nodes.transports["a"].builds() == {}
    nodes.start("b", at["b"], {"a": at["a"]}, build=Build("0.3", 1, 3))
    assert nodes.until(lambda: ("b", "up") in nodes.recorders["a"].seen)
    assert nodes.until(lambda: ("a", "up") in nodes.recorders["b"].seen)

    nodes.transports.pop("b").close()
    assert nodes.until(lambda: ("b", "down") in nodes.recorders["a"].seen)

    assert nodes.transports["a"].builds() == {"b": Build("0.3", 1, 3)}


TOO_OLD = B_TO_A._replace(versions=OURS._replace(build=Build("0.1", 1, 1)))
IS_TOO_OLD = "node 'b' runs Holdfast 0.1, which can run at level 1 alone, and level 2 is in force"


def test_who_cannot_run_at_the_level_in_force_is_not_listened_to(nodes: Nodes) -> None:
    """The level is told as it is at each greeting: it may have been raised meanwhile."""
    at = addresses("a", "b")
    nodes.start("a", at["a"], {"b": at["b"]}, build=Build("0.2", 1, 2))
    greeting = encode_greeting(TOO_OLD)
    assert isinstance(answer_to(at["a"], greeting), Greeting)
    nodes.transports["a"].tell_level(lambda: 2)

    refusal = answer_to(at["a"], greeting)

    assert isinstance(refusal, str)
    assert IS_TOO_OLD in refusal


def test_who_cannot_run_at_the_level_in_force_is_sent_nothing(
    nodes: Nodes, caplog: pytest.LogCaptureFixture
) -> None:
    at, other = addresses("a", "b"), OtherAcceptor(pack(encode_answer(TOO_OLD)))
    nodes.stack.enter_context(other.listening(at["b"]))
    transport = PeerTransport("c", "a", at["a"], {"b": at["b"]}, None, build=Build("0.2", 1, 2))
    nodes.stack.callback(transport.close)
    transport.tell_level(lambda: 2)

    transport.start(nodes.recorder("a"), transport.unpark)
    until(lambda: len(other.greeted) >= 2, "redials")

    assert other.heard == b""
    assert any(IS_TOO_OLD in warning for warning in warnings(caplog))


@pytest.mark.parametrize(("holds_nothing", "number"), [(True, 2), (False, 0)])
def test_s13_the_disk_says_whether_it_may_become_one_of_a_restore(
    nodes: Nodes, *, holds_nothing: bool, number: int
) -> None:
    """It is asked at each greeting: a node that was rebuilt is the same process as before."""
    at = addresses("a", "b")
    taken: list[int] = []
    lineages = {"a": Lineage(2), "b": Lineage(adopt=taken.append)}
    recorders = {"a": Recorder(), "b": Recorder(holds_nothing=holds_nothing)}
    for node, peer in ("ab", "ba"):
        transport = PeerTransport(
            "c", node, at[node], {peer: at[peer]}, None, lineage=lineages[node]
        )
        nodes.stack.callback(transport.close)
        transport.start(recorders[node], transport.unpark)
        nodes.transports[node] = transport

    if holds_nothing:
        assert nodes.until(lambda: ("a", "up") in recorders["b"].seen)
    else:
        assert nodes.until(lambda: bool(nodes.transports["b"].troubles() and recorders["b"].later))
        assert "from before the cluster was restored" in nodes.transports["b"].troubles()[0]
    assert lineages["b"].number == number
    assert taken == [number] * holds_nothing
    assert set(recorders["b"].later) == set("a" * (not holds_nothing))
    assert recorders["a"].later == []


def test_a_frame_that_no_node_sends_ends_the_connection_and_names_the_peer(
    nodes: Nodes, caplog: pytest.LogCaptureFixture
) -> None:
    """FAULT-29: what came before it was delivered, and nothing after it is.

    The log has one sentence, and no traceback, however often the peer dials and says it again.
    """
    at = addresses("a", "b")
    frames = [encode(VoteGranted(1)), b"\0\0\0\0", encode(VoteGranted(2))]
    nodes.start("a", at["a"], {"b": at["b"]})
    seen = nodes.recorders["a"].seen
    for times in (1, 2, 3):
        with dialled(at["a"], encode_greeting(B_TO_A)) as connection:
            read(connection)
            connection.sendall(b"".join(pack(frame) for frame in frames))
            assert nodes.meanwhile(lambda connection=connection: ends(connection))  # type: ignore[misc]  # bound now
        assert seen == [("b", VoteGranted(1))] * times

    (warning,) = warnings(caplog)
    assert warning.startswith(
        "what node 'b' sent cannot be read, so the connection has ended, and it dials again: no "
        "node sends this: "
    )
    assert not any(record.exc_info for record in caplog.records)
    assert nodes.transports["a"].troubles() == [warning]

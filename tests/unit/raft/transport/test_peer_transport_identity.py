"""Who a peer is, on real sockets and in both directions: the names in its certificate (FAULT-29).

In each test the wrong one does everything else right: it has the authority's signature, the host
that is dialled, and says the right cluster and node of itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace

import grpc
import pytest
from cryptography import x509

from holdfast.raft.messages import VoteGranted
from holdfast.raft.transport.peer_names import node_uri
from holdfast.raft.transport.peer_transport import PeerTransport
from holdfast.raft.transport.tls import PeerTls
from unit.raft.transport.peer_authority import HOST, PEM, Authority, email, new_names, old_names
from unit.raft.transport.transports import Nodes, Recorder, addresses

Names = Sequence[x509.GeneralName]


def wrong_names(node: str) -> dict[str, Names]:
    """What a certificate may hold that is not that node's."""
    uri, old = node_uri("c", node), f"holdfast://node/{node}"
    return {
        "a DNS name that reads like the URI": [HOST, x509.DNSName(uri)],
        "a DNS name that reads like the old URI": [HOST, x509.DNSName(old)],
        "an e-mail address that reads like the URI": [HOST, email(uri)],
        "an e-mail address that reads like the old URI": [HOST, email(old)],
        "the node's name as a host": [HOST, x509.DNSName(node)],
        "the node of that name of another cluster": new_names(node, "other"),
        "another node of this cluster": new_names("honest"),
        "another node, old names": old_names("honest"),
        "a client": [HOST, x509.UniformResourceIdentifier(f"holdfast://client/{node}")],
        "more than the URI": [HOST, x509.UniformResourceIdentifier(uri + "/")],
        "a host alone": [HOST, x509.DNSName(f"{node}.example")],
    }


WRONG = list(wrong_names("a"))


@pytest.fixture
def nodes() -> Iterator[Nodes]:
    with ExitStack() as stack:
        yield Nodes(stack)


class Three:
    """Nodes a, b and honest; a and b get what a test gives them."""

    def __init__(self, nodes: Nodes, authority: Authority, a: PeerTls, b: PeerTls) -> None:
        self.nodes, self.asked = nodes, 0
        self.at = addresses("a", "b", "honest")
        for node, tls in {"a": a, "b": b, "honest": authority.node("honest")}.items():
            self._start(node, tls)

    def _start(self, node: str, tls: PeerTls) -> None:
        peers = {peer: address for peer, address in self.at.items() if peer != node}
        transport = PeerTransport("c", node, self.at[node], peers, tls)
        transport.offer("Things", self._answer)
        recorder = self.nodes.recorders[node] = Recorder()
        self.nodes.stack.callback(transport.close)
        transport.start(recorder, transport.unpark)
        self.nodes.transports[node] = transport

    def _answer(self, request: bytes) -> Iterator[bytes]:
        self.asked += 1
        yield request

    def refusal(self) -> str:
        """Why b's answer does not come to a."""
        refusal = self.asked_of("a", "b")
        assert self.asked == 0
        assert isinstance(refusal, str)
        assert "b does not answer Things" in refusal
        return refusal

    def asked_of(self, node: str, peer: str) -> list[bytes] | str:
        """What a peer answers a node, or why it does not."""
        try:
            return list(self.nodes.transports[node].call(peer, "Things", b"x"))
        except OSError as error:
            return str(error)

    def streams(self) -> bool:
        """Whether a sends to b; once an honest node got through, as much time was a's."""
        assert self.nodes.until(lambda: ("honest", "up") in self.nodes.recorders["a"].seen)
        return self.nodes.transports["a"].send("b", VoteGranted(1))


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("accept_old", [False, True])
def test_nobody_but_the_node_itself_is_let_in(
    nodes: Nodes, wrong: str, *, accept_old: bool
) -> None:
    """Only URI entries count, in the certificate itself; old names change nothing of that."""
    authority = Authority()
    b = replace(authority.node("b"), accept_old_names=accept_old)
    three = Three(nodes, authority, authority.pair(wrong_names("a")[wrong]), b)

    refusal = three.refusal()

    assert "the certificate does not belong to node 'a'" in refusal
    assert f"URI:{node_uri('c', 'a')}" in refusal


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("accept_old", [False, True])
def test_nobody_but_the_node_itself_is_sent_anything(
    nodes: Nodes, wrong: str, *, accept_old: bool
) -> None:
    """The dialler looks for the same name, whatever host it dialled."""
    authority = Authority()
    a = replace(authority.node("a"), accept_old_names=accept_old)
    three = Three(nodes, authority, a, authority.pair(wrong_names("b")[wrong]))

    refusal = three.refusal()

    assert f"who answers at {three.at['b']} is not node 'b'" in refusal
    assert f"URI:{node_uri('c', 'b')}" in refusal
    assert not three.streams()


@pytest.mark.parametrize(
    "names", [new_names("b"), [x509.DNSName("x")]], ids=["the node's names", "its common name"]
)
def test_a_clients_certificate_is_no_nodes(nodes: Nodes, names: Names) -> None:
    """Whatever its names are: an authority that lets clients choose them gives no nodes away."""
    authority = Authority()
    b = authority.client(names, common_name=node_uri("c", "b"))
    three = Three(nodes, authority, authority.node("a"), b)

    assert "b does not answer" in three.refusal()
    assert not three.streams()


def test_a_clients_certificate_lets_nobody_in_as_a_node(nodes: Nodes) -> None:
    """TLS asks of a dialler only that it is good for clients; a node's is good for servers, too."""
    authority = Authority()
    three = Three(nodes, authority, authority.client(new_names("a")), authority.node("b"))

    assert "it is for clients alone" in three.refusal()


@pytest.mark.parametrize("accept_old", [False, True])
def test_nodes_with_the_names_of_this_version_know_each_other(
    nodes: Nodes, *, accept_old: bool
) -> None:
    """The URI is enough: the host that is dialled need not be in a certificate."""
    authority = Authority()
    a, b = (
        replace(
            authority.pair([x509.UniformResourceIdentifier(node_uri("c", node))]),
            accept_old_names=accept_old,
        )
        for node in "ab"
    )
    three = Three(nodes, authority, a, b)

    assert three.asked_of("a", "b") == [b"x"]
    assert nodes.until(lambda: ("b", "up") in nodes.recorders["a"].seen)


def test_old_names_are_accepted_where_that_is_set(nodes: Nodes) -> None:
    """So that nodes get their new certificates one by one."""
    authority = Authority()
    a = replace(authority.pair(old_names("a")), accept_old_names=True)
    b = replace(authority.node("b"), accept_old_names=True)
    three = Three(nodes, authority, a, b)

    assert three.asked_of("a", "b") == [b"x"]
    assert three.asked_of("b", "a") == [b"x"]
    assert nodes.until(lambda: ("b", "up") in nodes.recorders["a"].seen)
    assert nodes.until(lambda: ("a", "up") in nodes.recorders["b"].seen)


def test_old_names_alone_are_refused_with_what_to_do(nodes: Nodes) -> None:
    authority = Authority()
    three = Three(nodes, authority, authority.pair(old_names("a")), authority.node("b"))

    assert "tls.accept_old_node_names = true" in three.refusal()
    assert "tls.accept_old_node_names = true" in str(three.asked_of("b", "a"))


def test_with_an_authority_of_their_own_nodes_do_not_shake_hands_with_clients(nodes: Nodes) -> None:
    """A client's certificate is not looked at: it gets no connection, and no call to be refused."""
    peers, clients = Authority(), Authority()
    three = Three(nodes, peers, peers.node("a"), peers.node("b"))
    client = clients.client([x509.UniformResourceIdentifier(node_uri("c", "a"))])
    credentials = grpc.ssl_channel_credentials(
        client.ca + peers.certificate.public_bytes(PEM), client.key, client.certificate
    )

    assert three.asked_of("a", "b") == [b"x"]
    with grpc.secure_channel(three.at["b"], credentials) as channel:
        ask: grpc.UnaryStreamMultiCallable[bytes, bytes]
        ask = channel.unary_stream("/holdfast.v1.GroupService/ListGroups")
        with pytest.raises(grpc.RpcError) as refused:
            list(ask(b"x"))
    assert refused.value.code() is grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize(
    "odd", ["Node-1", "node_1", "a.b", "x--1", "name with spaces", "ß", "n" * 80]
)
def test_any_name_that_a_configuration_may_have_is_a_peers(nodes: Nodes, odd: str) -> None:
    """A DNS label holds neither all characters nor upper case."""
    authority, cluster = Authority(), "Produktion, größer/2"
    at = addresses(odd, "b")
    nodes.start("b", at["b"], {odd: at[odd]}, cluster, authority.node("b", cluster))
    nodes.start(odd, at[odd], {"b": at["b"]}, cluster, authority.node(odd, cluster))

    assert nodes.until(lambda: ("b", "up") in nodes.recorders[odd].seen)
    assert nodes.until(lambda: (odd, "up") in nodes.recorders["b"].seen)

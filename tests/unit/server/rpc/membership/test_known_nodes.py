"""Which nodes there are, and where: by the log, else by this node's file (S25)."""

from __future__ import annotations

from holdfast.raft.membership import AddLearner, ClusterNode, Membership, Promote, Remove, after
from holdfast.server.config.address import Address
from holdfast.server.config.node_config import Peer
from holdfast.server.rpc.membership.known_nodes import ClientAddresses, KnownNode, KnownNodes
from unit.runtime.fake_replica import FakeReplica

FILE = [Peer("a", Address("a", 1), Address("a", 2)), Peer("b", Address("b", 1), Address("b", 2))]
NEW = ClusterNode("c", peer_address="c:2", client_address="c:1")


def test_the_first_nodes_are_where_the_file_says() -> None:
    replica = FakeReplica()
    replica.membership = Membership.of(("b", "a"))

    assert list(KnownNodes(replica, FILE).values()) == [
        KnownNode("a", "a:1", "a:2", is_voter=True),
        KnownNode("b", "b:1", "b:2", is_voter=True),
    ]


def test_nodes_come_and_go_while_this_one_runs() -> None:
    replica = FakeReplica()
    replica.membership = Membership.of(("a", "b"))
    known = KnownNodes(replica, FILE)
    addresses = ClientAddresses(known)
    assert dict(addresses) == {"a": "a:1", "b": "b:1"}

    replica.membership = after(replica.membership, AddLearner(NEW))
    assert known["c"] == KnownNode("c", "c:1", "c:2", is_voter=False)
    replica.membership = after(replica.membership, Promote("c"))
    assert known["c"].is_voter
    replica.membership = after(replica.membership, Remove("a"))
    assert known.membership() == Membership(
        (ClusterNode("b", "b:2", "b:1"), NEW), removed=("a",)
    ), "which of the log alone has no addresses of b"
    assert dict(addresses) == {"b": "b:1", "c": "c:1"}
    assert len(addresses) == len(known) == 2


def test_where_a_node_is_may_be_unknown() -> None:
    """The file of a node that came later need not name all of the first ones."""
    replica = FakeReplica()
    replica.membership = Membership.of(("a", "z"))

    assert KnownNodes(replica, FILE)["z"] == KnownNode("z", "", "", is_voter=True)

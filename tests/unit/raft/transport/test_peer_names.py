"""The name in a node's certificate: what it is, and that no two nodes share one."""

from __future__ import annotations

from itertools import combinations

import pytest

from holdfast.raft.transport.peer_names import (
    missing_name,
    names_a_node,
    node_uri,
    old_node_uri,
    uris_of,
)
from unit.raft.transport.peer_authority import Authority, new_names, old_names

ODD = [
    "node-1",
    "Node-1",
    "NODE-1",
    "node_1",
    "node.1",
    "a/b",
    "a%2Fb",
    "",
    "ß",
    "n" * 63,
    "n" * 64,
]


def test_the_name_is_what_the_documents_say() -> None:
    assert node_uri("search", "node-1") == "holdfast://search/node/node-1"
    assert node_uri("a/b", "Node 1") == "holdfast://a%2Fb/node/Node%201"


def test_no_two_nodes_of_two_clusters_share_a_name() -> None:
    names = [node_uri(cluster, node) for cluster in ("c", "C", "c/node") for node in ODD]

    assert not [pair for pair in combinations(names, 2) if len(set(pair)) == 1]


@pytest.mark.parametrize("node", ODD[:-2])
def test_a_nodes_name_is_told_from_a_clients(node: str) -> None:
    """A client may have `node/` somewhere in its name, and slashes; a node's are encoded."""
    assert names_a_node(node_uri("c/node", node))
    assert names_a_node(old_node_uri(node))
    for uri in ("holdfast://client/eu-node/x", "holdfast://c/client/node/a", "spiffe://c/node/a"):
        assert not names_a_node(uri)


def test_what_a_certificate_lacks_is_named_as_openssl_writes_it() -> None:
    authority = Authority()

    assert missing_name(authority.pair(new_names("a")).certificate, "c", "a") == ""
    for lacking in (old_names("a"), new_names("b"), new_names("a", "other")):
        pem = authority.pair(lacking).certificate
        assert missing_name(pem, "c", "a") == "URI:holdfast://c/node/a"


@pytest.mark.parametrize("pem", [b"", b"no certificate"])
def test_what_cannot_be_read_names_nobody(pem: bytes) -> None:
    assert uris_of(pem) == frozenset()


def test_entries_that_are_none_name_nobody() -> None:
    """An authority that signs nonsense: neither a name nor an error in the thread that looks."""
    assert uris_of(Authority().nonsense()) == frozenset()

"""The names in a node's certificate: what they are, and that no two nodes share one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from itertools import combinations

import pytest

from holdfast.raft.transport.peer_names import missing_names, node_dns_name, node_uri, uris_of
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


def test_the_names_are_what_the_documents_say() -> None:
    digits = hashlib.sha256(b"search").hexdigest()[:16]

    assert node_dns_name("search", "node-1") == f"node-1.{digits}.holdfast"
    assert node_uri("search", "node-1") == "holdfast://search/node/node-1"


def test_a_name_that_no_label_holds_is_hashed() -> None:
    digits = hashlib.sha256(b"Node_1").hexdigest()[:32]

    assert node_dns_name("c", "Node_1").startswith(f"x--{digits}.")
    assert node_uri("a/b", "Node 1") == "holdfast://a%2Fb/node/Node%201"


@pytest.mark.parametrize("name", [node_dns_name, node_uri])
def test_no_two_nodes_of_two_clusters_share_a_name(name: Callable[[str, str], str]) -> None:
    """Also not by case, as DNS names are compared without it."""
    hashed = node_dns_name("c", "Node-1").partition(".")[0]
    names = [name(cluster, node) for cluster in ("c", "C", "c/node") for node in [*ODD, hashed]]
    compared = [text.lower() if name is node_dns_name else text for text in names]

    assert not [pair for pair in combinations(compared, 2) if len(set(pair)) == 1]


def test_every_label_is_one_that_dns_allows() -> None:
    for node in ODD:
        for label in node_dns_name("c", node).split("."):
            assert 0 < len(label) <= 63
            assert label.isascii()
            assert label.replace("-", "").isalnum()


def test_what_a_certificate_lacks_is_named_as_openssl_writes_it() -> None:
    authority = Authority()
    uri, dns = f"URI:{node_uri('c', 'a')}", f"DNS:{node_dns_name('c', 'a')}"

    assert missing_names(authority.pair(new_names("a")).certificate, "c", "a") == []
    assert missing_names(authority.pair(new_names("a")[:2]).certificate, "c", "a") == [dns]
    assert missing_names(authority.pair(old_names("a")).certificate, "c", "a") == [uri, dns]


@pytest.mark.parametrize("pem", [b"", b"no certificate"])
def test_what_cannot_be_read_names_nobody(pem: bytes) -> None:
    assert uris_of(pem) == frozenset()


def test_entries_that_are_none_name_nobody() -> None:
    """An authority that signs nonsense: neither a name nor an error in the thread that looks."""
    assert uris_of(Authority().nonsense()) == frozenset()

"""TLS of the HTTP port: whose certificate is a node's, and files that make no context."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.raft.transport.peer_names import node_uri, old_node_uri
from holdfast.server.config.node_config import ConfigError, Tls
from holdfast.server.security.certificates import issue, make_authority
from holdfast.server.security.http_port import http_context, node_named

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("uri", "is_node"),
    [
        (node_uri("c", "node-1"), True),
        (node_uri("c/d", "a/b"), True),
        (old_node_uri("node-1"), True),
        ("holdfast://client/local", False),
        ("holdfast://c/client/node", False),
        ("spiffe://c/node/1", False),
    ],
)
def test_a_node_is_known_by_the_name_that_its_peers_ask_for(uri: str, *, is_node: bool) -> None:
    assert node_named({"subjectAltName": (("DNS", "x"), ("URI", uri))}) == (uri if is_node else "")


def test_a_dns_entry_that_looks_like_a_node_s_uri_is_none() -> None:
    assert node_named({"subjectAltName": (("DNS", node_uri("c", "node-1")),)}) == ""
    assert node_named({}) == ""


def test_a_key_of_another_certificate_is_told(tmp_path: Path) -> None:
    authority = make_authority("c")
    one = issue(authority, tmp_path / "1", "one", "holdfast://client/one", [])
    two = issue(authority, tmp_path / "2", "two", "holdfast://client/two", [])

    with pytest.raises(ConfigError, match=r"\[tls\]"):
        http_context(Tls(one.ca, one.certificate, two.key))

"""Certificates of a local cluster: what a node's says, and whose its key is."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

import grpc

from holdfast.server.security.certificates import issue, make_authority
from holdfast.server.security.client_port import ClientPort, principal_of
from holdfast.server.security.credentials import read_credentials

if TYPE_CHECKING:
    from pathlib import Path


def test_a_node_is_named_by_its_uri_and_its_key_is_its_owners_alone(tmp_path: Path) -> None:
    authority = make_authority("c")
    tls = issue(authority, tmp_path, "node-1", "holdfast://node/node-1", ["127.0.0.1", "n"])

    assert principal_of(tls.certificate.read_bytes()) == "holdfast://node/node-1"
    assert stat.S_IMODE(tls.key.stat().st_mode) == 0o600
    assert isinstance(ClientPort(read_credentials(tls)).credentials, grpc.ServerCredentials)

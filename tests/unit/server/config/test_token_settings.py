"""[tokens] of a node's file: every mistake is one sentence, and no combination opens a hole."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.server.config.address import Address
from holdfast.server.config.node_config import ConfigError, NodeConfig, load
from holdfast.server.config.token_settings import ALGORITHMS

if TYPE_CHECKING:
    from pathlib import Path

NODE = """
[node]
name = "node-1"
data_dir = "data"
client_address = "127.0.0.1:7400"
peer_address = "127.0.0.1:7500"
[cluster]
id = "c"
"""
TLS = '[tls]\nca = "ca.pem"\ncertificate = "certificate.pem"\nkey = "key.pem"\n'
TOKENS = '[tokens]\nissuer = "https://issuer.example"\naudience = "holdfast"\nkeys = "keys.json"\n'
PEER = '[cluster.peers.{}]\nclient_address = "h:1"\npeer_address = "h:2"\n'
THREE = "".join(map(PEER.format, ("node-1", "node-2", "node-3")))
AT = 'address = "127.0.0.1:7401"\n'


def loaded(folder: Path, text: str, *overrides: str) -> NodeConfig:
    file = folder / "node.toml"
    file.write_text(text)
    return load(file, {}, overrides)


def test_a_node_without_the_table_takes_no_tokens(tmp_path: Path) -> None:
    assert loaded(tmp_path, NODE + TLS).tokens is None


def test_what_is_left_out_is_strict(tmp_path: Path) -> None:
    tokens = loaded(tmp_path, NODE + TLS + TOKENS + AT).tokens

    assert tokens is not None
    assert (tokens.algorithms, tokens.claim, tokens.leeway_ms) == (ALGORITHMS, "sub", 30_000)
    assert (tokens.address, tokens.keys) == (Address("127.0.0.1", 7401), tmp_path / "keys.json")


def test_no_algorithm_has_a_shared_secret_or_none() -> None:
    """The public key could be passed off as the secret."""
    assert not [name for name in ALGORITHMS if name.startswith("HS") or name == "none"]


def test_a_node_listens_where_clients_are_told_unless_it_is_told_otherwise(tmp_path: Path) -> None:
    """So that [tokens] can be the same on all nodes."""
    told = THREE.replace('peer_address = "h:2"\n', 'peer_address = "h:2"\ntoken_address = "h:3"\n')
    config = loaded(tmp_path, NODE + TLS + told + TOKENS)
    assert config.tokens is not None
    assert config.tokens.address == Address("h", 3)

    config = loaded(tmp_path, NODE + TLS + told + TOKENS + AT)
    assert config.tokens is not None
    assert config.tokens.address == Address("127.0.0.1", 7401)
    assert [peer.token_address for peer in config.peers] == [Address("h", 3)] * 3


def test_a_cluster_of_one_tells_its_own_port(tmp_path: Path) -> None:
    config = loaded(tmp_path, NODE + TLS + TOKENS + AT)

    assert [peer.token_address for peer in config.peers] == [Address("127.0.0.1", 7401)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (NODE + "[tls]\ninsecure_loopback = true\n" + TOKENS + AT, "insecure_loopback"),
        (NODE + TLS + "[tokens]\n" + AT, "tokens.issuer, tokens.audience, tokens.keys missing"),
        (NODE + TLS + TOKENS.replace('audience = "holdfast"\n', "") + AT, "tokens.audience"),
        (NODE + TLS + TOKENS, "no port for tokens"),
        (NODE + TLS + THREE + TOKENS + AT, "no token_address for node-1, node-2, node-3"),
        (NODE + TLS + TOKENS + AT + 'algorithms = ["HS256"]\n', "'HS256'"),
        (NODE + TLS + TOKENS + AT + 'algorithms = ["none"]\n', "'none'"),
        (NODE + TLS + TOKENS + AT + "leeway_ms = 300001\n", "0 to 300000"),
        (NODE + TLS + TOKENS + AT + 'claims = "sub"\n', "tokens.claim"),
        (NODE + TLS + TOKENS + 'address = "7401"\n', "host:port"),
    ],
)
def test_a_mistake_is_told(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, text)

    assert words in str(caught.value)

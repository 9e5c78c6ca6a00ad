"""`holdfast cluster add-node`: one more node is laid out whole, and takes nothing from another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result
from cryptography import x509

from holdfast.cli.local_cluster import layout, one_more, standing
from holdfast.cli.local_cluster.standing import Standing
from holdfast.cli.main import main
from holdfast.raft.transport.peer_names import certificate_problem
from holdfast.server.config.node_config import load

if TYPE_CHECKING:
    from pathlib import Path


class CutOffError(Exception):
    """What ends the command here; a real one is ended by a signal or a power cut."""


@pytest.fixture
def local(tmp_path: Path) -> Path:
    """A cluster of three that has served, whose elections were set by its first start."""
    made = layout.plan(3, None, ["raft.election_max_ms=900", "group.max_size=9"], insecure=False)
    layout.lay_out(tmp_path, made)
    (tmp_path / layout.FORMED_NAME).touch()
    return tmp_path


def add(directory: Path, *options: str) -> Result:
    ended = CliRunner().invoke(main, ["cluster", "add-node", "--dir", str(directory), *options])
    assert isinstance(ended.exception, SystemExit | None), ended.exception
    return ended


def test_a_new_node_knows_all_and_has_what_was_set_for_all(local: Path) -> None:
    assert add(local).exit_code == 0

    first, made = (load(local / name / "node.toml", {}, ()) for name in ("node-1", "node-4"))
    assert (made.name, made.cluster_id) == ("node-4", first.cluster_id)
    assert made.data_dir == local / "node-4" / "data"
    assert [peer.name for peer in made.peers] == ["node-1", "node-2", "node-3", "node-4"]
    assert made.peers[:3] == first.peers
    assert (made.election_max_ms, made.settings) == (900, first.settings)
    ports = {
        made.client_address.port,
        made.peer_address.port,
        made.http_address and made.http_address.port,
    }
    assert len(ports - {each.client_address.port for each in first.peers}) == 3


def test_its_certificate_is_that_nodes_by_the_clusters_authority(local: Path) -> None:
    add(local)
    made = load(local / "node-4" / "node.toml", {}, ())
    pem = (local / "node-4" / "certificate.pem").read_bytes()
    ca = x509.load_pem_x509_certificate((local / "authority" / "ca.pem").read_bytes())

    assert certificate_problem(pem, made.cluster_id, "node-4", accept_old=False) == ""
    x509.load_pem_x509_certificate(pem).verify_directly_issued_by(ca)
    assert (local / "node-4" / "ca.pem").read_bytes() == (
        local / "authority" / "ca.pem"
    ).read_bytes()


def test_the_ports_are_chosen_and_the_next_commands_are_told(
    local: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(one_more, "is_taken", lambda _: False)
    told = add(local, "--port-base", "7460").output

    assert f"holdfast node --config {local}/node-4/node.toml --rebuild" in told
    assert (
        "holdfast node add node-4 --peer 127.0.0.1:7461 --client 127.0.0.1:7460 "
        f"--cluster {local}\n" in told
    )


TOKENS = (
    "tokens.issuer=https://issuer.example",
    "tokens.audience=holdfast-local",
    "tokens.keys=../keys.json",
    *(f"cluster.peers.node-{n}.token_address=127.0.0.1:745{n}" for n in (1, 2, 3)),
)


def test_a_cluster_that_takes_tokens_gets_a_node_that_takes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has a fourth port of its own, and knows those of the others and the issuer's keys."""
    layout.lay_out(tmp_path, layout.plan(3, None, [*TOKENS], insecure=False))
    (tmp_path / layout.FORMED_NAME).touch()
    monkeypatch.setattr(one_more, "is_taken", lambda _: False)

    told = add(tmp_path, "--port-base", "7460").output

    made = load(tmp_path / "node-4" / "node.toml", {}, ())
    assert [str(peer.token_address) for peer in made.peers] == [
        *(f"127.0.0.1:745{n}" for n in (1, 2, 3)),
        "127.0.0.1:7463",
    ]
    assert made.tokens is not None
    assert str(made.tokens.address) == "127.0.0.1:7463"
    assert made.tokens.keys.resolve() == tmp_path / "keys.json"
    assert "Clients with tokens are served at 127.0.0.1:7463" in told


def test_a_port_for_tokens_that_another_node_listens_on_is_not_taken_over(tmp_path: Path) -> None:
    layout.lay_out(tmp_path, layout.plan(3, None, [*TOKENS], insecure=False))
    (tmp_path / layout.FORMED_NAME).touch()
    for name in ("node-1", "node-2", "node-3"):
        file = tmp_path / name / "node.toml"
        own = f'[tokens]\naddress = "127.0.0.1:74{name[-1]}9"\n'
        file.write_text(file.read_text().replace("[tokens]\n", own))

    assert add(tmp_path).exit_code == 0

    made = load(tmp_path / "node-4" / "node.toml", {}, ())
    assert made.tokens is not None
    assert made.tokens.address == made.peers[3].token_address


def test_a_configuration_that_cannot_be_used_leaves_nothing(
    local: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is checked before there is a folder: another try would find the name taken."""
    before = sorted(local.rglob("*"))
    monkeypatch.setattr(one_more, "_configuration", lambda *_: "[node]\nname = 'node-4'\n")

    assert add(local).exit_code == 1
    assert sorted(local.rglob("*")) == before


def test_a_removed_node_is_no_peer_and_its_name_is_not_used_again(local: Path) -> None:
    """S25: neither by number nor by name."""
    standing.write(local, Standing(("node-2", "node-3"), (), ("node-1", "node-4"), 9))

    assert add(local).exit_code == 0
    made = load(local / "node-5" / "node.toml", {}, ())
    assert [peer.name for peer in made.peers] == ["node-2", "node-3", "node-5"]
    refused = add(local, "--name", "node-1")
    assert refused.exit_code == 1
    assert "its name is never used again" in refused.output


@pytest.mark.parametrize("name", ["node-2", "authority", "client", "../x"])
def test_a_name_that_is_taken_or_no_folders_is_refused(local: Path, name: str) -> None:
    before = sorted(local.rglob("*"))

    assert add(local, "--name", name).exit_code == 1
    assert sorted(local.rglob("*")) == before


def test_a_port_in_use_is_refused_before_anything_is_written(
    local: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(one_more, "is_taken", lambda address: address.port == 7_461)
    refused = add(local, "--port-base", "7460")

    assert refused.exit_code == 1
    assert "another process listens on 127.0.0.1:7461" in refused.output
    assert not (local / "node-4").exists()


def test_a_cluster_that_never_served_gets_no_node(local: Path) -> None:
    """It may still be begun with as many nodes as it is to have."""
    (local / layout.FORMED_NAME).unlink()

    assert "no cluster in" in add(local).output
    assert not (local / "node-4").exists()


def test_an_interrupted_command_is_made_again(local: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No node starts from what it has left: the configuration comes last."""

    def cut_off(*_: object) -> None:
        raise CutOffError

    with monkeypatch.context() as cut:
        cut.setattr(one_more, "load", cut_off)
        cut.setattr(one_more, "_next_name", lambda *_: "node-4")
        with pytest.raises(CutOffError):
            one_more._written(local / "node-4", "", load(local / "node-1" / "node.toml", {}, ()))
    assert not (local / "node-4" / "node.toml").exists()

    assert add(local).exit_code == 0
    assert load(local / "node-4" / "node.toml", {}, ()).name == "node-4"

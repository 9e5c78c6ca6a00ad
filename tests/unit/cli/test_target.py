"""Which cluster a command means: an explicit option beats the environment, and two must agree."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from holdfast.cli import connect
from holdfast.cli.main import main
from holdfast.cli.options import table
from holdfast.client import Tls
from holdfast.server.config import cluster_file

if TYPE_CHECKING:
    from holdfast.cli.target import Target

NOWHERE = "127.0.0.1:1"
"""Nobody may listen on this port."""


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of a cluster without TLS that HOLDFAST_CLUSTER names; it does not answer."""
    monkeypatch.setattr(connect, "UNCONNECTED_MS", 0)
    node = cluster_file.NodeEntry("node-1", "127.0.0.1:2", "127.0.0.1:3", 1, "data")
    content = cluster_file.ClusterFile("c", (node,), None)
    cluster_file.write(tmp_path / cluster_file.NAME, content)
    monkeypatch.setenv("HOLDFAST_CLUSTER", str(tmp_path))
    return tmp_path


def told(code: int, *options: str) -> str:
    """What a command with these options says on standard error."""
    ended = CliRunner().invoke(main, ["group", "list", *options])
    assert ended.exit_code == code, ended.output
    return ended.stderr


@pytest.mark.usefixtures("local")
def test_the_environment_names_the_cluster_where_no_option_does() -> None:
    assert "127.0.0.1:2" in told(3)


def test_an_address_in_cluster_json_that_is_none_is_told_with_its_node(local: Path) -> None:
    node = cluster_file.NodeEntry("node-1", "nonsense", "127.0.0.1:3", 1, "data")
    cluster_file.write(local / cluster_file.NAME, cluster_file.ClusterFile("c", (node,), None))

    assert "the address of node-1, 'nonsense', is no address" in told(1)


@pytest.mark.usefixtures("local")
def test_an_address_beats_the_environment() -> None:
    assert f"last: Could not connect to {NOWHERE}" in told(3, "--address", NOWHERE)


def test_a_cluster_and_an_address_contradict_each_other(local: Path) -> None:
    sentence = told(2, "--address", NOWHERE, "--cluster", str(local))

    assert "--cluster" in sentence
    assert "--address" in sentence
    assert "one of them" in sentence


@pytest.mark.parametrize("named", [False, True])
def test_tls_is_what_is_shown_however_the_cluster_was_found(local: Path, *, named: bool) -> None:
    """Its files are looked at first, so a folder that has none is told."""
    options = ("--cluster", str(local)) if named else ()

    assert f"{local}/none/ca.pem' cannot be read: No such file" in told(
        1, "--tls", f"{local}/none", *options
    )


@pytest.mark.usefixtures("local")
def test_addresses_of_the_environment_beat_its_cluster_and_what_is_typed_beats_both(
    local: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Typed before exported, and in each an address before a directory."""
    monkeypatch.setenv("HOLDFAST_ADDRESS", "127.0.0.1:4, 127.0.0.1:5")
    assert {f"127.0.0.1:{port}" in told(3) for port in (4, 5)} & {True}
    assert "127.0.0.1:2" not in told(3)
    assert f"last: Could not connect to {NOWHERE}" in told(3, "--address", NOWHERE)
    assert "127.0.0.1:2" in told(3, "--cluster", str(local))
    monkeypatch.setenv("HOLDFAST_ADDRESS", "")
    assert "127.0.0.1:2" in told(3)


@pytest.mark.usefixtures("local")
@pytest.mark.parametrize(
    "options",
    [
        ("--address", "127.0.0.1:4,127.0.0.1:5"),
        ("--address", "127.0.0.1:4, 127.0.0.1:5,"),
        ("--address", "127.0.0.1:4", "--address", "127.0.0.1:5"),
    ],
)
def test_several_addresses_are_typed_with_commas_or_options(
    options: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As HOLDFAST_ADDRESS and the client take them."""
    asked: list[Target] = []
    monkeypatch.setattr("holdfast.cli.options.Cluster", asked.append)
    CliRunner().invoke(main, ["group", "list", *options])

    assert [target.addresses for target in asked] == [("127.0.0.1:4", "127.0.0.1:5")]


@pytest.mark.usefixtures("local")
@pytest.mark.parametrize("nothing", ["", ",", " "])
def test_a_typed_address_of_nothing_is_no_cluster_of_the_environment(nothing: str) -> None:
    """It is a shell variable that is not set."""
    assert "is no address" in told(2, "--address", nothing)


def test_an_address_of_the_environment_that_is_none_is_named_by_its_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOLDFAST_ADDRESS", "nonsense")
    sentence = told(2)
    assert "HOLDFAST_ADDRESS" in sentence
    assert "is no address" in sentence


def test_tls_of_the_environment_goes_with_addresses_and_not_with_a_cluster_s_own(
    local: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """cluster.json names its certificates, so those of another cluster are not shown to it."""
    monkeypatch.setenv("HOLDFAST_TLS", f"{local}/exported")
    exported = f"{local}/exported/ca.pem' cannot be read"
    assert exported in told(1, "--address", NOWHERE)
    assert "127.0.0.1:2" in told(3)
    assert f"{local}/typed/ca.pem' cannot be read" in told(
        1, "--address", NOWHERE, "--tls", f"{local}/typed"
    )
    monkeypatch.setenv("HOLDFAST_ADDRESS", NOWHERE)
    assert exported in told(1)
    monkeypatch.setenv("HOLDFAST_TLS", "")
    assert f"last: Could not connect to {NOWHERE}" in told(3)


def test_a_token_takes_the_place_of_a_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Target] = []
    monkeypatch.setattr("holdfast.cli.options.Cluster", asked.append)
    at = ("--address", NOWHERE, "--tls", "trust")
    CliRunner().invoke(main, ["group", "list", *at, "--token-file", "typed"])
    monkeypatch.setenv("HOLDFAST_TOKEN_FILE", str(tmp_path / "exported"))
    CliRunner().invoke(main, ["group", "list", *at])

    ca = Path("trust/ca.pem")
    files = ["typed", f"{tmp_path}/exported"]
    assert [target.tls for target in asked] == [Tls(ca, token=file) for file in files]


@pytest.mark.usefixtures("local")
def test_a_token_needs_a_port_for_tokens_and_tls() -> None:
    """Without TLS anybody on the way could use it; and cluster.json names no such port."""
    assert "--address" in told(2, "--token-file", "token")
    assert "needs TLS" in told(2, "--token-file", "token", "--address", NOWHERE)


def test_ctrl_c_ends_a_command_quietly_with_the_code_of_an_interrupt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`log tail` is what people end like this; "Aborted!" would look like a failure of it."""

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("holdfast.cli.connect.Cluster.read", interrupted)
    ended = CliRunner().invoke(main, ["log", "tail", "--address", NOWHERE])
    assert (ended.exit_code, ended.output) == (130, "")


def test_one_long_cell_does_not_widen_its_column(capsys: pytest.CaptureFixture[str]) -> None:
    """A group id may have 512 characters; it is told whole, and the other rows stay narrow."""
    table(("GROUP", "STATE"), (("g" * 512, "Stable"), ("indexers", "Empty")))
    head, long, short = capsys.readouterr().out.splitlines()
    assert long == f"{'g' * 512}  Stable"
    assert (head, short) == ("GROUP     STATE", "indexers  Empty")

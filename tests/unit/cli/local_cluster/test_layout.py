"""A local cluster's directory is claimed before it is laid out; a layout is whole or not there."""

from __future__ import annotations

import fcntl
import stat
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from holdfast.cli.local_cluster import layout
from holdfast.cli.local_cluster import start as local_start
from holdfast.cli.main import main
from holdfast.server.config.node_config import load

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.server.config.node_config import NodeConfig


class Idle:
    """A cluster that served and was told to stop, all at once."""

    def __init__(self, *_arguments: object) -> None:
        """As the real one is made."""

    def run(self) -> bool:
        """It has served."""
        return True


class CutOffError(Exception):
    """What ends a layout here; a real one is ended by a signal or a power cut."""


@pytest.fixture(autouse=True)
def no_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the layout is made."""
    monkeypatch.setattr(local_start, "LocalCluster", Idle)


def start(directory: Path, *options: str, code: int = 0) -> str:
    """What it says on standard error."""
    ended = CliRunner().invoke(main, ["cluster", "start", "--dir", str(directory), *options])
    assert ended.exit_code == code, ended.output
    assert isinstance(ended.exception, SystemExit | None), ended.exception
    return ended.stderr


def cut_off(directory: Path, monkeypatch: pytest.MonkeyPatch, written: int) -> None:
    """Begin a layout of three nodes that ends after so many configurations were written."""
    calls = iter(range(written + 1))

    def counted(file: Path, environment: dict[str, str], overrides: tuple[str, ...]) -> NodeConfig:
        if next(calls) == written:
            raise CutOffError
        return load(file, environment, overrides)

    with monkeypatch.context() as patched:
        patched.setattr("holdfast.cli.local_cluster.layout.load", counted)
        made = layout.plan(3, None, (), insecure=False)
        with pytest.raises(CutOffError):
            layout.lay_out(directory, made)


def names(directory: Path) -> set[str]:
    """What lies in the directory."""
    return {path.name for path in directory.iterdir()}


def authorities(directory: Path) -> set[bytes]:
    """The authorities that the files of a layout speak of."""
    return {path.read_bytes() for path in directory.glob("*/ca.pem")}


def test_nothing_is_laid_out_while_another_command_has_the_directory(tmp_path: Path) -> None:
    """Of two at once, only the one with the claim writes: no mixture of two authorities."""
    directory = tmp_path / "local"
    directory.mkdir()
    with (directory / layout.LOCK_NAME).open("a+") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        told = start(directory, code=1)

    assert "runs already" in told
    assert names(directory) == {layout.LOCK_NAME}


@pytest.mark.parametrize("written", [0, 1, 2])
def test_a_layout_that_was_cut_off_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: int
) -> None:
    """By one authority, for as many nodes as are asked for now."""
    cut_off(tmp_path / "local", monkeypatch, written)
    before = authorities(tmp_path / "local")

    assert start(tmp_path / "local", "--nodes", "1") == ""
    assert authorities(tmp_path / "local").isdisjoint(before)
    assert len(authorities(tmp_path / "local")) == 1
    assert names(tmp_path / "local") == {"node-1", "client", "authority", layout.LOCK_NAME}
    assert len(layout.existing(tmp_path / "local")) == 1


def test_a_set_that_no_node_accepts_leaves_no_layout_behind(tmp_path: Path) -> None:
    told = start(tmp_path / "local", "--set", "raft.heartbeat=70", code=1)

    assert "raft.heartbeat_ms" in told
    assert start(tmp_path / "local", "--set", "raft.heartbeat_ms=70") == ""
    texts = [file.read_text() for file in layout.existing(tmp_path / "local")]
    assert [("heartbeat_ms = 70" in text) for text in texts] == [True, True, True]


def test_what_was_cut_off_and_holds_something_else_is_refused_untouched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S19: a node that somebody started by hand may have acknowledged something."""
    directory = tmp_path / "local"
    cut_off(directory, monkeypatch, 1)
    (directory / "node-1" / "data").mkdir()
    before = authorities(directory)
    told = start(directory, code=1)

    assert str(directory / "node-1" / "data") in told
    assert f"remove {directory}" in told
    assert authorities(directory) == before
    assert (directory / "node-1" / "data").is_dir()


@pytest.mark.parametrize("formed", [False, True])
def test_a_whole_layout_of_an_older_version_starts(tmp_path: Path, *, formed: bool) -> None:
    """Version 0.1.0 made no mark, kept no authority, and may have ended before it was formed."""
    directory = tmp_path / "local"
    start(directory)
    for file in (directory / layout.AUTHORITY_FOLDER).iterdir():
        file.unlink()
    (directory / layout.AUTHORITY_FOLDER).rmdir()
    (directory / "node-1" / "data").mkdir()
    if formed:
        (directory / layout.FORMED_NAME).touch()
    before = authorities(directory)

    assert start(directory) == ""
    assert authorities(directory) == before


def test_a_layout_of_an_older_version_that_was_cut_off_is_no_smaller_cluster(
    tmp_path: Path,
) -> None:
    """Nothing says whether the rest was lost, so nothing is removed: the sentence says what to do.

    Before, the nodes that were there were started, and waited for those that were not.
    """
    directory = tmp_path / "local"
    start(directory)
    (directory / "node-3" / layout.CONFIG_NAME).unlink()
    told = start(directory, code=1)

    assert "node-3 has no node.toml" in told
    assert f"remove {directory}" in told
    assert len(layout.existing(directory)) == 2


def test_certificates_alone_are_not_taken_for_a_layout(tmp_path: Path) -> None:
    """They look like the beginning of one, and may be somebody's only keys."""
    directory = tmp_path / "certificates"
    (directory / "client").mkdir(parents=True)
    (directory / "client" / "key.pem").write_text("mine")
    told = start(directory, code=1)

    assert "give another --dir" in told
    assert names(directory) == {"client"}
    assert (directory / "client" / "key.pem").read_text() == "mine"


@pytest.mark.parametrize("path", ["file", "file/below"])
def test_a_file_is_no_directory_for_a_cluster(tmp_path: Path, path: str) -> None:
    (tmp_path / "file").write_text("mine")
    told = start(tmp_path / path, code=2 if path == "file" else 1)

    assert str(tmp_path / path) in told
    assert "--dir" in told
    assert (tmp_path / "file").read_text() == "mine"


def test_the_authority_is_kept_for_its_owner_alone(tmp_path: Path) -> None:
    """Its key signs whom the cluster lets in: a second client can be certified."""
    start(tmp_path / "local")
    folder = tmp_path / "local" / layout.AUTHORITY_FOLDER
    certificate = x509.load_pem_x509_certificate((folder / "ca.pem").read_bytes())
    key = load_pem_private_key((folder / "key.pem").read_bytes(), None)

    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "key.pem").stat().st_mode) == 0o600
    assert key.public_key() == certificate.public_key()
    assert authorities(tmp_path / "local") == {(folder / "ca.pem").read_bytes()}


def test_an_insecure_cluster_has_no_authority(tmp_path: Path) -> None:
    start(tmp_path / "local", "--insecure-loopback")

    assert layout.AUTHORITY_FOLDER not in names(tmp_path / "local")

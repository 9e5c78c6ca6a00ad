"""`holdfast log publish` says in one sentence what it did or why not, by the right exit code."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from holdfast.cli.entry import missing_extra
from holdfast.cli.main import main
from holdfast.cli.offline import publishing
from holdfast.replay.publish import publication
from spark.archive_damage import data, sound_nodes

if TYPE_CHECKING:
    from click.testing import Result


@pytest.fixture
def node(tmp_path: Path) -> Path:
    return sound_nodes(tmp_path / "nodes")[0]


def publish(node: Path, to: object, *options: str, code: int = 0) -> Result:
    command = ["log", "publish", "--node-dir", str(node), "--to", str(to), *options]
    ended = CliRunner().invoke(main, command)
    assert ended.exit_code == code, ended.output
    if code:
        assert len(ended.stderr.splitlines()) == 1
    return ended


def test_it_tells_what_was_copied_and_what_was_there(node: Path, tmp_path: Path) -> None:
    first = json.loads(publish(node, tmp_path / "to", "--json").stdout)
    again = publish(node, tmp_path / "to").stdout

    assert (first["segments"], first["checkpoints"], first["known"]) == (3, 0, 0)
    assert first["copied_bytes"] == sum(
        file.stat().st_size for file in node.rglob("*") if file.is_file()
    )
    assert f"0 files copied (0 bytes), {first['copied']} known" in again


def test_what_differs_ends_with_1_and_is_named(node: Path, tmp_path: Path) -> None:
    publish(node, tmp_path / "to")
    other = tmp_path / "to" / data(node).relative_to(node)
    other.write_bytes(other.read_bytes()[::-1])

    said = publish(node, tmp_path / "to", code=1).stderr

    assert f"{other} is there and differs from {data(node)}" in said


def test_a_store_that_does_not_answer_ends_with_1(node: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]  # nothing listens there once it is closed

    said = publish(node, f"ftp://127.0.0.1:{port}/n1", code=1).stderr

    assert f"ftp://127.0.0.1:{port}/n1 cannot be read" in said


def test_a_folder_that_may_not_be_written_ends_with_1(
    node: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("fsspec.implementations.local.LocalFileSystem.makedirs", refused)

    assert "may not be written: Permission denied" in publish(node, tmp_path / "to", code=1).stderr


@pytest.mark.parametrize("to", ["nothing://bucket/n1", "http://127.0.0.1:1/n1"])
def test_a_url_that_is_of_no_use_ends_with_2(to: str, node: Path) -> None:
    publish(node, to, code=publishing.REFUSED)


def test_a_directory_that_is_not_there_ends_with_2(tmp_path: Path) -> None:
    command = ["log", "publish", "--node-dir", str(tmp_path / "no"), "--to", str(tmp_path)]

    assert CliRunner().invoke(main, command).exit_code == 2


def test_without_fsspec_the_extra_is_named() -> None:
    assert "pip install 'holdfast[publish]'" in str(missing_extra("fsspec.core"))


def test_an_interruption_says_that_it_may_be_gone_on_from(
    node: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(publication, "publish", interrupted)

    said = publish(node, tmp_path / "to", code=publishing.INTERRUPTED).stderr

    assert "publish again to go on" in said


def test_a_long_run_says_how_far_it_has_come(
    node: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = iter(range(0, 10_000, 10))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(ticks)))

    lines = publish(node, tmp_path / "to").stderr.splitlines()

    assert "bytes, about" in lines[0]
    assert lines[-1].endswith("about 0 s left")

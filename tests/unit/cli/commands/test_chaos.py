"""A refused `holdfast chaos` ends with 2, as no violation does, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from holdfast.chaos.nemesis import links
from holdfast.cli.main import main


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where folders of evidence would be made."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return place


def chaos(*arguments: object, answer: str = "") -> Result:
    return CliRunner().invoke(main, ["chaos", *map(str, arguments)], input=answer)


def stopped(directory: Path, nodes: int = 3) -> Path:
    """A cluster that died with its cluster.json: no process of it has the ids that are there."""
    directory.mkdir()
    names = [f"node-{number}" for number in range(1, nodes + 1)]
    entries = [
        {"name": name, "client_address": "127.0.0.1:1", "peer_address": "127.0.0.1:1",
         "pid": os.getpid(), "directory": str(directory / name)}
        for name in names
    ]  # fmt: skip
    content = {"cluster_id": "c", "tls": None, "nodes": entries}
    (directory / "cluster.json").write_text(json.dumps(content))
    return directory


def test_wrong_usage_ends_with_2_and_makes_no_folder(tmp_path: Path, temporary: Path) -> None:
    """docs/chaos.md: 1 is for violations alone, so that CI can tell."""
    down, alone = stopped(tmp_path / "down"), stopped(tmp_path / "alone", 1)
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "file").touch()
    for arguments, words in (
        (("--kinds", "earthquake"), "earthquake"),
        (("--cluster", tmp_path / "nowhere", "--yes"), "holdfast cluster start"),
        (("--cluster", tmp_path, "--yes"), "holdfast cluster start"),
        (("--cluster", down, "--yes"), "node-1, node-2, node-3 does not run"),
        (("--cluster", alone, "--yes"), "three or five"),
        (("--cluster", down, "--yes", "--kinds", "partition"), "partition"),
        (("--out", tmp_path / "used"), "no empty directory"),
        (("--out", tmp_path / "used" / "file" / "below"), "cannot be made"),
    ):
        ended = chaos(*arguments)

        assert ended.exit_code == 2, (arguments, ended.output)
        assert words in ended.stderr
        assert not list(temporary.iterdir()), arguments


@pytest.mark.parametrize("answer", ["n\n", ""])
def test_no_consent_is_no_violation(tmp_path: Path, answer: str) -> None:
    """Also where nobody is there to be asked, as in CI."""
    ended = chaos("--cluster", stopped(tmp_path / "down"), answer=answer)

    assert ended.exit_code == 2
    assert "--yes" in ended.stderr


def test_a_refusal_is_an_object_for_programs(tmp_path: Path) -> None:
    ended = chaos("--cluster", tmp_path, "--yes", "--json")

    assert json.loads(ended.stdout)["exit_code"] == 2


def test_a_kind_that_a_running_cluster_cannot_have_is_refused_with_the_reason(
    tmp_path: Path,
) -> None:
    """`--list` alone speaks of a cluster made for the run, which has proxies."""
    down = stopped(tmp_path / "down")
    refused = chaos("--cluster", down, "--yes", "--kinds", "partition,one-way")
    listed = chaos("--list", "--cluster", down)
    (row,) = (line for line in listed.stdout.splitlines() if line.startswith("partition "))

    assert "partition, one-way" in refused.stderr
    assert "only a cluster that the run starts itself has proxies" in refused.stderr
    assert "Leave --cluster out" in refused.stderr
    assert f"holdfast chaos --list --cluster {down}" in refused.stderr
    assert f"no: {links.PROXY}" in row

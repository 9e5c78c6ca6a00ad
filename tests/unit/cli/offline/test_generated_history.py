"""`holdfast replay generate` says in one sentence why it makes nothing, and how far it has come."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from holdfast.cli.main import main
from holdfast.cli.offline.generated_history import INTERRUPTED, REFUSED
from holdfast.replay.generate import history

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result


def generate(out: Path, *options: str, events: int = 60, code: int = 0) -> Result:
    command = ["replay", "generate", "--events", str(events), "--out", str(out), *options]
    ended = CliRunner().invoke(main, command)
    assert ended.exit_code == code, ended.output
    return ended


def test_a_program_gets_the_anchor_and_the_folder(tmp_path: Path) -> None:
    out = tmp_path / "made"

    told = json.loads(generate(out, "--json", "--nodes", "1").stdout)

    assert told == {"folder": str(out), **json.loads((out / "anchor.json").read_text())}
    assert told["records"] == 60


def test_people_get_the_same(tmp_path: Path) -> None:
    shown = generate(tmp_path / "made").stdout
    anchor = json.loads((tmp_path / "made" / "anchor.json").read_text())

    assert "60 records" in shown
    assert anchor["chain"] in shown
    assert anchor["digest"] in shown


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--groups", "0"], "groups: 0"),
        (["--skew", "-1"], "skew: -1"),
        (["--giant", "1"], "giant: 1"),
        (["--faults", "bounces,fire"], "no 'fire'"),
        (["--nodes", "-2"], "nodes: -2"),
        (["--anchors", "-1"], "anchors: -1"),
    ],
)
def test_wrong_options_are_refused_and_nothing_is_written(
    options: list[str], named: str, tmp_path: Path
) -> None:
    ended = generate(tmp_path / "made", *options, code=REFUSED)

    assert named in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_refusal_is_json_for_programs(tmp_path: Path) -> None:
    ended = generate(tmp_path / "made", "--json", events=-1, code=REFUSED)

    assert json.loads(ended.stdout)["exit_code"] == REFUSED


def test_no_faults_can_be_asked_for(tmp_path: Path) -> None:
    generate(tmp_path / "made", "--faults", "none")


@pytest.mark.parametrize(
    ("failure", "code", "said"),
    [
        (OSError(28, "No space left on device"), 1, "No space left on device"),
        (KeyboardInterrupt(), INTERRUPTED, "ended at once"),
    ],
)
def test_a_run_that_breaks_off_says_so_in_one_sentence(
    failure: BaseException, code: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: object) -> None:
        raise failure

    monkeypatch.setattr(history.History, "_begin", fails)

    ended = generate(tmp_path / "made", code=code)

    assert said in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_long_run_says_how_far_it_has_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every few seconds, on standard error; here each reading of the clock is a second later."""
    seconds = iter(range(1_000_000))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(seconds)))

    said = generate(tmp_path / "made", events=1_000).stderr.splitlines()

    assert said
    assert all("of 1,000 events" in line for line in said)


def test_a_short_run_says_nothing_on_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: 5.0)

    assert generate(tmp_path / "made").stderr == ""

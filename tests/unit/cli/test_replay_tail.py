"""`holdfast replay tail`: a directory or a cluster, told apart before Spark is started."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from holdfast.cli import replay_app, replay_tail
from holdfast.cli.main import main
from holdfast.client import Tls

NOWHERE = "127.0.0.1:1"
"""Nobody listens there."""


class _App:
    """What the command calls of the replay, which needs Java."""

    WrongUse, Unreached, CannotCheck, NoJava = (
        type(name, (Exception,), {}) for name in ("WrongUse", "Unreached", "CannotCheck", "NoJava")
    )
    SparkOptions = SimpleNamespace(given=dict)

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.followed: list[Any] = []

    Nodes = staticmethod(lambda addresses, tls, _: (addresses, tls))
    Limits = staticmethod(lambda *limits: limits)

    def tail(self, followed: object, out: Path, **options: object) -> None:
        """Note what is followed."""
        del out, options
        self.followed.append(followed)
        if self.error is not None:
            raise self.error


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> _App:
    made = _App()
    monkeypatch.setattr(replay_app, "import_module", lambda _: made)
    return made


def tail(*arguments: str, env: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(main, ["replay", "tail", "--out", "out", *arguments], env=env)


@pytest.mark.parametrize(
    "option", ["--address", "--cluster"], ids=["nodes", "a directory of a cluster"]
)
def test_a_directory_and_a_cluster_are_refused_together(option: str, app: _App) -> None:
    ended = tail("--node-dir", ".", option, NOWHERE)

    assert ended.exit_code == 2
    assert f"--node-dir follows a directory, and {option} a running cluster" in ended.stderr
    assert app.followed == []


def test_a_cluster_in_the_environment_is_passed_over_for_a_directory(app: _App) -> None:
    assert tail("--node-dir", ".", env={"HOLDFAST_ADDRESS": NOWHERE}).exit_code == 0

    assert app.followed == [Path()]


def test_nodes_are_followed_with_what_shows_who_asks(
    app: _App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay_tail, "check_tls", lambda _: None)

    ended = tail("--address", "a:1,b:2", "--tls", "here")

    assert ended.exit_code == 0, ended.output
    tls = Tls(Path("here/ca.pem"), Path("here/certificate.pem"), Path("here/key.pem"))
    assert app.followed == [(("a:1", "b:2"), tls)]


def test_no_cluster_and_no_directory_names_both_ways(app: _App, tmp_path: Path) -> None:
    ended = tail("--cluster", str(tmp_path))

    assert ended.exit_code == 1
    assert "--address HOST:PORT" in ended.stderr
    assert "or give --node-dir DIR" in ended.stderr
    assert app.followed == []


def test_files_that_are_no_certificates_are_told_at_once(app: _App, tmp_path: Path) -> None:
    ended = tail("--address", NOWHERE, "--tls", str(tmp_path))

    assert ended.exit_code == 1
    assert "--tls names a directory of ca.pem" in ended.stderr
    assert app.followed == []


def test_nodes_that_are_away_end_it_with_3(app: _App) -> None:
    app.error = _App.Unreached("no node served the log")
    ended = tail("--address", NOWHERE)

    assert ended.exit_code == 3
    assert ended.stderr == "holdfast: no node served the log\n"

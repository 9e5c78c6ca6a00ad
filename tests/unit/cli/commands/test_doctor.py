"""`holdfast doctor`: exit codes, and findings for people and for programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from click.testing import CliRunner

from holdfast.cli.commands import doctor as command
from holdfast.cli.doctor.findings import ERROR, OF_VIEWS, WARNING, Finding, Report
from holdfast.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from click.testing import Result

WARNED = Finding("clocks", WARNING, "b", "its clock is late", "people read it", "run chrony")
BAD = Finding("quorum", ERROR, "", "no node leads", "nothing is served", "start the nodes")


def ended(
    monkeypatch: pytest.MonkeyPatch, *found: Finding, options: tuple[str, ...] = ()
) -> Result:
    monkeypatch.setattr(command, "_in_the_cluster", lambda _: Report(list(found), OF_VIEWS))
    return CliRunner().invoke(main, ["doctor", "--address", "a:7400", *options])


def test_a_finding_says_what_why_and_what_to_do_errors_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown = ended(monkeypatch, WARNED, BAD)

    assert shown.stdout.splitlines()[:6] == [
        "ERROR quorum: no node leads",
        "    nothing is served.",
        "    To do: start the nodes.",
        "WARNING clocks: b: its clock is late",
        "    people read it.",
        "    To do: run chrony.",
    ]
    assert "errors: 1, warnings: 1; checked: quorum, versions, rights\n" in shown.stdout


def test_errors_end_it_with_1_and_warnings_only_if_that_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert ended(monkeypatch).exit_code == 0
    assert ended(monkeypatch, WARNED).exit_code == 0
    assert ended(monkeypatch, WARNED, options=("--strict",)).exit_code == 1
    assert ended(monkeypatch, WARNED, BAD).exit_code == 1


def test_a_program_gets_one_object(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = ended(monkeypatch, BAD, options=("--json",))

    checked = ["quorum", "versions", "rights"]
    assert json.loads(shown.stdout) == {"findings": [BAD._asdict()], "checked": checked}
    assert shown.exit_code == 1


def test_a_cluster_that_does_not_answer_is_exit_code_3() -> None:
    shown = CliRunner().invoke(main, ["doctor", "--address", "127.0.0.1:1"])

    assert shown.exit_code == 3
    assert "no node answered" in shown.stderr


def test_a_configuration_that_is_refused_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "node.toml").write_text('[node]\nname = "a"\n')
    shown = CliRunner().invoke(main, ["doctor", "--config", str(tmp_path / "node.toml"), "--json"])

    told = json.loads(shown.stdout)
    (found,) = told["findings"]
    assert told["checked"] == ["settings"], "nothing else could be looked at"
    assert (found["check"], found["severity"]) == ("settings", "error")
    assert "is missing" in found["what"]

"""`holdfast audit` reads a node's own files, whether the node runs or not."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from holdfast.cli.main import main
from holdfast.server.audit.files import FOLDER, AuditFiles
from holdfast.storage.directory.data_directory import LOCK_NAME

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

JAN_31 = 1_769_846_400_000
"""2026-01-31T08:00:00Z"""
DENIED = {
    "at_ms": JAN_31,
    "kind": "denied",
    "principal": "svc",
    "call": "JoinGroup",
    "on": "group orders",
    "why": "needs the role member",
}
READ = {"at_ms": JAN_31 + 3_600_000, "kind": "read", "principal": "root", "call": "ReadEvents"}
COUNT = {"at_ms": JAN_31 + 7_200_000, "kind": "left-out", "principal": "svc", "count": 12}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    AuditFiles(tmp_path / FOLDER, 1 << 20).append([DENIED, READ, COUNT])
    return tmp_path


def audit(place: Path, *arguments: str, code: int = 0) -> Result:
    ended = CliRunner().invoke(main, ["audit", "--node-dir", str(place), *arguments])
    assert ended.exit_code == code, ended.output
    return ended


def shown(place: Path, *arguments: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(audit(place, "--json", *arguments).stdout)
    return found


def test_a_line_says_when_who_and_why(place: Path) -> None:
    head, *lines = audit(place).stdout.splitlines()

    assert head.split() == ["AT", "WHAT", "PRINCIPAL", "CALL", "ON", "WHY"]
    assert lines[0].split("  ")[0] == "2026-01-31T08:00:00Z"
    assert "group orders" in lines[0]
    assert "needs the role member" in lines[0]
    assert "12 records" in lines[2]


def test_it_is_chosen_by_principal_and_time(place: Path) -> None:
    assert shown(place) == [DENIED, READ, COUNT]
    assert shown(place, "--principal", "svc") == [DENIED, COUNT]
    assert shown(place, "--since", "2026-01-31T09:00:00Z") == [READ, COUNT]
    assert shown(place, "--since", "2026-01-31T09:30") == [COUNT], "without a zone it is UTC"
    assert shown(place, "--since", "2026-01-31T10:00:00+01:00", "--principal", "root") == [READ]
    assert shown(place, "--since", "1s") == []


def test_an_age_counts_back_from_now(tmp_path: Path) -> None:
    now_ms = int(time.time() * 1000)
    records = [{**READ, "at_ms": now_ms - hours * 3_600_000} for hours in (30, 1)]
    AuditFiles(tmp_path / FOLDER, 1 << 20).append(records)

    assert shown(tmp_path, "--since", "2h") == records[1:]
    assert shown(tmp_path, "--since", "2d") == records


def test_what_is_no_time_is_refused(place: Path) -> None:
    assert "neither a time" in audit(place, "--since", "yesterday", code=2).stderr


def test_a_directory_in_which_no_node_keeps_anything_is_not_taken_for_a_clean_audit(
    tmp_path: Path,
) -> None:
    (tmp_path / "data").mkdir()

    told = audit(tmp_path, code=1).stderr

    assert "is no data directory of a node" in told
    assert f"node.data_dir, as {tmp_path / 'data'}" in told


def test_a_node_that_refused_nobody_has_nothing_to_show(tmp_path: Path) -> None:
    (tmp_path / LOCK_NAME).touch()

    assert shown(tmp_path) == []

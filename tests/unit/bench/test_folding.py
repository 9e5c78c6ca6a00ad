"""The row `fold`: what is in its logs, and that a fold which differs is no figure."""

from pathlib import Path

import pytest

from bench import fold_entries, folding
from bench.nodes import Program
from bench.rig import Bench, Say
from bench.sizes import QUICK
from holdfast.storage.codec.event_codec import decode_entry

ONE_LIFE = 3_000
"""Enough for one turn of everything that the groups of the mixed log go through."""


def kinds(log: fold_entries.Log) -> set[str]:
    entries = [decode_entry(payload) for payload in log.payloads]
    events = [each.event for entry in entries for part in entry.parts for each in part.events]
    assert len(events) == log.events >= ONE_LIFE
    return {type(event).__name__ for event in events}


def test_the_mixed_log_has_all_that_members_do() -> None:
    assert kinds(fold_entries.mixed(ONE_LIFE)) >= {
        "AssignmentStored",
        "GenerationStarted",
        "MemberJoined",
        "MembersLeft",
        "OffsetsCommitted",
        "RebalanceStarted",
        "RequestRecorded",
        "StaticMemberReplaced",
    }


def test_the_other_log_has_commits_alone() -> None:
    begun = {"ClusterFormed", "SettingsChanged", "TopicsCreated", "GroupCreated"}
    assert kinds(fold_entries.commits(ONE_LIFE)) - begun == {"OffsetsCommitted"}


def bench(folder: Path, program: Program | None = None) -> Bench:
    return Bench(QUICK, folder, Say(), program=program)


def test_a_log_is_folded_by_a_process_of_its_own(tmp_path: Path) -> None:
    log = fold_entries.commits(100)
    assert folding.seconds_of(log, bench(tmp_path)) > 0


def test_a_fold_that_ends_in_another_chain_is_no_figure(tmp_path: Path) -> None:
    log = fold_entries.commits(100)._replace(chain="00" * 32)
    with pytest.raises(RuntimeError, match="not as here"):
        folding.seconds_of(log, bench(tmp_path))


def test_a_checkout_that_cannot_fold_says_why(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho it has no such module >&2\nexit 3\n")
    python.chmod(0o755)
    log = fold_entries.commits(100)
    with pytest.raises(RuntimeError, match="code 3: it has no such module"):
        folding.seconds_of(log, bench(tmp_path, Program((str(python),))))

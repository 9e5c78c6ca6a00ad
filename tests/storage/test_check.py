"""S21: a child walks the records; its death is a verdict, and the node lives to say so."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.storage.codec.history_image import REBALANCES
from holdfast.storage.directory.check import verify_directory
from holdfast.storage.disk.environment import open_environment
from holdfast.storage.errors import Refusal
from holdfast.storage.journal.journal import Entry, JournalBatch
from holdfast.storage.journal.lmdb_journal import LmdbJournal
from holdfast.storage.journal.tail_file import file_name
from holdfast.storage.journal.tailed_journal import open_journal
from holdfast.storage.state.state_store import StateStore
from storage.power import PAGE, applied, recorded
from storage.stores import filled, meta


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A journal with a value over several pages, and a state."""
    LmdbJournal.create(tmp_path / "raft")
    journal = LmdbJournal(tmp_path / "raft")
    journal.load()
    batch = [Entry(n, 1, b"payload %d " % n * 900) for n in range(1, 9)]
    journal.commit(JournalBatch(append=batch, commit_index=8))
    journal.close()
    filled(tmp_path / "state", range(1, 20)).close()
    return tmp_path


def test_a_sound_directory_is_sound(path: Path) -> None:
    verdict = verify_directory(path)

    assert (verdict.sound, verdict.reason, verdict.blank) == (True, "", False)


def test_the_check_imports_nothing_from_the_working_directory(
    path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node may be started anywhere; a module that lies there must not run in LMDB's place."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "lmdb.py").write_text("import pathlib; pathlib.Path('ran').touch()\n")
    monkeypatch.chdir(elsewhere)

    verdict = verify_directory(path)

    assert not (elsewhere / "ran").exists()
    assert verdict.sound, verdict.reason


@pytest.mark.parametrize("name", ["raft", "state"])
def test_a_truncated_file_never_kills_the_caller(path: Path, name: str) -> None:
    """LMDB reads through a map: a missing page is SIGBUS for the child, a verdict for the node."""
    file = path / name / "data.mdb"
    whole = file.read_bytes()
    sizes = [0, PAGE // 2, PAGE, 2 * PAGE, 3 * PAGE, len(whole) // 2 // PAGE * PAGE]

    verdicts = []
    for size in sizes:
        file.write_bytes(whole[:size])
        verdicts.append(verify_directory(path))

    assert not any(verdict.sound for verdict in verdicts)
    assert not any(verdict.refusal for verdict in verdicts)
    assert any("SIGBUS" in verdict.reason for verdict in verdicts)


@pytest.mark.parametrize(
    ("name", "old", "new", "reason"),
    [
        ("raft", b"payload 5 payload", b"payload 5 payloaf", "entry 5"),
        ("state", b"group at 19", b"group at 91", "groups"),
        ("state", b"event 3.1", b"event 3.9", "events"),
    ],
)
def test_a_changed_record_in_either_environment_is_damage(
    path: Path, name: str, old: bytes, new: bytes, reason: str
) -> None:
    file = path / name / "data.mdb"
    file.write_bytes(file.read_bytes().replace(old, new))

    verdict = verify_directory(path)

    assert not verdict.sound
    assert reason in verdict.reason


@pytest.fixture
def told(path: Path) -> Path:
    """The same, with a rebalance in the database that version 0.1.0 did not have."""
    store = StateStore(path / "state")
    store.write_snapshot([(REBALANCES, b"b", b"told")], [], meta(20))
    store.close()
    assert verify_directory(path).sound
    return path


def test_a_later_database_whose_name_is_damaged_is_damage(told: Path) -> None:
    """S21: it is not one that version 0.1.0 never made: the snapshot says what it holds."""
    file = told / "state" / "data.mdb"
    whole = file.read_bytes()
    file.write_bytes(re.sub(rb'rebalances(?!")', b"rebalanceq", whole))  # quoted: what it held

    verdict = verify_directory(told)

    assert not verdict.sound
    assert "rebalances" in verdict.reason
    assert "0 of 1 records" in verdict.reason


def test_a_later_database_that_lost_its_records_is_damage(told: Path) -> None:
    """S21: as one that was opened, and so made anew, after its name was damaged."""
    with open_environment(told / "state") as environment:
        database = environment.open_db(REBALANCES.encode(), create=False)
        with environment.begin(write=True) as txn:
            txn.drop(database, delete=False)

    assert "0 of 1 records" in verify_directory(told).reason


def test_a_meta_page_on_disk_before_its_pages_is_damage(path: Path) -> None:
    """The order of a commit's writes matters, so the power-cut tests would see a lost sync."""
    file = path / "raft" / "data.mdb"
    journal = LmdbJournal(path / "raft")
    journal.load()
    before = file.read_bytes()
    journal.commit(JournalBatch(append=[Entry(9, 1, b"x" * 300)]))
    commit = recorded(before, file.read_bytes())
    journal.close()
    file.write_bytes(applied(before, [commit.meta]))

    assert not verify_directory(path).sound


def test_a_check_that_could_not_be_made_is_no_damage(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S19: a slow disk or a broken installation must not send every node rebuilding at once."""
    late = verify_directory(path, seconds_max=0.0)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    unable = verify_directory(path)
    monkeypatch.setattr(sys, "executable", str(killing(path)))
    killed = verify_directory(path)

    verdicts = [late, unable, killed]
    assert [verdict.sound for verdict in verdicts] == [False] * 3
    assert [verdict.refusal for verdict in verdicts] == [Refusal.UNUSABLE] * 3


def killing(path: Path) -> Path:
    """A program that is killed as the kernel does it for want of memory."""
    program = path / "killed"
    program.write_text("#!/bin/sh\nkill -9 $$\n")
    program.chmod(0o700)
    return program


@pytest.fixture
def tailed(path: Path) -> Path:
    """The same directory, and two batches in the journal's tail."""
    journal = open_journal(path / "raft")
    journal.load()
    for index, payload in ((9, b"the last but one"), (10, b"the last of all")):
        journal.commit(JournalBatch(append=[Entry(index, 1, payload)]))
    journal.close()
    return path


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        pytest.param(b"the last but one", "a whole one stands behind it", id="in the middle"),
        pytest.param(b"the last of all", "batch 2 of its tail was durable", id="the last batch"),
    ],
)
def test_s21_a_changed_batch_of_the_tail_is_damage(
    tailed: Path, payload: bytes, reason: str
) -> None:
    """The child reads the tail as well; the last batch has its mark beside it."""
    assert verify_directory(tailed).sound
    file = tailed / "raft" / file_name(1)
    file.write_bytes(file.read_bytes().replace(payload, payload[::-1]))

    verdict = verify_directory(tailed)

    assert (verdict.sound, verdict.refusal) == (False, "")
    assert reason in verdict.reason


def test_s21_a_missing_file_of_the_tail_is_damage(tailed: Path) -> None:
    """Also if it is the newest that holds batches, with an unused one behind it."""
    (tailed / "raft" / file_name(1)).unlink()

    verdict = verify_directory(tailed)

    assert not verdict.sound
    assert f"the file {file_name(1)} of its tail is missing" in verdict.reason


def test_a_directory_without_environments_is_damage(tmp_path: Path) -> None:
    assert not verify_directory(tmp_path).sound


@pytest.mark.parametrize(("arguments", "code"), [(["."], 1), ([], 2), (["a", "b"], 2)])
def test_the_program_says_by_its_exit_code_how_it_went(
    tmp_path: Path, arguments: list[str], code: int
) -> None:
    command = [sys.executable, "-m", "holdfast.storage.directory.check", *arguments]
    places = os.pathsep.join(str(Path(place).resolve()) for place in sys.path)

    child = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": places},
        capture_output=True,
        text=True,
        check=False,
    )

    assert child.returncode == code, child.stderr
    assert ('"sound": false' in child.stdout) == (code == 1)
    assert ("usage" in child.stderr) == (code == 2)

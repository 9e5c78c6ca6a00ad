"""S21: at each start a child process reads and checks every record of journal and state.

It also looks whether the pages of their files are what a write takes them for. Where only that is
damaged the records are sound, and the files are to be written anew (`anew.py`).

LMDB maps its file: if the file is too short for a page, reading the page kills the process with
SIGBUS. So a child reads, and its death is a verdict, too: damage. As a program,
`python -m holdfast.storage.directory.check DIR` prints the verdict as JSON; exit code 0 sound,
1 damaged.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path

import lmdb

from holdfast.storage.disk.environment import DATA_FILE, error_code, open_environment, reading
from holdfast.storage.disk.pages import fault_of_pages
from holdfast.storage.errors import DirectoryRefused, JournalDamaged, Refusal, StateDamaged
from holdfast.storage.journal.journal import JournalImage
from holdfast.storage.journal.journal_reader import INABILITY, read_journal
from holdfast.storage.state.state_records import (
    META,
    check_counts,
    open_state_databases,
    read_meta,
    verify_records,
)

JOURNAL_FOLDER = "raft"
STATE_FOLDER = "state"
ENVIRONMENTS = (JOURNAL_FOLDER, STATE_FOLDER)
CHECK_SECONDS_MAX = 600.0

_OUTSIDE = {signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP}

_EXIT_SOUND, _EXIT_DAMAGED, _EXIT_USAGE = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of the check."""

    sound: bool
    reason: str = ""  # a sentence; empty if sound
    cluster_id: str = ""  # empty if the node never started or the journal cannot be read
    node_id: str = ""  # the same
    blank: bool = False  # nothing was ever written
    forming: bool = False  # it began to form a cluster that is not formed yet (S19)
    refusal: str = ""
    """A `Refusal` if nothing could be judged: not sound, not damaged, so no reason to rebuild."""
    spoiled: dict[str, str] = field(default_factory=dict)
    """Of a sound directory: environments whose pages are damaged, and what is wrong with them."""


def verify_directory(path: Path, *, seconds_max: float = CHECK_SECONDS_MAX) -> Verdict:
    """Check journal and state under `path` in a child process, and judge by how it ends.

    A crash of the child is damage. A child that was killed from outside, could not run or took
    longer than `seconds_max` is no damage: else a slow disk or a broken installation would make all
    nodes rebuild at once. The caller makes sure that nobody writes to the directory meanwhile.
    """
    command = [sys.executable, "-P", "-m", "holdfast.storage.directory.check", str(path)]
    try:
        child = subprocess.run(  # noqa: S603 - our own module, no shell
            command, capture_output=True, text=True, timeout=seconds_max, check=False
        )
    except subprocess.TimeoutExpired:
        return _unjudged(f"the check did not end within {seconds_max:.0f} s; is the disk slow?")
    if child.returncode < 0:
        return _death(signal.Signals(-child.returncode))
    return _verdict_of(child.returncode, child.stdout, child.stderr)


def walk_directory(path: Path) -> Verdict:
    """Check journal and state in this process, which a damaged file may kill."""
    cluster_id, node_id, forming = "", "", False
    try:
        image = read_journal(path / JOURNAL_FOLDER)
        if image.identity is not None:
            cluster_id, node_id = image.identity.cluster_id, image.identity.node_id
            forming = image.identity.stage == "forming"
        applied = _walk_state(path / STATE_FOLDER)
    except (JournalDamaged, StateDamaged) as damage:
        return Verdict(sound=False, reason=damage.damage, cluster_id=cluster_id, node_id=node_id)
    except DirectoryRefused as refused:
        return _unjudged(refused.detail, refused.refusal)
    return Verdict(
        sound=True,
        cluster_id=cluster_id,
        node_id=node_id,
        blank=image == JournalImage() and applied is None,
        forming=forming,
        spoiled=_spoiled(path),
    )


def _walk_state(path: Path) -> int | None:
    """Check the state; return the index that it covers, None if it was never written."""
    try:
        with open_environment(path, readonly=True) as environment:
            databases = open_state_databases(environment, create=False)
            with reading(environment) as txn:
                for name, database in databases.items():
                    verify_records(path, txn, name, database)
                check_counts(path, txn, databases)
                meta = read_meta(path, txn, databases[META])
    except lmdb.Error as error:
        if error_code(error) in INABILITY:
            raise DirectoryRefused(path, Refusal.UNUSABLE, str(error)) from error
        raise StateDamaged(path, str(error)) from error
    return None if meta is None else meta.index


def _spoiled(path: Path) -> dict[str, str]:
    """Look at what only a write uses, and which would spoil records: unused pages, free room."""
    looked = {name: fault_of_pages(path / name / DATA_FILE) for name in ENVIRONMENTS}
    return {name: fault for name, fault in looked.items() if fault}


def _death(number: signal.Signals) -> Verdict:
    if number in _OUTSIDE:
        return _unjudged(f"something ended the check by {number.name}, perhaps for want of memory")
    cause = "a file is shorter than its pages say, or a page is damaged"
    reason = f"the process that checked it died of {number.name}: {cause}"
    return Verdict(sound=False, reason=reason)


def _unjudged(reason: str, refusal: Refusal = Refusal.UNUSABLE) -> Verdict:
    return Verdict(sound=False, reason=reason, refusal=refusal.value)


def _verdict_of(code: int, output: str, complaint: str) -> Verdict:
    """Read the child's verdict; a child that printed none could not do its work."""
    try:
        return Verdict(**json.loads(output))
    except (ValueError, TypeError):
        last = complaint.strip().splitlines()[-1:] or ["without a word"]
        return _unjudged(f"the check ended with exit code {code}: {last[0]}")


def main(arguments: list[str]) -> int:
    """Run the check as a program."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m holdfast.storage.directory.check DIRECTORY\n")
        return _EXIT_USAGE
    verdict = walk_directory(Path(arguments[0]))
    sys.stdout.write(json.dumps(asdict(verdict)) + "\n")
    return _EXIT_SOUND if verdict.sound else _EXIT_DAMAGED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

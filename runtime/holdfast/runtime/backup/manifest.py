"""The manifest of a backup: what it is a backup of, and each file with its size and SHA-256.

It is written last and carries a SHA-256 over itself, so a backup with a manifest is finished, and a
change anywhere in it is found. Knows JSON and paths; reads no other file.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from holdfast.storage.disk.files import rename_durably, sync_path

FORMAT_VERSION: Final = 1
MANIFEST: Final = "manifest.json"
CHECKPOINT_PREFIX: Final = "checkpoint-"
"""Of a checkpoint's file in a backup; what follows is its name beside a node's segments."""
_SUM: Final = "manifest_sha256"
_NUMBER_MAX: Final = (1 << 64) - 1
"""What the contract's fields hold."""
_WALL_TIME_MS_MAX: Final = 253_402_300_799_999
"""The last millisecond that can be written as a date."""


class BackupFlawed(Exception):
    """A backup cannot be used as it is. The text says what is wrong, and what to do next."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of a backup; its name is a path below the backup's directory."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class BackupManifest:
    """What a backup holds. Digests are hexadecimal, times milliseconds."""

    format_version: int
    cluster_id: str
    node: str
    """The node that it was taken from."""
    version: str
    """That node's version of Holdfast."""
    index: int
    """Last entry of the log that it holds."""
    term: int
    digest: str
    """Digest of the state at that entry, as nodes compare it (S3)."""
    chain: str
    """Head of the hash chain over all records up to that entry."""
    log_time_ms: int
    wall_time_ms: int
    recovery_number: int
    first: tuple[int, int] | None
    """Position of the first record of its unbroken history; None: it has no record."""
    state: StoredFile
    segments: tuple[str, ...]
    """Folders of sealed segments, in the order of the log."""
    files: tuple[StoredFile, ...]
    """The files of the segments."""
    checkpoint: StoredFile | None = None
    """Stands for the records before `first`, which retention has cut off; None: nothing was."""

    def all_files(self) -> tuple[StoredFile, ...]:
        """Return every file that the backup needs."""
        return (self.state, *((self.checkpoint,) if self.checkpoint else ()), *self.files)


def write_manifest(directory: Path, manifest: BackupManifest) -> None:
    """Make the backup visible: write the manifest durably, by one rename."""
    body = asdict(manifest)
    text = json.dumps({**body, _SUM: _sum_of(body)}, indent=1) + "\n"
    beginning = directory / f"{MANIFEST}.new"
    beginning.write_text(text)
    sync_path(beginning)
    rename_durably(beginning, directory / MANIFEST)


def load_manifest(directory: Path) -> BackupManifest:
    """Read and check the manifest. Raises BackupFlawed."""
    path = directory / MANIFEST
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise BackupFlawed(
            f"{directory} holds no finished backup: {MANIFEST}, which is written last, is missing. "
            "Run `holdfast backup create` to its end, or name another directory"
        ) from error
    except OSError as error:
        raise BackupFlawed(f"cannot read {path}: {error.strerror or error}") from error
    try:
        return _parsed(json.loads(content))
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise BackupFlawed(
            f"{path} is damaged ({error}), so nothing in this backup can be trusted: use another "
            "backup, or a copy of this one"
        ) from error


def _parsed(raw: Any) -> BackupManifest:  # noqa: ANN401 - JSON
    version = raw["format_version"]
    claimed = raw.pop(_SUM)
    if claimed != _sum_of(raw):
        raise ValueError("its own sum does not match")
    if version != FORMAT_VERSION:
        raise BackupFlawed(
            f"the backup has format version {version}, and this version of Holdfast reads "
            f"{FORMAT_VERSION}: use the version that wrote it, or a newer one"
        )
    raw["first"] = tuple(raw["first"]) if raw["first"] is not None else None
    raw["state"] = StoredFile(**raw["state"])
    raw["segments"] = tuple(raw["segments"])
    raw["files"] = tuple(StoredFile(**each) for each in raw["files"])
    if raw.get("checkpoint") is not None:
        raw["checkpoint"] = StoredFile(**raw["checkpoint"])
    made = BackupManifest(**raw)
    _check_values(made)
    for name in (*made.segments, *(each.name for each in made.all_files())):
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise ValueError(f"it names {name!r}, which is outside of the backup")
    return made


def _check_values(made: BackupManifest) -> None:
    """Raise ValueError for a value that no backup has: its sum holds, so somebody wrote it."""
    for field in ("index", "term", "log_time_ms", "wall_time_ms", "recovery_number"):
        value = getattr(made, field)
        if type(value) is not int or not 0 <= value <= _NUMBER_MAX:
            raise ValueError(f"its {field} is {value!r}, and 0 to {_NUMBER_MAX} is possible")
    if made.wall_time_ms > _WALL_TIME_MS_MAX:
        raise ValueError(f"its wall_time_ms is {made.wall_time_ms}, which is after the year 9999")
    for what, names in (
        ("segment", made.segments),
        ("file", [each.name for each in made.all_files()]),
    ):
        if twice := next((name for name in names if names.count(name) > 1), ""):
            raise ValueError(f"it names the {what} {twice!r} twice")


def _sum_of(body: dict[str, Any]) -> str:
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()

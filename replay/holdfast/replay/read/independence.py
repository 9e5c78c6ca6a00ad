"""Whether several directories are several logs: a log that is compared with itself proves nothing.

Knows folders, manifests, and which files the disk holds once. Opens nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from holdfast.replay.findings import Finding, WrongUse
from holdfast.replay.read.node_logs import NodeLog, Range, Segment
from holdfast.replay.read.url_path import Folder
from holdfast.replay.read.urls import is_url


def check_independent(folders: Sequence[Folder], logs: Sequence[NodeLog]) -> None:
    """Refuse what is one log given twice. Raises WrongUse, with one sentence."""
    _apart(folders)
    _of_several_nodes(folders, logs)
    _stored_twice(logs)


def _apart(folders: Sequence[Folder]) -> None:
    seen: dict[Folder, Folder] = {}
    for folder in folders:
        place = _log_folder(folder)
        before = seen.setdefault(place, folder)
        if before is not folder:
            again = "" if before == folder else f", as {before} and as {folder}"
            raise WrongUse(
                f"the log in {place} was given twice{again}: compared with itself it proves "
                "nothing. Give each node's directory once"
            )


def _log_folder(folder: Folder) -> Folder:
    resolved = folder.resolve()
    inner = resolved / "segments"
    return inner.resolve() if inner.is_dir() else resolved


def _of_several_nodes(folders: Sequence[Folder], logs: Sequence[NodeLog]) -> None:
    seen: dict[str, Folder] = {}
    for folder, log in zip(folders, logs, strict=True):
        if not log.segments:
            continue
        before = seen.setdefault(log.node_id, folder)
        if before is not folder:
            raise WrongUse(
                f"{before} and {folder} both hold the log of node {log.node_id}: a copy proves "
                "nothing about what it was copied from. Give the directory of another node "
                "instead, or one of the two. (Nodes restored from one backup are such copies "
                "until each has sealed something, or its tail was exported)"
            )


def _stored_twice(logs: Sequence[NodeLog]) -> None:
    seen: dict[tuple[int, int], tuple[NodeLog, str]] = {}
    for log in logs:
        paths = (file for segment in log.segments for file in segment.files)
        for path in (each for each in paths if not is_url(each)):  # a store has each file once
            told = Path(path).stat()
            other, first = seen.setdefault((told.st_dev, told.st_ino), (log, path))
            if other is not log:
                raise WrongUse(
                    f"{first} and {path} are one file on the disk (hard links), so the logs of "
                    f"nodes {other.node} and {log.node} are not two: give copies that were made "
                    "from each node"
                )


def foreign_copies(logs: Sequence[NodeLog]) -> Iterator[Finding]:
    """Yield segments that say they are of another node that was given, too.

    After a restore from a backup all nodes begin with segments of the node that was backed up. So
    it takes a third log to tell a copy: one that has the range by itself.
    """
    owners = {log.node_id for log in logs}
    for log in logs:
        for segment in log.segments:
            told = segment.manifest.node_id
            if told == log.node_id or told not in owners:
                continue
            if any(_has_its_own(other, segment) for other in logs if other.node_id != told):
                yield Finding(
                    "copy",
                    log.node,
                    "",
                    segment.ends.first,
                    f"the segment says that it is of node {told}: a copy of a peer's proves "
                    "nothing about this node",
                    str(segment.folder),
                )


def _has_its_own(log: NodeLog, wanted: Segment) -> bool:
    mine = (each for each in log.segments if each.manifest.node_id == log.node_id)
    return any(_within(wanted.ends, each.ends) for each in mine)


def _within(inner: Range, outer: Range) -> bool:
    return outer.first <= inner.first and inner.last <= outer.last

"""Look over a node's folder of segments before any data file in it is opened.

It tells what may be read, and what a manifest says that cannot be true. Only plain files within the
folder are read: a link may lead out of the archive, or to a peer's copy, and a pipe would be read
for ever. Knows folders, manifests and names.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from holdfast.coordinator.model.ids import Position
from holdfast.coordinator.model.text import truncate
from holdfast.replay.findings import Finding, place_of
from holdfast.replay.read.urls import FLAT, scheme_of
from holdfast.storage.segments.archive_path import ArchivePath
from holdfast.storage.segments.checkpoint import SUFFIX
from holdfast.storage.segments.file_contents import UNTOLD, tells_each_file
from holdfast.storage.segments.segments import (
    BLOCK_INDEXES,
    BUCKETS,
    FIRST_FORMAT,
    MANIFEST,
    BlockDigest,
    Manifest,
    OtherFormat,
    bucket_file,
    read_manifest,
    segment_name,
)

MANIFEST_BYTES_MAX: Final = 64 << 20
STRAY: Final = "extra"
"""The kind of a finding about a file that is left alone, while the others are read."""
PEER: Final = "fetch the segment from a peer"

_SEGMENT: Final = re.compile(r"\d{20}-\d{20}")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_INDEX_MAX: Final = (1 << 63) - 1
_ORDINAL_MAX: Final = (1 << 31) - 1
_SUM_MAX: Final = (1 << 63) - 1
_FILES: Final = tuple(bucket_file(number) for number in range(BUCKETS))


class Survey(NamedTuple):
    """What a folder of segments holds that must not be opened, and what is said of that."""

    closed: frozenset[ArchivePath]
    findings: tuple[Finding, ...]


def survey(folder: ArchivePath) -> Survey:
    """Look at the entries of a folder of segments, and at those of each segment."""
    closed, findings = set[ArchivePath](), list[Finding]()
    paths = [path for path in sorted(folder.iterdir()) if not path.name.startswith(".")]
    arriving = _arriving(paths)
    for path in paths:
        if path == arriving:
            continue
        found = list(_entry(path))
        if any(each.kind != STRAY for each in found):
            closed.add(path)
        findings += found
    return Survey(frozenset(closed), tuple(findings))


def _arriving(paths: Sequence[ArchivePath]) -> ArchivePath | None:
    """Return the last segment of an object store if its manifest is not there yet.

    An object store renames nothing, so what is being published is seen without it; elsewhere a
    folder appears when it is whole. If other nodes have the records, they are missed all the same.
    """
    segments = [path for path in paths if _SEGMENT.fullmatch(path.name)]
    if not segments or scheme_of(str(segments[-1])) not in FLAT:
        return None
    return None if _is_there(segments[-1] / MANIFEST) else segments[-1]


def _entry(path: ArchivePath) -> Iterator[Finding]:
    if path.is_symlink():
        if _SEGMENT.fullmatch(path.name) or path.suffix == SUFFIX or (path / MANIFEST).exists():
            yield _link(path)
    elif path.suffix == SUFFIX:
        if not plain(path):
            yield _said("checkpoint", path, "it is no plain file, and is not opened")
    elif path.is_dir():
        yield from _segment(path)


def _segment(path: ArchivePath) -> Iterator[Finding]:
    manifest = path / MANIFEST
    if not _is_there(manifest):
        if _SEGMENT.fullmatch(path.name):
            yield _said("missing", manifest, f"the segment has no manifest; {PEER}")
        return
    for each in sorted(path.iterdir()):
        if each.is_symlink():
            yield _link(each)
        elif each.name in {MANIFEST, *_FILES}:
            if not plain(each):
                yield _said("unreadable", each, f"it is no plain file; {PEER}")
        elif not each.name.startswith("."):
            text = f"{each.name} is neither a manifest nor one of a segment's data files"
            yield _said(STRAY, each, text)


def plain(path: ArchivePath) -> bool:
    """Return whether there is a plain file, which is no link."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def linked(path: ArchivePath) -> list[Finding]:
    """Say that a folder of an archive is a link, if it is."""
    return [_link(path)] if path.is_symlink() else []


def _link(path: ArchivePath) -> Finding:
    try:
        target = truncate(str(path.readlink()))
    except OSError:
        target = "nothing that can be told"
    text = f"it is a link to {target}, and is not followed: a log is proven by its own files"
    return _said("copy", path, text)


def _said(kind: str, path: ArchivePath, text: str) -> Finding:
    return Finding(kind, "", "", None, text, str(path))


def opened_manifest(path: ArchivePath) -> tuple[Manifest | None, list[Finding]]:
    """Read the manifest of a segment; findings instead if it cannot be used."""
    file = path / MANIFEST
    try:
        if file.stat().st_size > MANIFEST_BYTES_MAX:
            return None, [_said("unreadable", file, f"it is too long for a manifest; {PEER}")]
        manifest = read_manifest(path)
    except OtherFormat as error:
        return None, [_said("format", file, str(error))]
    except (OSError, ValueError, KeyError, TypeError) as error:
        text = f"the manifest of {path} cannot be read: {truncate(str(error))}; {PEER}"
        return None, [_said("unreadable", file, text)]
    wrong = next(_mistyped(manifest), None) or next(_unsafe(manifest), None)
    if wrong is not None:
        text = f"the manifest of {path} is none that a node writes: {wrong}; {PEER}"
        return None, [_said("manifest", file, text)]
    return manifest, [_said("manifest", file, text) for text in _untrue(path, manifest)]


def _mistyped(manifest: Manifest) -> Iterator[str]:
    """Yield which values are of a type, or of a size, that no manifest has."""
    for name in ("cluster_id", "node_id"):
        if not isinstance(getattr(manifest, name), str):
            yield f"{name} is no text"
    if not _whole(manifest.count, _SUM_MAX):
        yield f"count is {_shown(manifest.count)}"
    for name in ("first", "last"):
        index, ordinal = getattr(manifest, name)
        if not (_whole(index, _INDEX_MAX) and _whole(ordinal, _ORDINAL_MAX)):
            yield f"{name} is {_shown([index, ordinal])}"
    for block in (*manifest.blocks, *manifest.fast_blocks):
        values = (block.block, block.count, block.low, block.high)
        if not all(_whole(value, _SUM_MAX) for value in values):
            yield f"a block is {_shown(values)}"
    yield from _mistyped_contents(manifest)


def _mistyped_contents(manifest: Manifest) -> Iterator[str]:
    for each in manifest.contents:
        if not (_whole(each.size, _SUM_MAX) and _whole(each.rows, _SUM_MAX)):
            yield f"a file has {_shown(each.size)} bytes and {_shown(each.rows)} records"
        if not _is_sha256(each.sha256):
            yield f"the SHA-256 of a file is {_shown(each.sha256)}"


def _is_sha256(value: object) -> bool:
    return isinstance(value, str) and _SHA256.fullmatch(value) is not None


def _whole(value: object, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most


def _unsafe(manifest: Manifest) -> Iterator[str]:
    """Yield the names of files that are not those of buckets: none of them is opened."""
    for name in manifest.files:
        if name not in _FILES:
            yield f"it names the file {_shown(name)}"
    if len(set(manifest.files)) < len(manifest.files):
        yield "it names a file twice"


def _untrue(path: ArchivePath, manifest: Manifest) -> Iterator[str]:
    """Yield what contradicts itself, or the names in the folder."""
    first, last = Position(*manifest.first), Position(*manifest.last)
    name = segment_name(first, last)
    if path.name != name:
        yield f"the manifest is of segment {name}, and the folder is {truncate(path.name)}"
    if first > last:
        ends = f"begins at {place_of(first)} and ends at {place_of(last)}"
        yield f"the manifest says that the segment {ends}"
    numbers = [block.block for block in manifest.blocks]
    if numbers != sorted(set(numbers)):
        yield "the manifest lists its blocks twice or out of order"
    if any(not _inside(block, first, last) for block in manifest.blocks):
        yield "the manifest lists a block in which the segment has no record"
    total = sum(block.count for block in manifest.blocks)
    if total != manifest.count:
        yield f"the manifest tells {manifest.count} records, and {total} in its blocks"
    if manifest.format_version > FIRST_FORMAT and not tells_each_file(manifest):
        yield UNTOLD
    fast = [(block.block, block.count) for block in manifest.fast_blocks]
    if manifest.format_version > FIRST_FORMAT and fast != [
        (block.block, block.count) for block in manifest.blocks
    ]:
        yield "the manifest tells other blocks in its fast sums"
    for extra in sorted(set(_present(path)) - set(manifest.files)):
        yield f"the manifest does not name {extra}, which is there"


def _inside(block: BlockDigest, first: Position, last: Position) -> bool:
    return first.index // BLOCK_INDEXES <= block.block <= last.index // BLOCK_INDEXES


def _present(path: ArchivePath) -> list[str]:
    return [name for name in _FILES if _is_there(path / name)]


def _is_there(path: ArchivePath) -> bool:
    """Return whether there is something, be it a link to nothing."""
    try:
        path.lstat()
    except OSError:
        return False
    return True


def _shown(value: object) -> str:
    return truncate(repr(value))

"""Publish the sealed segments of a node: what is copied, in which order, and what refuses it.

A reader never sees half of the log: checkpoints come first, since they stand for what is before
them; then segments in the order of the log, of each its data files, and its manifest last. What is
there is compared before anything is written, so a break is gone on from, and a folder of another
node is left as it is. Knows segments and manifests, no store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from holdfast.replay.publish.target import Gone, Item, Target
from holdfast.replay.read import archive
from holdfast.replay.read.node_logs import SEGMENTS
from holdfast.storage.segments.checkpoint import checkpoints_in
from holdfast.storage.segments.file_contents import other_contents
from holdfast.storage.segments.segments import MANIFEST, Manifest, segments_in

Progress = Callable[[int, int], None]
"""Called with how many bytes were compared or copied, and how many there are in all."""

_AGAIN: Final = "give each node a folder of its own, or look at which of both files is right"


class PublishRefused(Exception):
    """Nothing, or no more, is published; the sentence says why."""


class _Unit(NamedTuple):
    """What is of use only as a whole: a checkpoint, or a segment with its manifest last."""

    items: tuple[Item, ...]
    manifest: Manifest | None = None

    @property
    def folder(self) -> Path:
        return self.items[0].source.parent


class Published(NamedTuple):
    """What was done."""

    segments: int
    checkpoints: int
    copied: int
    """Files that were not there."""
    copied_bytes: int
    known: int
    """Files that were there, and are the same."""


def publish(
    node_dir: Path,
    to: str,
    progress: Progress = lambda _, __: None,
    *,
    by_size: bool = False,
) -> Published:
    """Copy what is sealed of a node's data directory, or of a folder of segments.

    A node may run on it. `by_size`: what is there below a manifest is not read to be compared.
    Raises PublishRefused; WrongUse, FileNotFoundError and NotReached as `read.urls` does; OSError
    for a file of the node's that cannot be read.
    """
    units = _units(node_dir)
    target = Target(to)
    there = target.listed()
    run = _Run(target, there, progress, sum(map(_size, units)), by_size=by_size)
    try:
        lacking = [run.compare(unit) for unit in units]
        for unit, items in zip(units, lacking, strict=True):
            run.add(unit, items)
    except Gone as error:
        raise PublishRefused(
            f"{error} was deleted while it was to be published, as by retention: publish again"
        ) from error
    copied = [item for items in lacking for item in items]
    return Published(
        sum(unit.manifest is not None for unit in units),
        sum(unit.manifest is None for unit in units),
        len(copied),
        run.copied_bytes,
        sum(len(unit.items) for unit in units) - len(copied),
    )


def _units(node_dir: Path) -> list[_Unit]:
    """Find what there is to publish, and that it may be read."""
    place = node_dir / SEGMENTS if (node_dir / SEGMENTS).is_dir() else node_dir
    seen = archive.survey(place)
    flaws = [*archive.linked(place), *(f for f in seen.findings if f.kind != archive.STRAY)]
    if flaws:
        raise PublishRefused(f"{flaws[0].file} is not published: {flaws[0].text}")
    units = [_Unit((_item(path),)) for _, path in checkpoints_in(place)]
    units += map(_segment, segments_in(place))
    if not units:
        raise PublishRefused(
            f"nothing is sealed in {place}: a node seals its log once a day, as soon as it is "
            "long enough, or when it is told to: `holdfast log seal`"
        )
    return units


def _segment(path: Path) -> _Unit:
    manifest, flaws = archive.opened_manifest(path)
    if flaws or manifest is None:
        raise PublishRefused(f"{path} is not published: {flaws[0].text}")
    files = [path / name for name in (*manifest.files, MANIFEST)]
    for file in files:
        if not archive.plain(file):
            raise PublishRefused(f"{file} is not there, and its manifest names it; {archive.PEER}")
    return _Unit(tuple(_item(file, path.name) for file in files), manifest)


def _item(source: Path, *folders: str) -> Item:
    return Item(source, "/".join((SEGMENTS, *folders, source.name)))


def _size(unit: _Unit) -> int:
    return sum(item.source.lstat().st_size for item in unit.items)


class _Run:
    """One publication, as far as it has come."""

    def __init__(
        self,
        target: Target,
        there: Mapping[str, int],
        progress: Progress,
        total: int,
        *,
        by_size: bool,
    ) -> None:
        self._target = target
        self._there = there
        self._progress = progress
        self._total = total
        self._done = 0
        self._by_size = by_size
        self.copied_bytes = 0

    def compare(self, unit: _Unit) -> tuple[Item, ...]:
        """Return which files are not there. Raises PublishRefused for one that is another one.

        A manifest is always compared by its bytes: it tells of which node the segment is.
        """
        whole = unit.items[-1].name in self._there
        lacking = []
        for item in unit.items:
            size = self._there.get(item.name)
            if size is None:
                lacking.append(item)
                continue
            by_size = self._by_size and whole and item is not unit.items[-1]
            if not self._target.holds(item, size, by_size=by_size):
                raise PublishRefused(
                    f"{self._target.shown(item.name)} is there and differs from {item.source}, so "
                    f"it is not overwritten, and nothing was published: {_AGAIN}"
                )
            self._advance([item])
        return tuple(lacking)

    def add(self, unit: _Unit, lacking: Sequence[Item]) -> None:
        """Copy the files of a unit that are not there; the last one comes when all others are."""
        if not lacking:
            return
        if unit.manifest is not None:
            for text in _wrong(unit):
                raise PublishRefused(f"{unit.folder} is not published: {text}; {archive.PEER}")
        if unit.manifest is not None and len(lacking) == len(unit.items):
            self._target.add_folder(lacking)
        else:
            for item in lacking:  # the manifest is the last one
                self._target.add([item])
        self.copied_bytes += self._advance(lacking)

    def _advance(self, items: Sequence[Item]) -> int:
        size = sum(item.source.lstat().st_size for item in items)
        self._done += size
        self._progress(self._done, self._total)
        return size


def _wrong(unit: _Unit) -> Iterator[str]:
    """Yield which data files are not those that were sealed (format 2): they are not spread."""
    if unit.manifest is not None:
        yield from other_contents(unit.folder, unit.manifest)

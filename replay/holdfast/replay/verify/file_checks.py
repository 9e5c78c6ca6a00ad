"""Check every file of every node, before the layers above read any of them.

Files with equal bytes are checked once, whatever nodes hold them: nodes seal the same records into
the same bytes while they run the same version. So several sound nodes cost little more than one.
First the form of each file (`file_form`); then what the manifests say of their ends; then chains
and payloads in those buckets that are not alike on most nodes: the others are those of the node
that is folded. Knows files and findings, not how the worker checks them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from holdfast.coordinator.model.ids import Position
from holdfast.replay.findings import CannotCheck, Finding
from holdfast.replay.read.content_check import Piece, check_bucket, check_whole_chain
from holdfast.replay.read.file_form import FORM, UNSEEN, DataFile, forms
from holdfast.replay.read.file_sums import FileSum, of_row, sum_of, sum_rows
from holdfast.replay.read.log_rows import FINDING, ResultRow, Source
from holdfast.replay.read.node_logs import (
    NodeLog,
    Range,
    Segment,
    buckets_of,
    missing_ranges,
    sources_by_segment,
)
from holdfast.replay.read.record_sums import SUMS, sum_of_row
from holdfast.replay.read.url_path import is_there
from holdfast.replay.read.urls import TASK_FETCHES, is_url
from holdfast.replay.spark.tasks import Task
from holdfast.replay.verify.sealed_bytes import other_files

Sums: TypeAlias = Mapping[str, str]
"""SHA-256 of each file's bytes, by its path. A file that cannot be read has a sum of its own."""

RecordHashes: TypeAlias = Mapping[str, Mapping[int, tuple[int, int, int]]]
"""Number of records and sums of their hashes, by the path of the file and by block."""

Run: TypeAlias = Callable[[Sequence[Task]], list[ResultRow]]
"""Runs tasks somewhere, and returns the rows of all of them."""

_TASK_BYTES: Final = 32 << 20
"""How much of small files one task takes, so that many of them cost few tasks."""
_READERS: Final = 4


class _Ends(NamedTuple):
    """What a file holds."""

    records: int
    first: Position
    last: Position


class Files(NamedTuple):
    """All files after their forms were checked."""

    logs: list[NodeLog]
    """Without segments that hold a file which must not be read again, and with their true ends."""
    findings: list[Finding]
    sums: Sums
    number: int
    different: int
    """How many contents the files have."""
    hashed: RecordHashes


def check_forms(run: Run, logs: Sequence[NodeLog]) -> Files:
    """Check the form of every file, and the ends of every segment."""
    paths = [path for log in logs for segment in log.segments for path in segment.files]
    read = _read(run, paths)
    sums = {path: each.sha256 for path, each in read.items()}
    firsts = _one_of_each(logs, sums)
    found, ends, hashed = _run_forms(run, list(firsts.values()), read)
    held = {path: ends.get(firsts[key].path) for path, key in _contents(logs, sums)}
    findings = [
        finding._replace(node=log.node, file=path)
        for log in logs
        for segment in log.segments
        for path in segment.files
        for finding in found.get(firsts[_content(path, sums)].path, ())
    ]
    there = {path: (*read[path], each.records) for path, each in held.items() if each}
    findings += other_files(logs, there, {each.file for each in findings})
    corroborated = Counter(r for log in logs for r in {s.ends for s in log.segments})
    usable = []
    for log in logs:
        kept, untrue = _usable(log, held, corroborated)
        usable.append(log._replace(segments=kept))
        findings += untrue
    of_all = {path: hashed.get(firsts[key].path, {}) for path, key in _contents(logs, sums)}
    return Files(usable, findings, sums, len(sums), len(firsts), of_all)


def _read(run: Run, paths: Sequence[str]) -> dict[str, FileSum]:
    """Read all files once: those of this host here, those behind a URL in workers."""
    near, far = [path for path in paths if not is_url(path)], [*filter(is_url, paths)]
    shares = [far[at : at + TASK_FETCHES] for at in range(0, len(far), TASK_FETCHES)]
    fetched = run([partial(sum_rows, share) for share in shares])
    with ThreadPoolExecutor(_READERS) as pool:
        return {
            **dict(zip(near, pool.map(sum_of, near), strict=True)),
            **dict(map(of_row, fetched)),
        }


def _content(path: str, sums: Sums) -> tuple[str, str]:
    """Return what tells files apart: the bytes, and the name, which tells the bucket."""
    return sums[path], Path(path).name


def _contents(logs: Sequence[NodeLog], sums: Sums) -> Iterator[tuple[str, tuple[str, str]]]:
    for log in logs:
        for segment in log.segments:
            for path in segment.files:
                yield path, _content(path, sums)


def _one_of_each(logs: Sequence[NodeLog], sums: Sums) -> dict[tuple[str, str], DataFile]:
    firsts: dict[tuple[str, str], DataFile] = {}
    for log in logs:
        for segment in log.segments:
            for path in segment.files:
                key = _content(path, sums)
                known = firsts.setdefault(key, DataFile(len(firsts), path, key[1], 0))
                promised = max(known.promised, segment.manifest.count)
                firsts[key] = known._replace(promised=promised)
    return firsts


def _run_forms(
    run: Run, files: Sequence[DataFile], read: Mapping[str, FileSum]
) -> tuple[dict[str, list[Finding]], dict[str, _Ends], RecordHashes]:
    """Return the findings about each file, and what each holds that may be read again."""
    found: dict[str, list[Finding]] = defaultdict(list)
    ends: dict[str, _Ends] = {}
    hashed: dict[str, dict[int, tuple[int, int, int]]] = defaultdict(dict)
    for row in run([partial(forms, part) for part in _parts(files, read)]):
        if row.tag == FORM and row.text:
            count, *places = map(int, row.text.split())
            ends[row.key] = _Ends(count, Position(*places[:2]), Position(*places[2:]))
        elif row.tag == SUMS:
            path, told = sum_of_row(row)
            hashed[path][told.block] = (told.records, told.low, told.high)
        elif row.tag == FINDING:
            found[row.key].append(_seen(_finding(row, "")))
    return found, ends, hashed


def _seen(finding: Finding) -> Finding:
    """Return a finding about a file that a worker has read, or that is not here either.

    Raises CannotCheck if the worker does not see what is here: that says nothing of the log.
    """
    if finding.kind != UNSEEN:
        return finding
    if is_there(finding.file):
        raise CannotCheck(
            f"a worker of Spark does not find {finding.file}, which is here. Every worker has to "
            "see the nodes' directories under the same paths: share them, or verify where they "
            "are, without --master and --remote"
        )
    return finding._replace(kind="unreadable")


def _finding(row: ResultRow, node: str) -> Finding:
    place = Position(row.idx, row.ordinal) if row.idx >= 0 else None
    return Finding(row.kind, node, row.grp, place, row.text, row.key)


def _parts(files: Sequence[DataFile], read: Mapping[str, FileSum]) -> Iterator[list[DataFile]]:
    """Share files out among tasks, so that each has enough to do."""
    part: list[DataFile] = []
    size = 0
    for file in files:
        part.append(file)
        size += read[file.path].size
        if size >= _TASK_BYTES:
            yield part
            part, size = [], 0
    if part:
        yield part


def _usable(
    log: NodeLog, held: Mapping[str, _Ends | None], corroborated: Mapping[Range, int]
) -> tuple[tuple[Segment, ...], list[Finding]]:
    """Return the segments that may be read, with the ends that they are to be taken for.

    A manifest is believed for the ends if its files have them, or if another node's says the same:
    then the files lack something. Else a manifest that lies would make others lack what nobody has.
    """
    kept, findings = [], []
    for segment in log.segments:
        ends = [held[path] for path in segment.files]
        there = [each for each in ends if each is not None]
        if len(there) < len(ends):
            continue
        true = _together(there)
        if true is None:
            findings.append(_empty(log, segment))
        elif true == (segment.manifest.count, segment.ends):
            kept.append(segment)
        else:
            findings += _untrue(log, segment, *true)
            kept.append(
                segment if corroborated[segment.ends] > 1 else segment._replace(held=true[1])
            )
    return tuple(kept), findings


def _together(files: Iterable[_Ends]) -> tuple[int, Range] | None:
    filled = [each for each in files if each.records]
    if not filled:
        return None
    first, last = min(each.first for each in filled), max(each.last for each in filled)
    return sum(each.records for each in filled), Range(first, last)


def _empty(log: NodeLog, segment: Segment) -> Finding:
    text = "the segment's files hold no records; fetch the segment from a peer"
    return Finding("missing", log.node, "", segment.ends.first, text, str(segment.folder))


def _untrue(log: NodeLog, segment: Segment, count: int, true: Range) -> Iterator[Finding]:
    told, file = segment.ends, str(segment.folder / "manifest.json")
    if true != told:
        text = f"the manifest says that the segment holds {told}, and its files hold {true}"
        yield Finding("manifest", log.node, "", true.first, text, file)
    if count != segment.manifest.count:
        text = f"the manifest tells {segment.manifest.count} records, and {count} are there"
        yield Finding("manifest", log.node, "", true.first, text, file)


class Contents(NamedTuple):
    """What was found in records of buckets that are not alike on most nodes."""

    findings: list[Finding]
    read: int
    """How many buckets and chains had to be read by themselves."""


def check_contents(run: Run, logs: Sequence[NodeLog], sums: Sums) -> Contents:
    """Check chains and payloads in each bucket of a node that is not as on most of them.

    What is alike on most nodes is left to the fold of one that has it.
    """
    work = [*_minority_buckets(logs, sums), *_minority_chains(logs, sums)]
    tasks: list[Task] = [partial(_numbered, n, task) for n, (_, task) in enumerate(work)]
    rows = run(tasks)
    findings = [_finding(row, work[int(row.content)][0]) for row in rows]
    return Contents(sorted(findings, key=lambda each: each.position or Position(0, 0)), len(work))


def _minority_buckets(logs: Sequence[NodeLog], sums: Sums) -> Iterator[tuple[str, Task]]:
    held = [
        (log, bucket, (bucket.name, *(sums[source.path] for source in bucket.sources)))
        for log in logs
        for bucket in buckets_of(log).values()
    ]
    votes = Counter(content for _, _, content in held)
    gaps = _gaps(logs)
    for log, bucket, content in held:
        if _few(votes[content], logs) and bucket.sources:
            pieces = _pieces([(source,) for source in bucket.sources], gaps)
            yield log.node, partial(check_bucket, pieces, bucket)


def _minority_chains(logs: Sequence[NodeLog], sums: Sums) -> Iterator[tuple[str, Task]]:
    held = [tuple(sums[path] for s in log.segments for path in s.files) for log in logs]
    votes = Counter(held)
    gaps = _gaps(logs)
    for log, content in zip(logs, held, strict=True):
        if _few(votes[content], logs) and content:
            pieces = _pieces(sources_by_segment(log), gaps)
            yield log.node, partial(check_whole_chain, pieces, log.begins)


def _few(votes: int, logs: Sequence[NodeLog]) -> bool:
    return len(logs) > 1 and votes * 2 <= len(logs)


def _gaps(logs: Sequence[NodeLog]) -> dict[str, int]:
    """Return for each file how many gaps are before it: a bucket may have none in some segments."""
    missing = missing_ranges(logs)
    ends = {node: sorted(gap.last for gap in gaps) for node, gaps in missing.items()}
    return {
        path: bisect_left(ends[log.node], segment.ends.first)
        for log in logs
        for segment in log.segments
        for path in segment.files
    }


def _pieces(sources: Sequence[Sequence[Source]], gaps: Mapping[str, int]) -> list[Piece]:
    counts = [0, *(gaps[each[0].path] for each in sources)]
    return [
        Piece(tuple(each), now > before)
        for each, (before, now) in zip(sources, pairwise(counts), strict=True)
    ]


def _numbered(number: int, task: Task) -> Iterator[tuple[object, ...]]:
    for row in task():
        yield (*row[:5], str(number).encode(), *row[6:])

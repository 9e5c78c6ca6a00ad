"""The cheapest layer: hashes of all records, summed per block, and compared.

Each record's hash covers its position and its payload (`segments.segments.record_hash`), so a plain
sum shows a loss, a repetition, a swap and a changed bit, and needs no order. Sums are compared with
the manifests and between nodes; only blocks that differ are opened, and the majority tells which
node is wrong. Knows no events, and not how the sums are made (`spark_reader`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple, TypeAlias

from holdfast.coordinator.model.ids import Position
from holdfast.replay.findings import Finding
from holdfast.replay.read.log_rows import START
from holdfast.replay.read.node_logs import NodeLog, Range
from holdfast.storage.segments.segments import BLOCK_INDEXES, BlockDigest

FINDINGS_MAX: Final = 100
"""Most positions that are listed one by one: if there are more, something larger has happened."""

Halves: TypeAlias = tuple[int, int, int]
"""How many hashes, the sum of their low halves, and of their high ones."""
NOTHING: Final[Halves] = (0, 0, 0)


class Sum(NamedTuple):
    """The sums over one block of one segment of one node: number, low halves, high halves."""

    node: str
    segment: str
    block: int
    stored: Halves  # over all stored records
    common: Halves  # over the records that can be compared between nodes
    fast: Halves  # as `stored`, of the hashes that manifests have since format 2


class Comparable(NamedTuple):
    """The records that all nodes should have: up to `last`, without the ranges a node lacks."""

    last: Position
    lacking: tuple[Range, ...]
    after: Position = START
    """What lies up to here was cut off on some node (S24)."""


class Place(NamedTuple):
    """A position at which the nodes have not the same records."""

    position: Position
    group: str
    copies: Sequence[tuple[str, str]]
    """Node and hash of each record that is stored there."""


def against_manifests(logs: Sequence[NodeLog], sums: Sequence[Sum]) -> list[Finding]:
    """Find blocks whose records differ from the node's own manifest."""
    found = {(s.node, s.segment, s.block): s.stored for s in sums}
    fast = {(s.node, s.segment, s.block): s.fast for s in sums}
    findings = []
    for log in logs:
        for segment in log.segments:
            told = {block.block: block for block in segment.manifest.fast_blocks}
            for promised in segment.manifest.blocks:
                at = (log.node, segment.key, promised.block)
                differing = _manifest_finding(*at[:2], promised, found.pop(at, NOTHING))
                other = told.get(promised.block)
                if not differing and other is not None:
                    differing = _manifest_finding(*at[:2], other, fast.get(at, NOTHING))
                findings += differing
    findings += [
        Finding("manifest", node, "", None, f"{segment} has block {block}, which nobody promised")
        for node, segment, block in found
    ]
    return findings


def differing_blocks(logs: Sequence[NodeLog], sums: Sequence[Sum]) -> list[int]:
    """Return the blocks that differ between nodes."""
    totals: dict[int, dict[str, list[int]]] = defaultdict(
        lambda: {log.node: [0, 0, 0] for log in logs}
    )
    for each in sums:
        total = totals[each.block][each.node]
        for at, value in enumerate(each.common):
            total[at] += value
    return [b for b, per in sorted(totals.items()) if len({tuple(t) for t in per.values()}) > 1]


def judged(
    places: Sequence[Place], logs: Sequence[NodeLog], faulty: Collection[str] = ()
) -> list[Finding]:
    """Name the nodes that are wrong at each place: the majority is right.

    `faulty`: nodes of which something wrong is known; without a majority the others are right.
    """
    nodes = [log.node for log in logs]
    return [finding for place in places for finding in _judge(place, nodes, faulty)]


def _judge(place: Place, nodes: Sequence[str], faulty: Collection[str]) -> list[Finding]:
    held: dict[str, list[str]] = {node: [] for node in nodes}
    for node, copy in place.copies:
        held[node].append(copy)
    votes = Counter(tuple(sorted(hashes)) for hashes in held.values())
    right, number = votes.most_common(1)[0]
    at, group = place.position, place.group
    sound = {tuple(sorted(hashes)) for node, hashes in held.items() if node not in faulty}
    if number * 2 <= len(nodes) and len(sound) == 1:
        (right,) = sound
    elif number * 2 <= len(nodes):
        text = "the nodes differ and no majority agrees"
        return [Finding("changed", "", group, at, text)]
    wrong = {n: sorted(h) for n, h in held.items() if tuple(sorted(h)) != right}
    return [_named(n, group, at, hashes, list(right)) for n, hashes in wrong.items()]


def _named(node: str, group: str, at: Position, has: list[str], right: list[str]) -> Finding:
    if not has:
        return Finding("lost", node, group, at, "a record that the other nodes have is not there")
    if not right:
        return Finding("extra", node, group, at, "a record that no other node has")
    if len(has) > len(right):
        return Finding("duplicated", node, group, at, f"a record is there {len(has)} times")
    return Finding("changed", node, group, at, "a record is not the one that the other nodes have")


def _manifest_finding(
    node: str, segment: str, promised: BlockDigest, counted: Halves
) -> list[Finding]:
    if counted == (promised.count, promised.low, promised.high):
        return []
    low = promised.block * BLOCK_INDEXES
    text = (
        f"{segment}, indexes {low} to {low + BLOCK_INDEXES - 1}: the manifest was written for "
        f"{promised.count} records, {counted[0]} are there"
    )
    if counted[0] == promised.count:
        text += " and their hashes differ"
    return [Finding("manifest", node, "", None, text)]

"""How many members support each protocol, updated by events instead of counted anew.

A join is refused unless some protocol is supported by all members (K-I1); looking at each of 10,000
members for each of 10,000 joins would take minutes. The counts are leader-local and derived:
dropped when unsure, counted again when next asked for. Also the vote for a protocol (K-D11).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import TypeAlias

from holdfast.coordinator.classic.state import ClassicGroup, Member
from holdfast.coordinator.model.events import Event
from holdfast.coordinator.model.member_profile import Protocol
from holdfast.coordinator.model.membership import UPDATED, line_of
from holdfast.coordinator.model.volatile import Support
from holdfast.coordinator.structures.pmap import PMap

Protocols: TypeAlias = tuple[Protocol, ...]


def after(counts: Support | None, before: ClassicGroup | None, event: Event) -> Support | None:
    """Return the counts after `event` changed the group `before`; None: count them anew."""
    if counts is None or before is None:
        return None
    line = line_of(event)
    if not line.kind:
        return counts
    dropped = line.named(event) if line.kind == UPDATED else line.went(event)
    old = [before.body.members[member_id].profile.protocols for member_id in dropped]
    new = line.protocols(event)
    return _drop(counts, old) if new is None else _swap(counts, old, new)


def count(members: Iterable[Member]) -> Support:
    """Count all members' protocols."""
    names: Counter[str] = Counter()
    size = 0
    for member in members:
        names.update(_names(member.profile.protocols))
        size += protocols_size(member.profile.protocols)
    return Support(PMap(names), size)


def protocols_size(protocols: Protocols) -> int:
    """Return the bytes that a member sends as protocol names and metadata."""
    return sum(len(protocol.name) + len(protocol.metadata) for protocol in protocols)


def in_common(counts: Support, protocols: Protocols, members: int) -> bool:
    """Return whether one of these protocols is supported by all of so many members (K-I1)."""
    return any(counts.names.get(protocol.name, 0) == members for protocol in protocols)


def same_names(one: Protocols, other: Protocols) -> bool:
    """Return whether two lists name the same protocols in the same order: no vote can change."""
    return one is other or [p.name for p in one] == [p.name for p in other]


def vote(members: Collection[Member], counts: Support) -> str:
    """Choose the protocol of the next generation (K-D11).

    Candidates are supported by all members, each member votes for its first candidate, most votes
    win, and the name breaks a tie.
    """
    candidates = {name for name, supporters in counts.names.items() if supporters == len(members)}
    votes = Counter(
        next((p.name for p in member.profile.protocols if p.name in candidates), "")
        for member in members
    )
    return min(votes, key=lambda name: (-votes[name], name))


def _names(protocols: Protocols) -> set[str]:
    return {protocol.name for protocol in protocols}


def _add(counts: Support, protocols: Protocols, by: int) -> Support:
    names = counts.names
    for name in _names(protocols):
        names = names.set(name, names.get(name, 0) + by)
    return Support(names, counts.size + by * protocols_size(protocols))


def _swap(counts: Support, old: list[Protocols], new: Protocols) -> Support:
    return counts if old == [new] else _add(_drop(counts, old), new, +1)


def _drop(counts: Support, gone: Iterable[Protocols]) -> Support:
    for protocols in gone:
        counts = _add(counts, protocols, -1)
    return counts

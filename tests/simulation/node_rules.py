"""INV-16: what the nodes of a cluster know of each other while they come and go (S25). Pure.

Judged by the whole history: each node tells of each committed membership when it learns of it. That
removed nodes end is judged where the cluster heals (world.py).
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from holdfast.chaos.history.happenings import Began, NodesChanged, Role

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.chaos.history.happenings import Happening


class Found(NamedTuple):
    """A rule that was broken: when, and how."""

    at_us: int
    what: str


def broken_rules(history: Sequence[Happening]) -> list[Found]:
    """Everything that contradicts INV-16."""
    told = [each for each in history if isinstance(each, NodesChanged)]
    if not told:
        return []
    return [*_differing(told), *_steps(_beginning(history), told), *_led_after_removal(history)]


def _beginning(history: Sequence[Happening]) -> NodesChanged:
    began = history[0]
    nodes = began.nodes if isinstance(began, Began) else ()
    return NodesChanged(0, "", 0, 0, tuple(sorted(nodes)), (), ())


def _differing(told: Sequence[NodesChanged]) -> Iterator[Found]:
    """Nodes that differ about one entry."""
    known: dict[int, NodesChanged] = {}
    for each in told:
        first = known.setdefault(each.entry, each)
        if first[4:] != each[4:]:
            what = f"{each.node} has {each[4:]} as entry {each.entry}, {first.node} {first[4:]}"
            yield Found(each.at_us, what)


def _steps(beginning: NodesChanged, told: Sequence[NodesChanged]) -> Iterator[Found]:
    """Committed changes that were more than one at a time: majorities might not meet."""
    known = {each.entry: each for each in reversed(told)}
    for before, then in pairwise([beginning, *(known[entry] for entry in sorted(known))]):
        if not _is_one_change(before, then):
            what = f"from {before[4:]} to {then[4:]} at entry {then.entry} is not one change"
            yield Found(then.at_us, what)


def _is_one_change(before: NodesChanged, then: NodesChanged) -> bool:
    """A new learner, a learner that votes, or one of them gone for good."""
    had, has = {*before.voters, *before.learners}, {*then.voters, *then.learners}
    came, went, gone = has - had, had - has, {*then.removed} - {*before.removed}
    voters = {*then.voters} ^ {*before.voters}
    if came & {*then.removed} or not {*before.removed} <= {*then.removed}:
        return False
    if came:
        return len(came) == 1 and came <= {*then.learners} and not voters and not gone
    if went:
        return len(went) == 1 and went == gone and voters <= went
    return len(voters) == 1 and voters <= {*before.learners} and not gone


def _led_after_removal(history: Sequence[Happening]) -> Iterator[Found]:
    """Nodes that were elected although a majority knew them as removed."""
    removed: dict[str, int] = {}
    for each in history:
        if isinstance(each, NodesChanged):
            for name in each.removed:
                removed.setdefault(name, each.term)
        elif isinstance(each, Role) and each.role == "leader":
            since = removed.get(each.node)
            if since is not None and each.term > since > 0:
                what = f"{each.node} leads term {each.term}; it was removed in term {since}"
                yield Found(each.at_us, what)

"""Compare SQL, fold and live state at places of a log: three ways to one state, or a find.

By keys and values: SQL with `evolve`. By chain and digest: `evolve`, as a plain loop and as a
verification folds, with what nodes told of themselves while they ran.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

from agreement.folding import Folded, entries, folded_at, verified_at
from agreement.places import Place
from agreement.views import Views
from holdfast.replay.read.anchor_files import Anchor
from holdfast.replay.read.node_logs import NodeLog
from holdfast.replay.verify.anchor_marks import Mark, Reached
from holdfast.storage.codec.state_image import digest_of

SHOWN_MAX: Final = 3
"""Keys that are told of a place; the first is the one to look at."""


class Point(NamedTuple):
    """What a place came to."""

    place: Place
    records: int
    """Up to there."""
    keys: int
    """Of the state by SQL."""
    reached: dict[Mark, Reached]
    """By the plain loop: chain and digest, at each log time that is told."""
    differences: tuple[str, ...]

    def __str__(self) -> str:
        """Format it as lines for people."""
        digest = next(iter(self.reached.values())).digest
        head = f"index {self.place.index:>9,}  {self.records:>9,} records  {self.keys:>9,} keys"
        live = f" = live ({len(self.place.told)} told)" if self.place.told else ", nothing told"
        verdict = "DIFFERENT" if self.differences else f"SQL = fold{live}"
        lines = [f"{head}  {digest:016x}  {verdict}", *(f"  - {d}" for d in self.differences)]
        return "\n".join(lines)


def compare(
    log: NodeLog, places: Sequence[Place], folder: Path, said: Callable[[Point], None]
) -> list[str]:
    """Compare at all places, which are in order; `said` hears of each. Return what differs.

    `folder`: where DuckDB writes what memory does not hold. Raises WrongUse for a log that SQL
    cannot compute the state of.
    """
    points = []
    with closing(Views(log, folder)) as views:
        for place, fold in zip(places, folded_at(log, [p.index for p in places]), strict=True):
            points.append(_point(place, fold, views))
            said(points[-1])
    by_loop = {mark: it for point in points for mark, it in point.reached.items()}
    verified = verified_at(log, sorted(by_loop))
    found = [difference for point in points for difference in point.differences]
    found += _as_verified(by_loop, verified.reached)
    return found + verified.findings


def _point(place: Place, fold: Folded, views: Views) -> Point:
    keys = views.compute(place.index)
    count, first = views.differing(entries(fold.state), SHOWN_MAX)
    differing = [str(each) for each in first]
    differing += [f"and {count - len(first)} keys more"] if count > len(first) else []
    reached = {mark: _reached(fold, mark) for mark in _marks(place, fold)}
    live = [text for told in place.told for text in _against(told, reached[_mark(told)])]
    return Point(place, fold.records, keys, reached, (*differing, *live))


def _marks(place: Place, fold: Folded) -> Iterator[Mark]:
    """Yield the log times at which the digest is wanted: those that are told, or the records'."""
    yield from map(_mark, place.told)
    if not place.told:
        yield Mark(place.index, fold.state.log_time_ms)


def _mark(told: Anchor) -> Mark:
    return Mark(told.index, told.log_time_ms)


def _reached(fold: Folded, mark: Mark) -> Reached:
    """Return chain and digest. Entries without a record move index and log time alone."""
    state = fold.state._replace(applied_index=mark.index, log_time_ms=mark.log_time_ms)
    return Reached(fold.last, fold.chain, digest_of(state))


def _against(told: Anchor, here: Reached) -> Iterator[str]:
    if told.chain != here.chain:
        yield f"{told} tells the chain {told.chain.hex()[:16]}, evolve's is {here.chain.hex()[:16]}"
    if told.digest != here.digest:
        yield f"{told} tells the digest {told.digest:016x}, evolve's is {here.digest:016x}"


def _as_verified(by_loop: dict[Mark, Reached], verified: dict[Mark, Reached]) -> Iterator[str]:
    """Tell where the fold of a verification leads elsewhere."""
    for mark, here in by_loop.items():
        if verified[mark] != here:
            yield f"at {mark.index} a verification reaches {verified[mark]}, and the loop {here}"

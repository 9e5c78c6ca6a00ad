"""INV-6: replay equals live (S3, S6). Equal digests at equal indexes, however a node got there.

Digests of all nodes are compared, those after a restart, an install and a replay among them. Where
the history kept the records' bytes from the first one on, the log is folded once more, away from
any node, and its digest compared as well.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from holdfast.chaos.checkers.verdict import Verdict, Violation
from holdfast.chaos.evidence.log_view import records_of
from holdfast.chaos.history.happenings import Applied, Happening, Recorded
from holdfast.chaos.history.records import record_of
from holdfast.coordinator.kernel.apply import replay
from holdfast.coordinator.model.errors import InvariantBroken
from holdfast.coordinator.model.state import State
from holdfast.storage.codec.event_codec import CHAIN_START, CodecError, chain_hash
from holdfast.storage.codec.state_image import Digest

INVARIANT: Final = "I6"
_HEAD: Final = 2 * len(CHAIN_START)
"""Digits of a chain's head."""


def check(history: Sequence[Happening]) -> Verdict:
    """Find indexes with different digests."""
    seen: dict[int, list[Applied]] = defaultdict(list)
    for happening in history:
        if isinstance(happening, Applied):
            seen[happening.index].append(happening)
    compared = [each for each in seen.values() if len(each) > 1]
    refold = _Refold(records_of(history))
    found = [violation for each in compared for violation in _equal(each)]
    found += refold.judge(seen)
    counts = {
        "indexes compared": len(compared),
        "digests folded again": refold.compared,
    }
    return Verdict(counts, found, refold.undecided)


def _equal(at_one_index: Sequence[Applied]) -> Iterator[Violation]:
    first = at_one_index[0]
    for other in at_one_index[1:]:
        if other.digest != first.digest:
            what = (
                f"at index {first.index} {_name(first)} has digest {first.digest[:16]}, "
                f"{_name(other)} has {other.digest[:16]}"
            )
            yield Violation(INVARIANT, other.at_us, what)


def _name(applied: Applied) -> str:
    return f"{applied.node} ({applied.via})"


class _Point(NamedTuple):
    """The fold at an index: the state, and the head of the chain over all records."""

    state: State
    head: bytes


class _Refold:
    """Folds the log once more and compares digests."""

    def __init__(self, records: Sequence[Recorded]) -> None:
        self._records = records
        self._digest = Digest()
        self.compared = 0
        self.undecided: list[str] = []

    def judge(self, seen: dict[int, list[Applied]]) -> list[Violation]:
        """Compare what nodes said at each index with the fold up to it."""
        if not self._whole():
            return []
        try:
            return list(self._compare(seen))
        except InvariantBroken as error:
            what = f"the log cannot be folded: {error}"
            return [Violation(INVARIANT, self._records[-1].at_us, what)]
        except (CodecError, ValueError) as error:
            self.undecided.append(f"the log was not folded again: {error}")
            return []

    def _whole(self) -> bool:
        """Return whether records begin with the cluster's first one and all have their bytes."""
        if not self._records or self._records[0].kind != "ClusterFormed":
            return False
        return all(record.payload for record in self._records)

    def _compare(self, seen: dict[int, list[Applied]]) -> Iterator[Violation]:
        at = _Point(State(), CHAIN_START)
        reached = 0
        for index in sorted(seen):
            if index > self._records[-1].index:
                return  # what nodes applied after the last record that the history has
            while reached < len(self._records) and self._records[reached].index <= index:
                at = _step(at, self._records[reached])
                reached += 1
            total = self._digest.advance(at.state._replace(applied_index=index))
            expected = (total.to_bytes(8, "big") + at.head).hex()
            for applied in seen[index]:
                self.compared += 1
                # A node may publish the chain's head alone, which is what the digest ends with.
                if len(applied.digest) < _HEAD or not expected.endswith(applied.digest):
                    what = (
                        f"at index {index} {_name(applied)} has digest {applied.digest[:16]}; "
                        f"folded from the log it is {expected[:16]}"
                    )
                    yield Violation(INVARIANT, applied.at_us, what)


def _step(at: _Point, recorded: Recorded) -> _Point:
    payload = bytes.fromhex(recorded.payload)
    return _Point(replay(at.state, (record_of(recorded),)), chain_hash(at.head, payload))

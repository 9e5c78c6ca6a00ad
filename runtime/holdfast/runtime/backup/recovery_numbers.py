"""Choose the recovery number of a restore or a recovery: none may be used twice (S13, ADR 45).

A backup, or the disk of a survivor, knows the numbers before it. Which other restores there were,
only the operator can say: by the highest number, or by the highest fencing token that a store has
seen, since the number is a token's upper part. Knows numbers; reads nothing.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from holdfast.coordinator.model.ids import RECOVERY_NUMBER_MAX

_INDEX_BITS: Final = 48
"""Of a fencing token; what is above them is the recovery number."""


class NumberRefused(Exception):
    """A recovery number cannot be used. The text says why, and what to give, as one sentence."""


class Wanted(NamedTuple):
    """What the operator says; at most one of the two."""

    number: int | None = None
    above_token: int | None = None
    """The highest fencing token that any store has seen."""

    @property
    def said(self) -> bool:
        """Whether the operator has said anything."""
        return self != Wanted()


def next_above(last: int, wanted: Wanted) -> int:
    """Return the number to go on with, by default the one after `last`. Raises NumberRefused.

    `last`: the highest that is known where the cluster goes on from.
    """
    chosen = last + 1
    if wanted.above_token is not None:
        chosen = max(chosen, (wanted.above_token >> _INDEX_BITS) + 1)
    if wanted.number is not None:
        chosen = wanted.number
    if chosen <= last:
        raise NumberRefused(
            f"recovery number {chosen} is not above {last}, which was used before: tokens would be "
            f"given out twice. Give a higher one, {last + 1} or more (--recovery-number)"
        )
    if chosen > RECOVERY_NUMBER_MAX:
        raise NumberRefused(
            f"a recovery number is at most {RECOVERY_NUMBER_MAX}, and {chosen} is more. Give the "
            "highest that the cluster ever had, plus one"
        )
    return chosen

"""The checkers by their invariants. Each file beside this one is one of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from holdfast.chaos.checkers import (
    conservation,
    exactly_once,
    exclusive_ownership,
    expiry,
    fencing,
    linearizability,
    movement,
    nothing_lost,
    one_binding,
    only_growing,
    replay_is_live,
    waiting,
    watches,
)
from holdfast.chaos.checkers.verdict import Checker

ALL: Final[Mapping[str, Checker]] = {
    "I1": exclusive_ownership.check,
    "I2": nothing_lost.check,
    "I3": only_growing.check,
    "I4": one_binding.check,
    "I5": fencing.check,
    "I6": replay_is_live.check,
    "I7": linearizability.check,
    "I8": conservation.check,
    "I9": movement.check,
    "I10": watches.check,
    "I11": exactly_once.check,
    "I12": expiry.check,
    "I17": waiting.check,
}
"""Every checker, by its invariant."""

TITLES: Final[Mapping[str, str]] = {
    "I1": "exclusive ownership",
    "I2": "nothing acknowledged is lost",
    "I3": "numbers only grow",
    "I4": "one binding per instance",
    "I5": "fencing is total",
    "I6": "replay equals live",
    "I7": "linearizable",
    "I8": "every partition owned once",
    "I9": "nothing moves without need",
    "I10": "watches tell the log",
    "I11": "exactly once per request",
    "I12": "expiry neither early nor never",
    "I17": "nothing waits for ever",
}
"""What each invariant is, in a few words."""

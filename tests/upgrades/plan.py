"""Which node becomes which version, and in what order: drawn from a seed before anything runs.

A round begins and ends with all nodes of one version. Only one that ends the upgrade changes the
cluster for good; the next round then has a new one. Pure.
"""

from __future__ import annotations

from enum import StrEnum
from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class Kind(StrEnum):
    """How far a round goes."""

    BACK = "all up, all back"
    PART = "some up, and back"
    END = "all up, and ended"


WEIGHTS: Final = {Kind.BACK: 3, Kind.PART: 2, Kind.END: 1}
"""An end is rarer: it costs a cluster."""


class Step(NamedTuple):
    """A node is stopped, and started as the next version (`newer`) or as this one."""

    node: str
    newer: bool


class Round(NamedTuple):
    """The steps of a round, in order."""

    number: int
    kind: Kind
    steps: tuple[Step, ...]


def plan(seed: int, rounds: int, nodes: Sequence[str]) -> list[Round]:
    """Draw so many rounds; the same seed draws the same ones."""
    random = Random(f"{seed} upgrades")
    kinds = random.choices(list(WEIGHTS), list(WEIGHTS.values()), k=rounds)
    return [
        Round(number, kind, _steps(random, kind, nodes)) for number, kind in enumerate(kinds, 1)
    ]


def _steps(random: Random, kind: Kind, nodes: Sequence[str]) -> tuple[Step, ...]:
    some = random.randint(1, len(nodes) - 1) if kind is Kind.PART else len(nodes)
    up = random.sample(nodes, some)
    back = [] if kind is Kind.END else random.sample(up, some)
    return (*(Step(node, newer=True) for node in up), *(Step(node, newer=False) for node in back))

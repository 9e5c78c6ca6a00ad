"""What groups there are in a seed, and what members each has: of either protocol, or of both.

A seed has three groups of different kinds, drawn from six, so that a run gets no longer with more
kinds. Knows no process and no node.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Final

from holdfast.client._translate.member_settings import DEFAULT_ASSIGNORS
from holdfast.coordinator.assignors import CooperativeAssignor
from simulation.schedule import US

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.coordinator.assignors import Assignor

CLASSIC: Final = "classic"
COOPERATIVE: Final = "cooperative"
"""Of the classic protocol; its members keep over a rebalance what does not move (KIP-429)."""
STATIC: Final = "consumer-static"
DYNAMIC: Final = "consumer-dynamic"
"""Of the heartbeat protocol: all members have an instance id, or none has."""
COMPUTING: Final = "consumer-computing"
"""Of the heartbeat protocol; its members run an assignor of their own (KIP-848)."""
MIXED: Final = "mixed"
"""Two slots of each protocol. It may become a classic group now and then, as members go."""
CONVERTING: Final = "converting"
"""All slots are rolled from the classic protocol to the other one, and back, under load."""

_DRAWN: Final = (CLASSIC, COOPERATIVE, STATIC, DYNAMIC, MIXED, CONVERTING)
KINDS: Final = (*_DRAWN, COMPUTING)
OF_OLDER: Final = (CLASSIC, COOPERATIVE, MIXED, CONVERTING)
"""Kinds for nodes of two versions, the older of which have not the heartbeat protocol: what asks
for it is refused until the upgrade has ended, and the group goes on without."""
OLD: Final = (CLASSIC, CLASSIC, COOPERATIVE)
"""Groups without the heartbeat protocol."""
GROUPS: Final = 3
ASSIGNORS: Final = ("", "", "uniform", "range")
BESIDE: Final = 0.3
"""How likely it is that targets are computed beside the work of the nodes."""
PAUSES_MS: Final = (500, 1_500, 3_000)
"""The least times between two targets of a group, where there are any (K-P15)."""
PAUSED: Final = 0.4
"""How likely it is that there are."""


def drawn(seed: int, *, mixed_versions: bool) -> tuple[str, ...]:
    """Draw the kinds of a seed's groups."""
    random = Random(f"{seed} populations")
    found = random.sample(OF_OLDER if mixed_versions else _DRAWN, GROUPS)
    whole = [each for each in found if each in {STATIC, DYNAMIC}]
    if whole and random.random() < 0.5:
        found[found.index(whole[0])] = COMPUTING
    return tuple(found)


def computes_beside(seed: int, kinds: Sequence[str]) -> bool:
    """Whether child processes compute all targets of a seed's groups, however small these are.

    Only where a group is of the heartbeat protocol from its beginning to its end.
    """
    whole = bool({STATIC, DYNAMIC} & set(kinds))
    return whole and Random(f"{seed} beside").random() < BESIDE


def pause_ms(seed: int, kinds: Sequence[str]) -> int:
    """Draw the time between two targets of each of a seed's groups at first; 0: none.

    An operator changes it then, now and then. Groups of both protocols wait for targets, too.
    """
    random = Random(f"{seed} pause")
    paused = has_heartbeats(kinds) and random.random() < PAUSED
    return random.choice(PAUSES_MS) if paused else 0


def has_heartbeats(kinds: Sequence[str]) -> bool:
    """Whether members of the heartbeat protocol are among those of these groups."""
    return not set(kinds) <= {CLASSIC, COOPERATIVE}


class Population:
    """The members of one group. What is drawn for one slot changes nothing for another group."""

    def __init__(self, kind: str, seed: int, group: str, fault_s: tuple[float, float]) -> None:
        random = Random(f"{seed} population {group}")
        self.kind = kind
        begins_s, ends_s = fault_s
        span_s = ends_s - begins_s
        first_s = begins_s + span_s * random.uniform(0.10, 0.35)
        second_s = begins_s + span_s * random.uniform(0.50, 0.85)
        self.rolls_us: tuple[int, ...] = ()
        """When its members begin to be rolled to the other protocol."""
        if kind == CONVERTING:
            self.rolls_us = (round(first_s * US), round(second_s * US))
        self.calm_us = round(ends_s * US)
        """From then on there are no faults any more."""
        self.server_assignor = random.choice(ASSIGNORS)
        self.by_pattern = kind == DYNAMIC and random.random() < 0.5
        """Its members want their topic by a regular expression."""
        keeps = kind == COOPERATIVE or (kind != CLASSIC and random.random() < 0.5)
        self.assignors: Sequence[Assignor] = (
            (CooperativeAssignor(),) if keeps else DEFAULT_ASSIGNORS
        )

    def is_static(self, random: Random) -> bool:
        """Whether a slot has an instance id."""
        chance = random.random()
        return {STATIC: True, DYNAMIC: False}.get(self.kind, chance < 0.6)

    def speaks_heartbeats(self, slot: int, now_us: int) -> bool:
        """Whether the process that starts now in a slot, numbered from 1, is of that protocol."""
        if self.kind == MIXED:
            return slot % 2 == 0
        rolled = sum(at_us <= now_us for at_us in self.rolls_us)
        return self.kind in {STATIC, DYNAMIC, COMPUTING} or rolled % 2 == 1

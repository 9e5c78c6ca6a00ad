"""The plan of a run: which cluster, how long, and which kinds of faults in which order.

Starts nothing and touches no cluster.
"""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

from holdfast.chaos import nemesis
from holdfast.chaos.nemesis import Kind, links

_SLOW_EVERY: Final = 3


class Refused(Exception):
    """The run was not begun; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The options of a run."""

    folder: Path  # for the run's files; the run makes it
    seed: int
    cluster: Path | None = None  # None: start one of our own in `folder`
    seconds: float = 60.0  # length of the run, unless `rounds` is given
    rounds: int = 0  # if not 0, the run ends after this many rounds of all kinds
    kinds: tuple[str, ...] = ()  # empty: all that are available
    nodes: int = 3
    workers: int = 2
    arguments: tuple[str, ...] = ()  # further ones for `holdfast cluster start`
    other_groups: bool = False  # run even if the cluster has groups of others
    keep: bool = False  # keep the folder's content even if all is well

    @property
    def length(self) -> str:
        """Format the length of the run for people."""
        if self.rounds:
            return f"{self.rounds} round{'s' * (self.rounds != 1)}"
        return f"{self.seconds:.0f} s of faults"


def new_folder() -> Path:
    """Choose a new path among the temporary files; the folder is not made yet."""
    return Path(tempfile.gettempdir()) / f"holdfast-chaos-{secrets.token_hex(8)}"


def chosen_kinds(plan: Plan) -> tuple[list[Kind], list[Kind]]:
    """Return the kinds to use, and those that are not available here. Raises Refused."""
    unknown = [name for name in plan.kinds if name not in nemesis.BY_NAME]
    if unknown:
        raise Refused(f"there is no kind of fault {unknown[0]!r}; --list names them all")
    lacking = nemesis.missing(proxies=plan.cluster is None)
    wanted = [kind for kind in nemesis.KINDS if not plan.kinds or kind.name in plan.kinds]
    absent = [kind for kind in wanted if set(kind.needs) & set(lacking)]
    found = [kind for kind in wanted if kind not in absent]
    if not found:
        raise Refused(_none_to_be_had(plan, absent, lacking))
    return found, absent


def _none_to_be_had(plan: Plan, absent: Sequence[Kind], lacking: Mapping[str, str]) -> str:
    needs = dict.fromkeys(need for kind in absent for need in kind.needs if need in lacking)
    names = ", ".join(kind.name for kind in absent)
    there = f" --cluster {plan.cluster}" if plan.cluster else ""
    hint = " Leave --cluster out for a cluster that has them." if links.PROXY in needs else ""
    return (
        f"of the kinds asked for, none can be had here: {names}: "
        f"{'; '.join(lacking[need] for need in needs)}.{hint} `holdfast chaos --list{there}` names "
        "the kinds that can be had"
    )


def schedule(kinds: Sequence[Kind], random: Random, rounds: int) -> Iterator[Kind]:
    """Yield rounds of all kinds, each in a random order; `rounds` 0: without end.

    Kinds that start many nodes are in the first round and in each third one after it.
    """
    done = 0
    while not rounds or done < rounds:
        bag = [kind for kind in kinds if done % _SLOW_EVERY == 0 or not kind.slow] or list(kinds)
        random.shuffle(bag)
        yield from bag
        done += 1

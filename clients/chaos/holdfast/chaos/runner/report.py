"""The report of a run: numbers, a table for people, JSON for programs.

Knows no cluster and no checker.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from holdfast.coordinator.model.text import readable

_PERCENTILES = (50, 99)
SHOWN_MAX = 20
"""Findings of one kind that the table shows; the JSON has all."""


@dataclass(slots=True)
class Report:
    """One run. Seconds are of the boot clock."""

    seed: int
    cluster: str
    seconds: float = 0.0
    cut_short: str = ""  # the planned length, if a signal ended the run before; else empty
    faults: Counter[str] = field(default_factory=Counter)
    missing: Mapping[str, str] = field(default_factory=dict)
    left_out: Sequence[str] = ()
    elections: int = 0
    acknowledged: int = 0
    grants: int = 0
    writes: int = 0
    refused_writes: int = 0
    records: int = 0
    segments: int = 0  # that each node has sealed, and that were compared
    boundaries_asked_for: int = 0  # that calls of SealLog have set, by the log
    failovers: dict[str, list[float]] = field(default_factory=dict)
    healings: list[float] = field(default_factory=list)
    checked: dict[str, dict[str, int]] = field(default_factory=dict)  # by checker: what it read
    violations: list[str] = field(default_factory=list)
    undecided: list[str] = field(default_factory=list)
    unjudged: Sequence[str] = ()  # invariants for which the history had nothing
    wrong: list[str] = field(default_factory=list)  # what the run itself saw go wrong
    evidence: str = ""  # the folder of the evidence; empty if it was not kept

    @property
    def passed(self) -> bool:
        """Whether no invariant was violated, and nothing went wrong."""
        return not self.violations and not self.wrong

    @property
    def killed(self) -> list[float]:
        """The seconds of the failovers after a kill -9 of the leader."""
        return [s for kind, found in self.failovers.items() if "kill" in kind for s in found]

    def as_json(self) -> dict[str, Any]:
        """Return everything, with percentiles, as plain data."""
        plain = asdict(self)
        plain["faults"] = dict(sorted(self.faults.items()))
        plain["passed"] = self.passed
        plain["failover_s"] = percentiles(self.killed)
        plain["leader_lost_s"] = {k: percentiles(v) for k, v in sorted(self.failovers.items())}
        plain["healing_s"] = percentiles(self.healings)
        return plain

    def table(self) -> str:
        """Format it as a table for people."""
        lines = [*self._numbers(), "", *self._kinds(), *self._absent(), *self._findings()]
        return "\n".join(map(readable, lines))

    def _numbers(self) -> list[str]:
        rows = (
            ("cluster", self.cluster),
            ("seed", self.seed),
            ("duration", f"{self.seconds:.0f} s{self._left_out()}"),
            ("faults", f"{self.faults.total()} of {len(self.faults)} kinds"),
            ("elections", self.elections),
            ("acknowledged changes", self.acknowledged),
            ("grants of ownership", self.grants),
            ("writes under a token", f"{self.writes}, {self.refused_writes} of them refused"),
            ("records in the log", self.records),
            ("segments of each node", self.segments),
            ("boundaries by a call", self.boundaries_asked_for),
            ("failover after a kill", _spread(self.killed)),
            ("healing", _spread(self.healings)),
            ("violations", len(self.violations) + len(self.wrong)),
        )
        return [f"{name:<22}{value}" for name, value in rows]

    def _left_out(self) -> str:
        return f", CUT SHORT by a signal: asked for were {self.cut_short}" if self.cut_short else ""

    def _kinds(self) -> list[str]:
        names = sorted(self.faults, key=lambda name: (-self.faults[name], name))
        lines = [f"  {self.faults[name]:>5}  {name:<28}{self._without(name)}" for name in names]
        return ["faults by kind", *map(str.rstrip, lines)]

    def _without(self, kind: str) -> str:
        """Format how long the cluster had no leader."""
        found = percentiles(self.failovers.get(kind, ()))
        return (
            f"next change after p50 {found['p50']:.2f}, p99 {found['p99']:.2f} s" if found else ""
        )

    def _absent(self) -> list[str]:
        if not self.left_out:
            return []
        why = [f"  {sentence}" for sentence in self.missing.values()]
        return ["", f"not here: {', '.join(self.left_out)}", *why]

    def _findings(self) -> list[str]:
        lines = []
        for head, found in (
            ("VIOLATIONS", self.violations),
            ("WENT WRONG", self.wrong),
            ("undecided", self.undecided),
        ):
            if found:
                lines += ["", head, *(f"  {each}" for each in found[:SHOWN_MAX])]
                lines += [f"  and {len(found) - SHOWN_MAX} more"] if len(found) > SHOWN_MAX else []
        if self.unjudged:
            lines += ["", f"unjudged, for lack of anything to judge: {', '.join(self.unjudged)}"]
        if self.evidence:
            lines += ["", f"evidence: {self.evidence}"]
        return lines


def percentiles(seconds: Sequence[float]) -> dict[str, float]:
    """Compute percentiles by nearest rank, count and maximum; empty without values."""
    if not seconds:
        return {}
    ranked = sorted(seconds)
    found = {f"p{p}": round(ranked[-(-len(ranked) * p // 100) - 1], 3) for p in _PERCENTILES}
    return {**found, "max": round(ranked[-1], 3), "count": len(ranked)}


def _spread(seconds: Sequence[float]) -> str:
    found = percentiles(seconds)
    if not found:
        return "none measured"
    return (
        f"p50 {found['p50']:.2f} s, p99 {found['p99']:.2f} s, longest {found['max']:.2f} s "
        f"({found['count']:.0f} times)"
    )

"""Totals over seeds, and the file in which runs add up.

One run of many seeds gives one `Totals`; the file has the sum of all runs ever added to it, and how
many there were. Plain JSON, written whole and renamed: a run that is stopped changes nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

FORMAT: Final = 1
US_PER_HOUR: Final = 3_600_000_000


@dataclass(frozen=True, slots=True)
class SeedResult:
    """What is kept of one seed."""

    seed: int
    digest: str
    simulated_us: int
    healed_after_us: int | None
    counts: dict[str, int]
    faults: dict[str, int]
    violations: tuple[tuple[str, int, str], ...]
    cpu_s: float


@dataclass(slots=True)
class Totals:
    """Sums over seeds."""

    seeds: int = 0
    simulated_us: int = 0
    failing: list[int] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)

    def add(self, result: SeedResult) -> None:
        """Count one more seed."""
        self.seeds += 1
        self.simulated_us += result.simulated_us
        self.counts.update(result.counts)
        self.faults.update(result.faults)
        if result.violations:
            self.failing.append(result.seed)

    @property
    def hours(self) -> float:
        """Simulated hours."""
        return self.simulated_us / US_PER_HOUR


def digest_over(results: Iterable[SeedResult]) -> str:
    """One digest for many seeds, whatever order they were run in."""
    lines = sorted(f"{result.seed} {result.digest}" for result in results)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def add_to(path: Path, totals: Totals) -> dict[str, Any]:
    """Add a run to the file; returns what the file says now. Raises ValueError: another format."""
    known = _read(path)
    known["runs"] += 1
    known["seeds"] += totals.seeds
    known["simulated_us"] += totals.simulated_us
    known["failing_seeds"] += totals.failing
    for name, ours in (("counts", totals.counts), ("faults", totals.faults)):
        known[name] = dict(sorted((Counter(known[name]) + ours).items()))
    beside = path.with_suffix(".tmp")
    beside.write_text(json.dumps(known, indent=2) + "\n", encoding="utf-8")
    beside.replace(path)
    return known


def _read(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {
            "format": FORMAT,
            "runs": 0,
            "seeds": 0,
            "simulated_us": 0,
            "failing_seeds": [],
            "counts": {},
            "faults": {},
        }
    known: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if known.get("format") != FORMAT:
        raise ValueError(f"{path} is no ledger of format {FORMAT}; give another --ledger FILE")
    return known

"""Judges a history by every checker, and formats the verdicts as a table.

A checker that had nothing to look at says "nothing to judge", and one that gave up says how often:
neither is a pass. Knows the checkers, and nothing of how a history came about.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from holdfast.chaos.checkers.catalogue import ALL, TITLES
from holdfast.chaos.checkers.verdict import Verdict, Violation
from holdfast.chaos.evidence.calls import flaws
from holdfast.chaos.evidence.log_view import seconds
from holdfast.chaos.evidence.memo import Evidence
from holdfast.chaos.history.happenings import Happening

SHOWN_MAX: Final = 5
"""Violations of one invariant that the table shows; the rest is counted."""


class Unsound(Exception):
    """A history that contradicts itself; its writer must be fixed before it can be judged."""

    def __init__(self, found: Sequence[str]) -> None:
        super().__init__(
            f"The history contradicts itself in {len(found)} places, first: {found[0]}. It cannot "
            "be judged; mend what wrote it."
        )
        self.found = found


class Judgement(NamedTuple):
    """The verdict of every checker, by its invariant."""

    verdicts: Mapping[str, Verdict]

    @property
    def violations(self) -> list[Violation]:
        """All violations, in order of time."""
        found = [each for verdict in self.verdicts.values() for each in verdict.violations]
        return sorted(found, key=lambda violation: violation.at_us)

    @property
    def undecided(self) -> list[str]:
        """Sentences about everything that was given up within its bounds."""
        return [each for verdict in self.verdicts.values() for each in verdict.undecided]

    @property
    def empty(self) -> list[str]:
        """The invariants for which there was nothing to judge."""
        return [name for name, verdict in self.verdicts.items() if verdict.empty]

    @property
    def held(self) -> bool:
        """Whether there are no violations and nothing is undecided."""
        return not self.violations and not self.undecided

    def table(self) -> str:
        """Format for people: a line for each invariant, then the violations."""
        lines = [_line(name, verdict) for name, verdict in self.verdicts.items()]
        for name, verdict in self.verdicts.items():
            lines += _details(name, verdict)
        return "\n".join(lines)


def judge(history: Sequence[Happening], only: Collection[str] | None = None) -> Judgement:
    """Judge by all invariants, or by those named. Raises Unsound, and KeyError for no invariant."""
    if found := flaws(history):
        raise Unsound(found)
    if unknown := sorted({*(only or ())} - ALL.keys()):
        raise KeyError(f"{unknown[0]} is no invariant with a checker; there are {', '.join(ALL)}")
    names = [name for name in ALL if only is None or name in only]
    evidence = Evidence(history)
    return Judgement({name: ALL[name](evidence) for name in names})


def _line(name: str, verdict: Verdict) -> str:
    counts = ", ".join(f"{count} {what}" for what, count in verdict.checked.items())
    return f"{name:<4} {TITLES[name]:<31} {_outcome(verdict):<18} {counts}"


def _outcome(verdict: Verdict) -> str:
    if verdict.violations:
        return f"BROKEN, {len(verdict.violations)}×"
    if verdict.undecided:
        return f"undecided, {len(verdict.undecided)}×"
    return "nothing to judge" if verdict.empty else "held"


def _details(name: str, verdict: Verdict) -> list[str]:
    shown = sorted(verdict.violations, key=lambda violation: violation.at_us)[:SHOWN_MAX]
    lines = [f"{name} at {seconds(each.at_us)}: {each.what}" for each in shown]
    if len(verdict.violations) > SHOWN_MAX:
        lines.append(f"{name}: and {len(verdict.violations) - SHOWN_MAX} more")
    return [*lines, *(f"{name} undecided: {each}" for each in verdict.undecided[:SHOWN_MAX])]

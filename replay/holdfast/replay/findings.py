"""What a verification found, as values, and as a table for people. Knows no Spark."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, NamedTuple

from holdfast.coordinator.model.ids import Position
from holdfast.coordinator.model.text import readable


class WrongUse(ValueError):
    """What was given cannot be verified as it was given; the sentence says what to give."""


class CannotCheck(Exception):
    """The surroundings failed, not the log: nothing was proven. The sentence says what to do."""


def place_of(position: Position) -> str:
    """Write a position as people read it."""
    return f"{position.index}.{position.ordinal}"


IN_FULL: Final = "verify with --full, which reads everything and writes a new one"
"""What helps where a run's checkpoint cannot be gone on from."""


def time_of(wall_ms: int) -> str:
    """Write a wall time as people read it, in UTC."""
    return f"{datetime.fromtimestamp(wall_ms / 1000, UTC):%Y-%m-%d %H:%M} UTC"


def log_time_of(log_time_ms: int) -> str:
    """Write a log time in the form in which places are given, in UTC."""
    try:
        moment = datetime.fromtimestamp(log_time_ms // 1000, UTC)
    except (OverflowError, ValueError, OSError):  # a forged record says any number
        return f"{log_time_ms} ms"
    return f"{moment.replace(tzinfo=None).isoformat()}.{log_time_ms % 1000:03d}Z"


class Trusted(NamedTuple):
    """What a verification has not read again, since an earlier one had verified it."""

    last: Position
    """Where that ended."""
    verified_ms: int
    """When that ended, in wall time."""
    files: int
    records: int
    read_ms: int
    """When the oldest of these files was read last."""

    def __str__(self) -> str:
        """Format it as one line for people."""
        return (
            f"not read again: {self.files} files with {self.records} records up to "
            f"{place_of(self.last)}, verified on {time_of(self.verified_ms)}; the oldest reading "
            f"is of {time_of(self.read_ms)}. --full reads all of them"
        )


class Finding(NamedTuple):
    """Something that is wrong."""

    kind: str
    """A word that programs may compare, one of those in docs/replay.md."""
    node: str  # "" if no single node is at fault
    group: str
    position: Position | None
    text: str
    file: str = ""  # or the folder of a segment; "" if no single one is at fault

    def __str__(self) -> str:
        """Format it as one line for people."""
        place = f"at {place_of(self.position)}" if self.position else ""
        parts = [
            f"node {self.node}" if self.node else "",
            f"group {self.group!r}" if self.group else "",
            place,
            self.file if self.file not in self.text else "",
        ]
        return f"{self.kind}: {self.text} ({', '.join(part for part in parts if part) or 'log'})"


@dataclass(frozen=True, slots=True)
class Check:
    """One check: what it covered, what it found, and how long it took."""

    name: str
    covered: str
    findings: tuple[Finding, ...] = ()
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        """Whether nothing wrong was found."""
        return not self.findings


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome of a verification."""

    checks: tuple[Check, ...]
    last: Position | None = None
    records: int = 0
    digest: int | None = None
    """Digest of the replayed state at `last` (`codec.state_image`); None if it was not folded."""
    group_digests: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()  # what was not covered, without being wrong
    cut: Position | None = None
    """A checkpoint stands for the records up to here, which retention has deleted (S24)."""
    trusted: Trusted | None = None
    """What was left to an earlier run; None: everything was read."""
    kept: Position | None = None
    """Up to where a checkpoint was left for the next run."""
    unfinished: str = ""
    """Why not all checks were made, if something was found before that; "": all were."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings, those of the cheapest check first."""
        return tuple(finding for check in self.checks for finding in check.findings)

    @property
    def passed(self) -> bool:
        """Whether something was checked and nothing was found."""
        read = self.records > 0 or self.trusted is not None
        return bool(self.checks) and read and not self.findings and not self.unfinished

    def table(self) -> str:
        """Format the outcome for people: a line a check, then the findings."""
        width = max([len(check.name) for check in self.checks], default=0)
        lines = [
            f"{'ok    ' if check.passed else 'FAILED'}  {check.name:<{width}}  {check.covered}"
            f"  ({check.seconds:.1f} s)"
            for check in self.checks
        ]
        lines += [f"  - {finding}" for finding in self.findings]
        lines += [f"note: {note}" for note in self.notes]
        lines += [str(self.trusted)] if self.trusted else []
        lines += [f"checkpoint kept up to {place_of(self.kept)}"] if self.kept else []
        lines += [f"not finished: {self.unfinished}"] if self.unfinished else []
        last = place_of(self.last) if self.last else "nothing"
        digest = "none" if self.digest is None else f"{self.digest:016x}"
        verdict = "verified" if self.passed else "NOT verified"
        behind = f" behind the checkpoint at {place_of(self.cut)}" if self.cut else ""
        lines.append(
            f"{verdict}: {self.records} records{behind} up to {last}, state digest {digest}"
        )
        return "\n".join(map(readable, lines))

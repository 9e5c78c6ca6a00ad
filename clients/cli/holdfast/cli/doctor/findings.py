"""What `holdfast doctor` tells: a finding says what it found, why that matters, and what to do."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

Severity = Literal["error", "warning"]

ERROR: Final = "error"
"""The cluster does not serve, is about to stop, or promises what it cannot keep."""
WARNING: Final = "warning"
"""It serves, with less room for the next failure than it should have."""


class Finding(NamedTuple):
    """One thing that is not as it should be."""

    check: str
    """The name of the check, as `clocks`."""
    severity: Severity
    place: str
    """The node that it is about; empty: the cluster."""
    what: str
    why: str
    do: str


CHECKS: Final = {
    "quorum": "nodes that answer, their leader, and how far each is behind",
    "versions": "one version and one level, and no upgrade left open",
    "rights": "whether every node tells the caller of its machine",
    "clocks": "wall clocks of the nodes",
    "fsync": "how fast the disk syncs",
    "memory": "memory of the node and of its machine",
    "disk": "free space, when it is used up, and what kind of file system it is",
    "certificates": "when they expire, whom they name, who signed them",
    "settings": "settings that contradict each other or the machine, and its limits",
}
"""Every check, in the order in which they are told."""

OF_VIEWS: Final = frozenset({"quorum", "versions", "rights"})
"""Checks of what nodes tell to everybody."""
OF_MACHINES: Final = frozenset({"fsync", "memory", "disk", "certificates", "settings"})
"""Checks of a machine. A node tells of its own to readers of the cluster alone."""


class Report(NamedTuple):
    """What was found, and what was looked at at all."""

    findings: list[Finding]
    checks: frozenset[str]
    """Of `CHECKS`: those that could be made."""

    @property
    def checked(self) -> list[str]:
        """The checks that could be made, in their order."""
        return [check for check in CHECKS if check in self.checks]


def in_order(findings: list[Finding]) -> list[Finding]:
    """Sort findings: errors first, then by the order of the checks."""
    names = list(CHECKS)
    return sorted(findings, key=lambda each: (each.severity, names.index(each.check), each.place))

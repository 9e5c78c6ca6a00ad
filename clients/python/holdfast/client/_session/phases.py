"""Where a member session stands, and where the user wants it to go.

NEW ── start ──► FINDING ──► JOINING ──► SYNCING ──► STABLE ──┐
                                ▲            │                │ rebalance
                                └────────────┴── REVOKING ◄───┘
leave, restart: ──► (REVOKING) ──► LEAVING ──► STOPPED         fenced, fatal: ──► STOPPED

Names only: membership.py has the moves, session.py what each input does in each phase.
"""

from __future__ import annotations

import enum


class Phase(enum.Enum):
    """Where the session stands."""

    NEW = enum.auto()
    """Made, and not started."""
    FINDING = enum.auto()
    """Waits for the first answer of any node, which brings the log time."""
    JOINING = enum.auto()
    """Waits for the answer to a join, which the group may park for a whole rebalance."""
    SYNCING = enum.auto()
    """In a generation; waits for its assignment, as the group leader also for partition counts."""
    STABLE = enum.auto()
    """Has its assignment and sends heartbeats."""
    REVOKING = enum.auto()
    """Waits until the user has let go of partitions; then joins or leaves."""
    LEAVING = enum.auto()
    """Waits for the answer to its leave or release; owns nothing."""
    STOPPED = enum.auto()
    """Over. No input changes anything any more."""


class Goal(enum.Enum):
    """What the user wants of the session."""

    STAY = enum.auto()
    LEAVE = enum.auto()
    """Leave the group for good."""
    RESTART = enum.auto()
    """Release the instance id's place and keep it (S12)."""


IN_GROUP = frozenset({Phase.JOINING, Phase.SYNCING, Phase.STABLE, Phase.REVOKING})

"""Where a member session stands, and where the user wants it to go.

NEW ── start ──► FINDING ──► JOINING ──► SYNCING ──► STABLE ──┐
                                ▲            │                │ rebalance
                                └────────────┴── REVOKING ◄───┘
leave, restart: ──► (REVOKING) ──► LEAVING ──► STOPPED         fenced, fatal: ──► STOPPED
"""

from __future__ import annotations

import enum


class Phase(enum.Enum):
    """Where the session stands."""

    NEW = enum.auto()
    FINDING = enum.auto()
    JOINING = enum.auto()
    SYNCING = enum.auto()
    STABLE = enum.auto()
    REVOKING = enum.auto()
    LEAVING = enum.auto()
    STOPPED = enum.auto()


class Goal(enum.Enum):
    """What the user wants of the session."""

    STAY = enum.auto()
    LEAVE = enum.auto()
    RESTART = enum.auto()


IN_GROUP = frozenset({Phase.JOINING, Phase.SYNCING, Phase.STABLE, Phase.REVOKING})

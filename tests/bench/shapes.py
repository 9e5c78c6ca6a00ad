"""Shapes of calls: what a row's calls have in common with calls to the bare gRPC server.

A figure of a row and one of `bare` that have the same shape can be set against each other.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from bench.figures import Figure

BARE_ROW: Final = "bare"


class Shape(StrEnum):
    """Kinds of calls; "many" are as many as the row has callers."""

    COMMIT_ALONE = "unary commit, one caller"
    COMMITS = "unary commits, many callers"
    COMMIT_STREAM_ALONE = "commit on a stream, one in flight"
    COMMIT_STREAM = "commits on a stream, many in flight"
    LISTS_OF_16 = "commits on one Session, 64 in flight, lists of 16"
    LISTS_OF_64 = "commits on one Session, 256 in flight, lists of 64"
    LARGE_COMMITS = "unary commits of 50 partitions, 16 callers"
    HEARTBEAT_ALONE = "unary heartbeat, one caller"
    HEARTBEATS = "unary heartbeats, many callers"
    HEARTBEAT_STREAMS = "heartbeats of 100 members a message, 4 streams"
    PAIRS = "unary join and sync, many callers"
    SESSION_PAIRS = "join and sync on Session streams, many callers"
    RESTART = "a new connection, join, sync, heartbeat, one after another"


def floors(figures: Iterable[Figure]) -> dict[str, float]:
    """Sum of processor time (µs) for one operation of each shape against the bare server."""
    return {
        figure.shape: figure.cost.sum_us
        for figure in figures
        if figure.row == BARE_ROW and figure.shape and figure.cost
    }


def to_floor(figure: Figure, floors: dict[str, float]) -> float | None:
    """How many times as much processor time an operation took as its shape against `bare`.

    None without a cost, or if that shape was not measured in the same run.
    """
    floor = floors.get(figure.shape)
    if figure.cost is None or not floor:
        return None
    return figure.cost.sum_us / floor

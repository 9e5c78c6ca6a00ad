"""Places in a log and partitions, as people type them. Asks no node and reads no log."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from holdfast.cli.options import INT32_MAX, INT64_MAX


def place_at(text: str, option: str) -> tuple[tuple[int, int] | None, int | None]:
    """Read a position, as index and ordinal, or a log time; the other one is None."""
    index, dot, ordinal = text.partition(".")
    if index.isdecimal() and (ordinal.isdecimal() or not dot):
        # Without an ordinal: after the whole entry.
        place = int(index), int(ordinal) if ordinal else (1 << 31) - 1
        if place[0] <= INT64_MAX and place[1] <= INT32_MAX:
            return place, None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is no place: write INDEX, INDEX.ORDINAL, or a time as 2026-01-31T08:15:00Z",
            param_hint=f"'{option}'",
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return None, round(moment.timestamp() * 1000)


def partition_of(text: str) -> tuple[str, int]:
    """Read a topic and the number of a partition; a topic's name may have a slash."""
    topic, slash, number = text.rpartition("/")
    if topic and slash and number.isdecimal() and int(number) <= INT32_MAX:
        return topic, int(number)
    raise click.BadParameter(
        f"{text!r} is no partition: write TOPIC/NUMBER, as in orders/7", param_hint="'--partition'"
    )

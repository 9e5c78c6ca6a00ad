"""A history of a cluster that never ran, on this disk: what `holdfast replay generate` does.

Says how far a long run has come, and in one sentence why there is no history. Asks no node; loaded
when the command runs: it needs the [server] extra, whose writer of segments it uses, and no Spark.
"""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING, Any, Final

import click

from holdfast.cli.ending import fail, print_json
from holdfast.cli.render.speaking import say, say_lines

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.replay.generate.write import Made

REFUSED: Final = click.UsageError.exit_code
INTERRUPTED: Final = 128 + signal.SIGINT
"""The code that a shell reports for a program that SIGINT ended."""
PROGRESS_S: Final = 5.0
"""Seconds between two lines about how far it has come."""
NONE: Final = "none"


def generate(out: Path, faults: str, options: dict[str, Any], *, as_json: bool) -> None:
    """Make the history in a new folder, and say what it leads to; or end the command.

    `options`: the other fields of a plan.
    """
    from holdfast.replay.generate.plan import Plan, PlanRefused  # noqa: PLC0415 - as every replay
    from holdfast.replay.generate.write import write_history  # noqa: PLC0415 - as above

    wanted = () if faults == NONE else tuple(name for name in faults.split(",") if name)
    try:
        plan = Plan(faults=wanted, **options)
        made = write_history(plan, out, _Progress(plan.events))
    except PlanRefused as error:
        fail(str(error), REFUSED)
    except OSError as error:
        fail(f"cannot write to {out}: {error.strerror or error}; nothing is left of it")
    except KeyboardInterrupt:
        fail("ended at once; nothing is left of what was written", INTERRUPTED)
    if as_json:
        print_json({"folder": str(out), **made.told.anchor()})
    else:
        say_lines(_told(out, made))


def _told(out: Path, made: Made) -> list[str]:
    anchor = made.told.anchor()
    return [
        f"{anchor['records']} records up to index {anchor['index']} are in {out}",
        f"chain head {anchor['chain']}",
        f"state digest {anchor['digest']}",
    ]


class _Progress:
    """Says how far a long run has come, and how long it will take; a short one says nothing."""

    def __init__(self, events: int) -> None:
        self._events = events
        self._began = self._told = time.monotonic()

    def __call__(self, count: int) -> None:
        """Take in the number of records that there are."""
        now = time.monotonic()
        if now - self._told < PROGRESS_S:
            return
        self._told = now
        rate = count / (now - self._began)
        left = (self._events - count) / rate
        say(
            f"{count:,} of {self._events:,} events, {rate:,.0f} a second, about {left:,.0f} s left",
            err=True,
        )

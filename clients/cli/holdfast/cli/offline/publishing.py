"""Sealed segments copied from this disk to a folder or an object store: `holdfast log publish`.

Says how far a long run has come, and in one sentence why it ended. Asks no node; loaded when the
command runs: it needs the [publish] extra.
"""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING, Final

import click
import fsspec  # noqa: F401 - first: whoever lacks it is told of the extra that brings all

from holdfast.cli.ending import fail, print_json
from holdfast.cli.render.speaking import say

if TYPE_CHECKING:
    from pathlib import Path

REFUSED: Final = click.UsageError.exit_code
INTERRUPTED: Final = 128 + signal.SIGINT
"""The code that a shell reports for a program that SIGINT ended."""
PROGRESS_S: Final = 5.0
"""Seconds between two lines about how far it has come."""


def publish_log(node_dir: Path, to: str, *, by_size: bool, as_json: bool) -> None:
    """Copy what is sealed, and say how much that was; or end the command."""
    from holdfast.replay.findings import CannotCheck, WrongUse  # noqa: PLC0415 - as every replay
    from holdfast.replay.publish import publication  # noqa: PLC0415 - as above

    try:
        done = publication.publish(node_dir, to, _Progress(), by_size=by_size)
    except WrongUse as error:
        fail(str(error), REFUSED)
    except (publication.PublishRefused, CannotCheck, FileNotFoundError) as error:
        fail(str(error))
    except OSError as error:
        fail(f"cannot read {error.filename or node_dir}: {error.strerror or error}")
    except KeyboardInterrupt:
        fail("interrupted; what is there is whole: publish again to go on", INTERRUPTED)
    if as_json:
        print_json({"to": to, **done._asdict()})
        return
    held = f"{done.segments} segments and {done.checkpoints} checkpoints are at {to}"
    say(f"{held}: {done.copied} files copied ({done.copied_bytes:,} bytes), {done.known} known")


class _Progress:
    """Says how far a long run has come, and how long it will take; a short one says nothing."""

    def __init__(self) -> None:
        self._began = self._told = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        """Take in how many bytes were compared or copied."""
        now = time.monotonic()
        if now - self._told < PROGRESS_S or not done:
            return
        self._told = now
        left = (total - done) * (now - self._began) / done
        say(f"{done:,} of {total:,} bytes, about {left:,.0f} s left", err=True)

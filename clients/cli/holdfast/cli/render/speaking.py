"""The one way to a person's terminal: a line at a time, and nothing in it that a terminal obeys.

Names, reasons and metadata are what callers gave, so every line is escaped on its way out, whoever
made it. What programs ask for is JSON (ending.py), which has escapes of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.coordinator.model.text import readable

if TYPE_CHECKING:
    from collections.abc import Iterable


def say(line: str = "", *, err: bool = False) -> None:
    """Print one line: a line break in it is shown, too. `err`: to standard error."""
    click.echo(readable(line), err=err)  # noqa: TID251 - this is the one way


def say_lines(lines: Iterable[str], *, err: bool = False) -> None:
    """Print lines."""
    for line in lines:
        say(line, err=err)

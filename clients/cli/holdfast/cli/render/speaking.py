"""The only output to a terminal: line by line, without characters that a terminal interprets.

Names, reasons and metadata come from callers, so every line is escaped here. JSON for programs
(ending.py) has escapes of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.coordinator.model.text import readable

if TYPE_CHECKING:
    from collections.abc import Iterable


def say(line: str = "", *, err: bool = False) -> None:
    """Print one line; a line break in it is escaped. `err`: to standard error."""
    click.echo(readable(line), err=err)  # noqa: TID251 - this is the one way


def say_lines(lines: Iterable[str], *, err: bool = False) -> None:
    """Print lines."""
    for line in lines:
        say(line, err=err)

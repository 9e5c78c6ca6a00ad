"""The end of a command: exit codes, one sentence, and its JSON for a program with `--json`.

Knows the running command by click's context alone, so any function may end it.
"""

from __future__ import annotations

from contextlib import contextmanager
from itertools import takewhile
from typing import TYPE_CHECKING, Final, NoReturn

import click

from holdfast.cli.render.speaking import say
from holdfast.coordinator.model.text import readable, readable_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

FAILED: Final = 1
UNREACHED: Final = 3
UNKNOWN: Final = 4
UNCHECKED: Final = 5
STOPPED: Final = 6
REMOVED: Final = 7
"""Exit codes beside click's 2 for wrong usage; 5 is `holdfast replay`'s, which could not do
its work; 6 is a node's that must not be started unseen, 7 is
one's that was removed from its cluster."""

_PRINTED: Final = "holdfast.cli.json_printed"


def print_json(content: object) -> None:
    """Print the answer as JSON."""
    click.echo(readable_json(content, indent=2))  # noqa: TID251 - JSON is escaped already
    spoken()


def spoken() -> None:
    """Note that the JSON answer is printed, so that a failure prints no second object."""
    context = click.get_current_context(silent=True)
    if context is not None:
        context.meta[_PRINTED] = True


@contextmanager
def usage_for_programs(arguments: Sequence[str]) -> Iterator[None]:
    """Print wrong usage in the body as JSON if a program asked for that; else click prints it.

    The command's own parameters are not parsed then, so the arguments tell whether one asked.
    """
    given = tuple(takewhile(lambda each: each != "--", arguments))
    try:
        yield
    except click.UsageError as error:
        told = _told(error.format_message())
        if "--json" in given:
            _print_error(told, error.exit_code)
        if told == error.format_message():
            raise
        raise click.UsageError(told, error.ctx) from None


def _told(message: str) -> str:
    """Escape a message, which repeats typed text; line breaks of click's own stay."""
    return "\n".join(map(readable, message.replace("\n\t", "\n  ").split("\n")))


def fail(sentence: str, code: int = FAILED) -> NoReturn:
    """End the command with one sentence on standard error.

    With `--json` a program gets it as an object, unless the service's answer was printed.
    """
    context = click.get_current_context(silent=True)
    wants_json = context is not None and context.params.get("as_json")
    if context is not None and wants_json and _PRINTED not in context.meta:
        _print_error(sentence, code)
    say(f"holdfast: {sentence}", err=True)
    raise SystemExit(code)


def _print_error(sentence: str, code: int) -> None:
    print_json({"error": sentence, "exit_code": code})

"""The options by which an operator says with which recovery number a cluster goes on (S13).

A command of a restore and one of a recovery have them. `holdfast node` loads this module before the
check of its directory begins, so it loads nothing but click.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, ParamSpec

import click

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
TOKEN_MAX: Final = (1 << 63) - 1
"""The largest fencing token that there can be."""


def recovery_number(command: Callable[P, None]) -> Callable[P, None]:
    """Give a command the options `number` and `above_token`, which choose that number (S13)."""
    of_a_token = click.option(
        "--above-token",
        type=click.IntRange(0, TOKEN_MAX),
        metavar="TOKEN",
        help="The highest fencing token that any store has seen: take a number above its number.",
    )
    named = click.option(
        "--recovery-number",
        "number",
        type=click.IntRange(1),
        help="A number above every one that the cluster ever had, in any restore or recovery.",
    )
    return named(of_a_token(command))

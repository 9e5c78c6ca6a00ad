"""Check names given to a command: an impossible name is wrong usage, reported before any call.

The cluster knows the same bounds, so a name that passes here may still be refused there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import click

from holdfast.client._translate.arguments import GROUP_LENGTH_MAX, NAME_LENGTH_MAX
from holdfast.coordinator.model.text import CUT_TO

if TYPE_CHECKING:
    from collections.abc import Callable

Given: TypeAlias = str | tuple[str, ...] | None
TEXT_MAX: Final = 4_096
"""Characters of any text that the service takes."""


def _check(most: int, *, may_be_empty: bool = False) -> Callable[..., Given]:
    """Make a callback that refuses a name of more than `most` characters, and an empty one.

    Empty names come from shell variables that are not set.
    """

    def run(context: click.Context, parameter: click.Parameter, value: Given) -> Given:
        del context
        for name in value if isinstance(value, tuple) else (value,):
            if name == "" and not may_be_empty:
                raise click.BadParameter("a name cannot be empty", param=parameter)
            if name and len(name) > most:
                told = f"'{name[:CUT_TO]}…' has {len(name)} characters; at most {most} are allowed"
                raise click.BadParameter(told, param=parameter)
        return value

    return run


group_name: Final = _check(GROUP_LENGTH_MAX)
group_or_cluster: Final = _check(GROUP_LENGTH_MAX, may_be_empty=True)
topic_name: Final = _check(NAME_LENGTH_MAX)
member_name: Final = _check(TEXT_MAX)

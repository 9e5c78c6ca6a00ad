"""The `holdfast` command. Text for people by default, `--json` for programs.

Exit codes: 0 done; 1 refused or failed, with a sentence on standard error; 2 wrong usage or a
missing extra; 3 no node answered; 4 the outcome is unknown, look before you repeat.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any, Final

import click

from holdfast.cli.ending import usage_for_programs
from holdfast.cli.entry import INTERRUPTED
from holdfast.server.rpc.nodes import VERSION

__all__ = ["main"]

EPILOG = (
    "Exit codes: 0 done; 1 refused or failed; 2 wrong usage or a missing extra; 3 no node "
    "answered; 4 the outcome is unknown, look before you repeat."
)
COMMANDS: Final = (
    *("chaos", "cluster", "group", "log", "node"),
    *("offsets", "replay", "settings", "topic"),
)
"""Each is a module of `commands`, and in it the command of the same name."""


class Commands(click.Group):
    """Loads a command when it is asked for: a look at a group needs nothing that a node needs."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,  # noqa: ANN401 - click's
    ) -> click.Context:
        """Read what stands before the command."""
        with usage_for_programs(args):
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - whatever a command returns
        """Read the rest, and run the command; Ctrl-C is a wish, and no failure to tell of."""
        try:
            with usage_for_programs(ctx.args):
                return super().invoke(ctx)
        except KeyboardInterrupt:
            sys.exit(INTERRUPTED)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of the help."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name; None if there is none."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        try:
            module = import_module(f"{__name__}.commands.{cmd_name}")
        except KeyboardInterrupt:  # click would call it aborted, and end with 1
            sys.exit(INTERRUPTED)
        command: click.Command = getattr(module, cmd_name)
        return command


@click.group(cls=Commands, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, prog_name="holdfast")
def main() -> None:
    """Holdfast: who is in the group, and who owns what."""

"""The `holdfast` command and its commands. Text for people by default, `--json` for programs.

Exit codes: 0 done; 1 refused or failed, with a sentence on standard error; 2 wrong usage or a
missing extra; 3 no node answered; 4 the outcome is unknown, look before you repeat.
"""

from __future__ import annotations

import sys
from difflib import get_close_matches
from importlib import import_module
from typing import Any, Final

import click

from holdfast.cli.ending import usage_for_programs
from holdfast.cli.entry import INTERRUPTED

__all__ = ["main"]

EPILOG = (
    "Exit codes: 0 done; 1 refused or failed; 2 wrong usage or a missing extra; 3 no node "
    "answered; 4 the outcome is unknown, look before you repeat."
)
COMMANDS: Final = {
    "acl": "Say who may do what.",
    "audit": "Show who was refused, and what administrators read, on a node's machine.",
    "backup": "Back a cluster up while it serves; inspect, verify and restore backups.",
    "certs": "Make an authority; issue, renew, look at and revoke certificates.",
    "chaos": "Break a cluster on purpose, under load, and judge whether it held.",
    "cluster": "Start a local cluster; show or await one; change its leader; end an upgrade.",
    "doctor": "Look for what is wrong in a cluster, or with a node on this machine.",
    "group": "Look at groups, explain them, remove members, rebalance, delete.",
    "log": "Read the event log; anchor and seal it; export, publish and verify what nodes hold.",
    "node": "Run one node; add, promote, remove and replace nodes.",
    "offsets": "List, set, reset and delete committed offsets.",
    "replay": "Replay the event log with Spark: verify it, report on it, show a past state.",
    "settings": "Show and change settings.",
    "topic": "Create, grow, list and delete topics.",
}
"""Each is a module of `commands` with a command of the same name. The short help is here, so that
the list of commands loads no module."""


class Commands(click.Group):
    """Loads a command when it is called: a command for a group needs no package of a node."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,  # noqa: ANN401 - click's
    ) -> click.Context:
        """Parse the arguments before the command."""
        with usage_for_programs(args):
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - whatever a command returns
        """Parse the rest, and run the command; Ctrl-C ends it without an error message."""
        try:
            with usage_for_programs(ctx.args):
                return super().invoke(ctx)
        except KeyboardInterrupt:
            sys.exit(INTERRUPTED)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the names, in the order of the help."""
        del ctx
        return list(COMMANDS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the help's list of commands."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load the command of a name; None if there is none, and none is nearly named so."""
        if cmd_name not in COMMANDS:
            near = get_close_matches(cmd_name, COMMANDS)
            if near and not ctx.resilient_parsing:
                meant = " or ".join(map(repr, near))
                raise click.UsageError(f"No such command {cmd_name!r}. Did you mean {meant}?", ctx)
            return None
        try:
            module = import_module(f"holdfast.cli.commands.{cmd_name}")
        except KeyboardInterrupt:  # click would call it aborted, and end with 1
            sys.exit(INTERRUPTED)
        command: click.Command = getattr(module, cmd_name)
        return command


@click.group(cls=Commands, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="holdfast", prog_name="holdfast")
def main() -> None:
    """Holdfast: who is in the group, and who owns what."""

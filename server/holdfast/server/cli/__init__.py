"""The `holdfast` command. Text for people by default, `--json` for programs.

Exit codes: 0 done; 1 refused or failed, with a sentence on standard error; 2 wrong usage or a
missing extra; 3 no node answered; 4 the outcome is unknown, look before you repeat.
"""

from __future__ import annotations

import click

from holdfast.server.cli import chaos, cluster, group, log, node, offsets, replay, settings, topic
from holdfast.server.nodes import VERSION

__all__ = ["main"]

EPILOG = (
    "Exit codes: 0 done; 1 refused or failed; 2 wrong usage or a missing extra; 3 no node "
    "answered; 4 the outcome is unknown, look before you repeat."
)


@click.group(epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, prog_name="holdfast")
def main() -> None:
    """Holdfast: who is in the group, and who owns what."""


main.add_command(node.node)
main.add_command(cluster.cluster)
main.add_command(group.group)
main.add_command(topic.topic)
main.add_command(offsets.offsets)
main.add_command(settings.settings)
main.add_command(log.log)
main.add_command(replay.replay)
main.add_command(chaos.chaos)

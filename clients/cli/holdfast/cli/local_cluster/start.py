"""`holdfast cluster start`: lays a cluster out where there is none, and runs it until told to stop.

Loaded when the command is run: nodes need the [server] extra.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from holdfast.cli.ending import fail
from holdfast.cli.entry import INTERRUPTED
from holdfast.cli.local_cluster import layout
from holdfast.cli.local_cluster.cluster_lock import claimed
from holdfast.cli.local_cluster.local_cluster import LocalCluster
from holdfast.cli.render.speaking import say
from holdfast.server.config.node_config import CannotStart, ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class Asked(NamedTuple):
    """The options of the command."""

    nodes: int
    nodes_typed: bool
    """Whether `nodes` was given; else it is the default."""
    port_base: int | None
    overrides: tuple[str, ...]
    insecure: bool
    rebuild: tuple[str, ...]

    def plan(self) -> layout.Plan:
        """Plan a new cluster with these options; raises ConfigError."""
        return layout.plan(self.nodes, self.port_base, self.overrides, insecure=self.insecure)


def run(directory: Path, asked: Asked) -> None:
    """Run the cluster of a directory; ends the command if it could not serve, and says why."""
    try:
        planned = asked.plan() if layout.is_new(directory) else None  # refused before it is written
        if planned and asked.rebuild:
            fail(f"--rebuild: there is no cluster in {directory} yet. Leave it out to begin one")
        with claimed(directory):
            if layout.is_new(directory):
                layout.lay_out(directory, planned or asked.plan())
            else:
                _say_ignored(directory, layout.existing(directory), asked)
            files = layout.existing(directory)
            served = LocalCluster(directory, files, say, asked.rebuild).run()
    except (ConfigError, CannotStart) as error:
        fail(str(error))
    if not served:
        fail("told to stop before the cluster served", INTERRUPTED)


def _say_ignored(directory: Path, files: Sequence[Path], asked: Asked) -> None:
    """Report the options that differ from the existing layout and are ignored."""
    wanted = layout.Wanted(
        asked.nodes if asked.nodes_typed else None,
        asked.port_base,
        asked.overrides,
        asked.insecure,
    )
    if options := ", ".join(layout.differing(files, wanted)):
        say(
            f"holdfast: ignored, because {directory} has a cluster already: {options}. Edit the "
            "nodes' node.toml, use `holdfast settings set`, or give another --dir",
            err=True,
        )

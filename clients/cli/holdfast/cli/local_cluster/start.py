"""`holdfast cluster start`: lays a cluster out where there is none, and runs it until told to stop.

Loaded when the command is run: nodes need the [server] extra.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from holdfast.cli.ending import fail
from holdfast.cli.entry import INTERRUPTED
from holdfast.cli.local_cluster import layout, standing
from holdfast.cli.local_cluster.cluster_lock import claimed
from holdfast.cli.local_cluster.local_cluster import LocalCluster
from holdfast.cli.render.speaking import say
from holdfast.server.config.node_config import CannotStart, ConfigError, load
from holdfast.storage.directory.data_directory import is_empty

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
            files = _serving(directory, layout.existing(directory))
            served = LocalCluster(directory, files, say, asked.rebuild).run()
    except (ConfigError, CannotStart) as error:
        fail(str(error))
    if not served:
        fail("told to stop before the cluster served", INTERRUPTED)


def _serving(directory: Path, files: Sequence[Path]) -> list[Path]:
    """Leave out removed nodes, and those that were laid out and are none of the cluster yet."""
    known = standing.read(directory)
    if known is None:
        return [*files]
    chosen = []
    for file in files:
        config = load(file, {}, ())
        if config.name in known.removed:
            say(
                f"{config.name} was removed from the cluster ({standing.NAME}), and is not "
                f"started; {file.parent} is not needed any more"
            )
        elif config.name not in known.nodes and is_empty(config.data_dir):
            say(
                f"{config.name} is laid out, and no node of the cluster yet: start it with "
                f"--rebuild, and take it in with `holdfast node add {config.name}`"
            )
        else:
            chosen.append(file)
    return chosen


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

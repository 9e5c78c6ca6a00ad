"""`holdfast node`: one node in the foreground."""

from __future__ import annotations

import os
from pathlib import Path

import click
import uvloop

from holdfast.cli.ending import fail
from holdfast.raft.api import EngineStopped
from holdfast.server.config import cluster_file
from holdfast.server.config.node_config import CannotStart, ConfigError, load
from holdfast.server.process import logs
from holdfast.server.process.open_files import raise_limit
from holdfast.server.process.serve import serve


@click.command()
@click.option(
    "--config", "file", required=True, type=click.Path(path_type=Path), help="The node's TOML file."
)
@click.option(
    "--bootstrap", is_flag=True, help="This cluster is new: an empty directory may begin."
)
@click.option("--rebuild", is_flag=True, help="This disk is new: fetch everything from the peers.")
@click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Override a key.")
@click.option(
    "--test-failpoints",
    "failpoints",
    hidden=True,
    type=click.Path(path_type=Path),
    help="A file that can make this node's disk slow or fail (storage.journal.failpoints).",
)
def node(
    file: Path,
    overrides: tuple[str, ...],
    failpoints: Path | None,
    *,
    bootstrap: bool,
    rebuild: bool,
) -> None:
    """Run one node until SIGTERM or SIGINT."""
    try:
        config = load(file, os.environ, overrides)
        shared = file.resolve().parent.parent / cluster_file.NAME
        logs.configure(config.name, config.logger_level, config.logger_format)
        raise_limit()
        uvloop.run(
            serve(config, shared, bootstrap=bootstrap, rebuild=rebuild, failpoints=failpoints)
        )
    except (ConfigError, CannotStart) as error:
        fail(str(error))
    except EngineStopped as error:
        fail(f"the node stopped, because going on could lose or fork data: {error}")

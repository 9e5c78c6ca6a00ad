"""`holdfast node`: one node in the foreground.

Most of a node is loaded in `_serve`, while its data directory is checked. What stands at the head
of this file is what the check needs.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from holdfast.cli.ending import STOPPED, fail
from holdfast.server.config.node_config import CannotStart, ConfigError, NodeConfig, load
from holdfast.server.process import gc_tuning, logs
from holdfast.server.process.open_files import raise_limit
from holdfast.server.process.opening import begin_to_open

if TYPE_CHECKING:
    from holdfast.server.process.opening import Opening

LOADED_LATER: Final = (
    *("aiohttp", "cryptography", "grpc_health", "grpc_reflection"),
    *("prometheus_client", "pysyncobj", "uvloop"),
)
"""Packages of the [server] extra that `_serve` loads; aiohttp and prometheus_client only where
there is an HTTP port. One that is missing is told before anything else, as is lmdb, which is loaded
above."""

for _package in LOADED_LATER:
    if find_spec(_package) is None:
        raise ModuleNotFoundError(f"No module named {_package!r}", name=_package)


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
    gc_tuning.begin_start()
    try:
        config = load(file, os.environ, overrides)
        logs.configure(config.name, config.logger_level, config.logger_format)
        raise_limit()
        opening = begin_to_open(config, bootstrap=bootstrap, rebuild=rebuild)
        _serve(config, file, opening, failpoints)
    except (ConfigError, CannotStart) as error:
        fail(str(error))


def _serve(config: NodeConfig, file: Path, opening: Opening, failpoints: Path | None) -> None:
    """Load the rest of a node, while its directory is checked, and serve."""
    import uvloop  # noqa: PLC0415 - as said above

    from holdfast.raft.api import EngineStopped  # noqa: PLC0415 - as said above
    from holdfast.server.config import cluster_file  # noqa: PLC0415 - as said above
    from holdfast.server.process.serve import serve  # noqa: PLC0415 - as said above

    shared = file.resolve().parent.parent / cluster_file.NAME
    try:
        uvloop.run(serve(config, shared, opening, failpoints))
    except EngineStopped as error:
        fail(f"the node stopped, because going on could lose or fork data: {error}", STOPPED)

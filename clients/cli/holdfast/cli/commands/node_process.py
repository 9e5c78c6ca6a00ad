"""`holdfast node --config FILE`: one node in the foreground.

Most of a node is loaded in `_serve`, while its data directory is checked. What stands at the head
of this file is what the check needs.
"""

from __future__ import annotations

import logging
import os
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, NamedTuple

from holdfast.cli.ending import FAILED, REMOVED, STOPPED, fail
from holdfast.server.config.node_config import (
    CannotStart,
    ConfigError,
    ExtraMissing,
    NodeConfig,
    granting,
    load,
)
from holdfast.server.process import gc_tuning, logs
from holdfast.server.process.open_files import raise_limit
from holdfast.server.process.opening import begin_to_open

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.server.process.opening import Opening

logger = logging.getLogger(__name__)

LOADED_LATER: Final = (
    *("aiohttp", "cryptography", "grpc_health", "grpc_reflection"),
    *("prometheus_client", "pysyncobj", "uvloop"),
)
"""Packages of the [server] extra that `_serve` loads; aiohttp and prometheus_client only where
there is an HTTP port. One that is missing is told before anything else, as is lmdb, which is loaded
above."""

LACKING: Final = 2
"""Exit code for a missing extra, as for wrong usage."""

for _package in LOADED_LATER:
    if find_spec(_package) is None:
        raise ModuleNotFoundError(f"No module named {_package!r}", name=_package)


class Asked(NamedTuple):
    """The options of the command."""

    file: Path
    overrides: tuple[str, ...]
    grant_admin: str
    failpoints: Path | None
    bootstrap: bool
    rebuild: bool


def run(asked: Asked) -> None:
    """Run the node until it is told to stop; ends the command if it cannot start, or go on."""
    gc_tuning.begin_start()
    try:
        config = granting(load(asked.file, os.environ, asked.overrides), asked.grant_admin)
        logs.configure(config.name, config.logger_level, config.logger_format)
        raise_limit()
        _warn_of_even_size(config, bootstrap=asked.bootstrap)
        opening = begin_to_open(config, bootstrap=asked.bootstrap, rebuild=asked.rebuild)
        _serve(config, asked.file, opening, asked.failpoints)
    except (ConfigError, CannotStart) as error:
        fail(str(error), LACKING if isinstance(error, ExtraMissing) else FAILED)


def _warn_of_even_size(config: NodeConfig, *, bootstrap: bool) -> None:
    """Warn of a beginning with an even number of nodes, which is well only in passing (S25)."""
    count = len(config.peers)
    if bootstrap and count % 2 == 0:
        logger.warning(
            "[cluster.peers] names %d nodes: a cluster of so many is no safer than one of %d. "
            "Begin with 1, 3 or 5",
            count,
            count - 1,
        )


def _serve(config: NodeConfig, file: Path, opening: Opening, failpoints: Path | None) -> None:
    """Load the rest of a node, while its directory is checked, and serve."""
    import uvloop  # noqa: PLC0415 - as said above

    from holdfast.raft.api import EngineStopped, NodeRemoved  # noqa: PLC0415 - as said above
    from holdfast.server.config import cluster_file  # noqa: PLC0415 - as said above
    from holdfast.server.process.serve import serve  # noqa: PLC0415 - as said above

    shared = file.resolve().parent.parent / cluster_file.NAME
    try:
        uvloop.run(serve(config, shared, opening, failpoints))
    except NodeRemoved as error:
        fail(str(error), REMOVED)
    except EngineStopped as error:
        fail(f"the node stopped, because going on could lose or fork data: {error}", STOPPED)

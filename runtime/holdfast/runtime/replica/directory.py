"""Which data a replica starts from: opens its data directory, sets damage aside, or refuses.

Data that cannot be trusted is set aside and rebuilt from the peers without a vote (S19, S21); data
of another node or cluster is refused. Imports little, since a node does this while it loads the
rest of itself. Knows neither state nor log.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.storage.directory.data_directory import DataDirectory
from holdfast.storage.errors import DirectoryRefused, Refusal

if TYPE_CHECKING:
    from pathlib import Path

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DirectoryConfig:
    """Where the data is, whose it has to be, and what the operator said about it."""

    path: Path
    cluster_id: str
    node_id: str
    has_peers: bool
    """Whether there are other nodes to rebuild from."""
    bootstrap: bool = False
    """The operator says that this cluster is new."""
    rebuild: bool = False
    """The operator says that this disk is new and that the peers have the data (S19)."""
    disk_reserve_bytes: int | None = None
    """None: the reserve of S20."""


def open_directory(config: DirectoryConfig) -> DataDirectory:
    """Lock and check the directory. Raises `DirectoryRefused`, OSError.

    Blocks for as long as the check of all records takes.
    """
    directory = DataDirectory(
        config.path,
        cluster_id=config.cluster_id,
        node_id=config.node_id,
        bootstrap=config.bootstrap,
        rebuild=config.rebuild,
        disk_reserve_bytes=config.disk_reserve_bytes,
    )
    for name, fault in directory.verdict.spoiled.items():
        logger.critical(_WRITTEN_ANEW, config.path / name, fault)
    if directory.verdict.sound:
        if config.rebuild and not directory.verdict.blank:
            logger.warning(_NOT_EMPTIED, config.path, config.path)
        return directory
    reason = directory.verdict.reason
    if not config.has_peers:
        directory.close()
        raise DirectoryRefused(config.path, Refusal.UNUSABLE, _ALONE.format(reason=reason))
    logger.critical(
        "the data directory is damaged (%s); it is set aside, and this node rebuilds from its "
        "peers without a vote",
        reason,
    )
    directory.set_aside()
    return directory


_NOT_EMPTIED = (
    "--rebuild touches no data: %s is not empty, so the node goes on with what it holds. Leave the "
    "option out; if that data must not be used, stop the node, move %s away and start with "
    "--rebuild again"
)
_WRITTEN_ANEW = (
    "the file of %s was damaged where only a write would have met it (%s). All of its records are "
    "sound, so they were written to a new file, and the node goes on; the old file is kept beside "
    "it as data.mdb.damaged-<n>. Look at the disk: this is what a failing one does"
)
_ALONE = (
    "it is damaged ({reason}), and a cluster of one has no peer to rebuild from. Restore a backup "
    "into an empty directory, or keep this one for a repair by hand."
)

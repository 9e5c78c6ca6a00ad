"""Opens a node's data directory in a thread of its own, while the main thread loads the node.

The check of all records is a child process, and loading modules takes about as long as a small
check: both at once, they take as long as one of them. Imports little, for the same reason. Knows
no gRPC and no log.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Final, TypeAlias

from holdfast.coordinator.model.access import OPEN
from holdfast.runtime.replica.directory import DirectoryConfig, open_directory
from holdfast.server.config.address import is_taken
from holdfast.server.config.node_config import CannotStart
from holdfast.storage.directory.data_directory import is_empty

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.server.config.address import Address
    from holdfast.server.config.node_config import NodeConfig
    from holdfast.storage.directory.data_directory import DataDirectory

Opening: TypeAlias = "Future[DataDirectory]"
"""Has the directory when it is checked, or says why it is refused."""


def begin_to_open(config: NodeConfig, *, bootstrap: bool = False, rebuild: bool = False) -> Opening:
    """Begin to lock and check the node's directory; see `Opening`.

    Raises CannotStart if the client port is in use: mostly by this very node, whose directory then
    stays untouched. The thread keeps no process alive that cannot start for another reason; its
    lock ends with it.
    """
    if is_taken(config.client_address):
        raise CannotStart(cannot_listen(config.client_address, "node.client_address"))
    if bootstrap and _locks_out(config) and _is_empty(config.data_dir):
        raise CannotStart(LOCKED_OUT)
    if bootstrap and rebuild and _is_empty(config.data_dir):
        raise CannotStart(_BOTH.format(place=config.data_dir))
    wanted = DirectoryConfig(
        config.data_dir,
        config.cluster_id,
        config.name,
        has_peers=len(config.peers) > 1,
        bootstrap=bootstrap,
        rebuild=rebuild,
        disk_reserve_bytes=config.disk_reserve_bytes,
    )
    opening: Opening = Future()
    may_form = not _locks_out(config)
    threading.Thread(
        target=_open, args=(wanted, opening, may_form), name="directory-open", daemon=True
    ).start()
    return opening


_BOTH: Final = (
    "--bootstrap and --rebuild contradict each other, and the data directory {place} is empty, so "
    "one of them would decide: --bootstrap begins a new cluster, --rebuild fetches everything from "
    "the nodes of one that serves. Nothing was begun. Start the node again with the one that is "
    "meant; take the other out of its unit"
)
LOCKED_OUT: Final = (
    "a new cluster refuses what no grant allows, and access.administrators names nobody who could "
    "grant anything. Name the principal of your own client: [access] administrators = "
    '["holdfast://client/ops"], or set access.mode = "open", on every node alike'
)


def _locks_out(config: NodeConfig) -> bool:
    """Return whether nobody could do anything in a cluster that this node creates."""
    return not config.administrators and config.access_mode != OPEN


def _is_empty(place: Path) -> bool:
    """Return whether nothing has begun there; its opening tells what else is wrong with it."""
    try:
        return is_empty(place)
    except OSError:
        return False


def cannot_listen(at: Address, setting: str) -> str:
    """Say that a port of the clients cannot be bound; `setting` is where its address stands."""
    return (
        f"cannot listen for clients on {at}: the port is in use, or the address is not this "
        f"machine's. Stop what uses it, or change {setting}"
    )


def _open(wanted: DirectoryConfig, opening: Opening, may_form: bool) -> None:  # noqa: FBT001 - of a thread
    """Open it; whatever goes wrong is raised where the future is waited for."""
    try:
        opening.set_result(_opened(wanted, may_form=may_form))
    except BaseException as error:  # noqa: BLE001 - the waiting side raises it
        opening.set_exception(error)


def _opened(wanted: DirectoryConfig, *, may_form: bool) -> DataDirectory:
    """Open it; `may_form` False: also refuse a cluster that an earlier start only began."""
    directory = open_directory(wanted)
    if directory.begins_cluster and not may_form:
        directory.close()
        raise CannotStart(LOCKED_OUT)
    return directory

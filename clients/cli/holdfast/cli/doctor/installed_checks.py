"""Checks of a node on its own machine, from facts: configuration, files, disk.

Pure: `looking` gathers the facts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.cli.doctor.findings import ERROR, WARNING, Finding
from holdfast.cli.doctor.machine_checks import (
    certificate_end,
    disk_space,
    open_files,
    sync_time,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.cli.doctor.machine_facts import Installed

IN_MEMORY: Final = frozenset({"tmpfs", "ramfs"})
OF_A_NETWORK: Final = frozenset({"nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs"})


def findings_of(node: Installed, now_ms: int) -> list[Finding]:
    """Check an installed node. `now_ms`: Unix time."""
    return [
        *_data_directory(node),
        *disk_space(node.name, node.machine),
        *sync_time(node.name, node.machine),
        *_election(node),
        *open_files(node.name, node.machine),
        *(found for each in _ends(node, now_ms) for found in each),
        *_files(node),
        *_names(node),
    ]


def configuration_refused(problem: str) -> Finding:
    """Make the finding for a file that no node starts with."""
    return Finding(
        *("settings", ERROR, "", problem),
        "The node does not start with this configuration",
        "do what the sentence says (docs/operations/config.md)",
    )


def _data_directory(node: Installed) -> Iterator[Finding]:
    if node.data_dir_problem:
        yield Finding(
            *("disk", ERROR, node.name, f"{node.data_dir}: {node.data_dir_problem}"),
            "The node keeps its log and its state there",
            "make the directory, or give it to the user that the node runs as",
        )
    if node.file_system in IN_MEMORY:
        yield Finding(
            *("disk", ERROR, node.name, f"{node.data_dir} is in memory ({node.file_system})"),
            "What the node has promised to keep is gone when the machine restarts",
            "set node.data_dir to a directory on a disk",
        )
    elif node.file_system in OF_A_NETWORK:
        yield Finding(
            *("disk", WARNING, node.name, f"{node.data_dir} is on a network ({node.file_system})"),
            "Locks and syncs of such file systems are not what the storage is built on",
            "set node.data_dir to a directory on a local disk",
        )


def _election(node: Installed) -> Iterator[Finding]:
    """Compare the election timeout with the disk: the leader syncs in the time between."""
    took = node.machine.sync_p99_ms
    if took is not None and 3 * took > node.election_min_ms:
        yield Finding(
            *("settings", WARNING, node.name),
            f"raft.election_min_ms = {node.election_min_ms} is less than three syncs of this disk "
            f"({took:.0f} ms each)",
            "Followers may take a leader that waits for its disk for dead",
            "use a faster disk, or raise raft.election_min_ms and raft.election_max_ms on all "
            "nodes",
        )


def _ends(node: Installed, now_ms: int) -> Iterator[Iterator[Finding]]:
    for each in node.certificates:
        if not each.problem:
            yield certificate_end(node.name, f"tls.{each.key}", each.expires_ms, now_ms)


def _files(node: Installed) -> Iterator[Finding]:
    for each in node.certificates:
        if each.problem:
            yield Finding(
                *("certificates", ERROR, node.name, f"tls.{each.key}: {each.problem}"),
                "The node does not start with it; one that runs keeps what it has",
                "put the right file there (docs/operations/certificates.md)",
            )
    if not node.signed:
        yield Finding(
            *("certificates", ERROR, node.name),
            "tls.certificate is not signed by an authority that the nodes trust "
            "(tls.peer_ca, else tls.ca)",
            "The other nodes refuse this one, and clients refuse it, too",
            "issue it by that authority (`holdfast certs issue`), or add its authority to the "
            "file on all nodes",
        )


def _names(node: Installed) -> Iterator[Finding]:
    missing = [name for name in node.wanted_names if name not in node.names]
    if node.names and missing:
        yield Finding(
            *("certificates", ERROR, node.name),
            f"tls.certificate does not name {', '.join(missing)}",
            "Nodes look for the node's URI, and clients for the host of the address that they use",
            "issue it with these names: `holdfast certs issue`",
        )

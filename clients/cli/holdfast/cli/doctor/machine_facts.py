"""What checks need to know of the machine and the files of a node; 0 and None are unknown."""

from __future__ import annotations

from typing import NamedTuple


class Machine(NamedTuple):
    """One machine, measured by its node or by this command."""

    resident_bytes: int = 0
    """Memory of the node's process."""
    memory_bytes: int = 0
    """Memory that it may use: of the machine, or of its control group."""
    disk_free_bytes: int = 0
    disk_total_bytes: int = 0
    """Of the file system of the data directory."""
    open_files_max: int = 0
    sync_p99_ms: float | None = None
    """Of a hundred syncs of the disk the slowest takes this long or longer."""


class Certificate(NamedTuple):
    """A certificate of a node's files."""

    key: str
    """Of its file in [tls], as `certificate`."""
    expires_ms: int
    problem: str = ""
    """Why the file cannot be read, or does not belong to its key; empty: all is well."""


class Installed(NamedTuple):
    """A node as it is installed on this machine: its configuration, and what that names."""

    name: str
    machine: Machine
    data_dir: str
    data_dir_problem: str
    """Why nothing can be written there; empty: something can."""
    file_system: str
    """The kind of the data directory's file system, as `ext4`."""
    election_min_ms: int
    certificates: tuple[Certificate, ...] = ()
    wanted_names: tuple[str, ...] = ()
    """Names that the node's certificate must have: of the node, and of its addresses."""
    names: tuple[str, ...] = ()
    """Names that it has."""
    signed: bool = True
    """Whether the authority that the other nodes trust has signed it."""

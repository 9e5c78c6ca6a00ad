"""What a tail follows: where its rows come from, whose log it is, and what is known before them.

Either the sealed segments of a node, or the log as the nodes of a running cluster serve it. Knows
both, and no Spark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from holdfast.replay.analyse.beginnings import owned_by
from holdfast.replay.findings import WrongUse
from holdfast.replay.read.node_logs import data_within, is_data, node_log
from holdfast.replay.stream import offsets
from holdfast.replay.stream.endings import TailStopped
from holdfast.replay.stream.served import LogReader, Nodes
from holdfast.replay.stream.watch import GroupWatch
from holdfast.storage.codec.event_codec import CHAIN_START
from holdfast.storage.segments.checkpoint import CheckpointFlawed

_ALL_RECORDS: Final = ""
"""The chain over all records, among the heads of chains."""


class Beginning(NamedTuple):
    """What is known before the first record that is followed."""

    groups: Sequence[GroupWatch] = ()
    chain: bytes = CHAIN_START
    """Head of the chain over all records."""


class Followed(Protocol):
    """Something that a tail follows."""

    @property
    def format(self) -> str:
        """What Spark calls a stream of it."""

    @property
    def options(self) -> Mapping[str, str]:
        """What Spark needs to know for that."""

    @property
    def cluster_id(self) -> str:
        """Whose log it is; "": that is not known yet."""

    def beginning(self) -> Beginning:
        """Return what is known before its first record. Raises TailStopped."""


class Segments(NamedTuple):
    """The sealed segments of a node."""

    folder: Path

    @property
    def format(self) -> str:
        """What Spark calls a stream of them."""
        return offsets.SEGMENTS

    @property
    def options(self) -> Mapping[str, str]:
        """Where they are."""
        return {offsets.FOLDER: str(self.folder.resolve())}

    @property
    def cluster_id(self) -> str:
        """Whose log it is; "": nothing is sealed yet."""
        segments = node_log(self.folder).segments
        return segments[-1].manifest.cluster_id if segments else ""

    def beginning(self) -> Beginning:
        """Return what the checkpoint tells with which the log begins, if it was cut off (S24)."""
        begins = node_log(self.folder).begins
        try:
            told = begins.read(lambda _: True)
        except CheckpointFlawed as error:
            raise TailStopped(str(error)) from error
        owned = (owned_by(each, begins.log_time_ms) for each in told.state.groups.values())
        return Beginning(
            [GroupWatch(each) for each in owned], told.heads.get(_ALL_RECORDS, CHAIN_START)
        )


class ServedLog(NamedTuple):
    """The log of a running cluster; from its first record on."""

    nodes: Nodes
    cluster_id: str
    length: int
    """The index of its last entry, when it was asked."""

    @classmethod
    def of(cls, nodes: Nodes) -> ServedLog:
        """Ask a cluster. Raises Unreached, and ValueError for what cannot be followed."""
        with LogReader(nodes, starts=True) as reader:
            try:
                return cls(nodes, reader.cluster_id(), reader.newest().index)
            except TailStopped as error:
                raise ValueError(str(error)) from error

    @property
    def format(self) -> str:
        """What Spark calls a stream of it."""
        return offsets.LOG

    @property
    def options(self) -> Mapping[str, str]:
        """How to connect with its nodes."""
        return {offsets.NODES: self.nodes.option()}

    def beginning(self) -> Beginning:
        """Return that nothing is before its first record."""
        return Beginning()


def refuse_others_than_nodes(folder: Path) -> None:
    """Raise WrongUse for a folder in which no node will ever seal anything, as far as it shows.

    An empty one may be that of a node that is about to start.
    """
    if not folder.is_dir() or is_data(folder) or node_log(folder).segments:
        return  # one that is not there is told by whoever reads it
    if any(folder.iterdir()):
        meant = data_within(folder)
        hint = f": {meant} is the data directory of one" if meant else ""
        raise WrongUse(f"{folder} is no data directory of a node, and has no segments{hint}")

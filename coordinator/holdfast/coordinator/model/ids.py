"""Names for the plain strings and numbers that the core speaks of. Knows nothing else."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

GroupId: TypeAlias = str
MemberId: TypeAlias = str
InstanceId: TypeAlias = str
Life: TypeAlias = str
"""The life of a client's process: a UUIDv7 of log time, in its canonical text form (S26)."""
TopicName: TypeAlias = str
RequestId: TypeAlias = str
Principal: TypeAlias = str
CallId: TypeAlias = int
"""A call that waits on this node for its answer; never on the log. 0: nobody waits."""


class Position(NamedTuple):
    """Where a record stands in the log (S3): entry index, from 1, and ordinal in it, from 0."""

    index: int  # type: ignore[assignment]  # hides tuple.index, which a position has no use for
    ordinal: int


class TopicPartition(NamedTuple):
    """One partition of a topic."""

    topic: TopicName
    partition: int


class TopicPartitions(NamedTuple):
    """Partitions of one topic."""

    topic: TopicName
    partitions: tuple[int, ...]
    """Sorted."""


TOKEN_SPAN = 1 << 48
RECOVERY_NUMBER_MAX = (1 << 15) - 1
"""So that a token fits into 63 bits, which every store can compare."""


def fencing_token(recovery_number: int, grant_index: int) -> int:
    """Compute a grant's token (S13), which grows over the cluster's whole life and its restores."""
    return recovery_number * TOKEN_SPAN + grant_index


UNCOMMITTED = -1
"""In a draft: the index of an entry that is not committed yet. Never on the log."""

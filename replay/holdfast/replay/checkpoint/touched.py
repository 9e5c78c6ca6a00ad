"""Which groups of a bucket a fold takes up that goes on from an earlier run's checkpoint.

Those that have new records, and those that somebody asks for. All others are as the earlier run
left them: they are within the checkpoint's digest, which is believed (docs/adr/0067), and the next
checkpoint has them with the same bytes. So a run costs what is new, however much lies still. Runs
in Spark's workers, and imports no Spark.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from holdfast.replay.read.log_batches import groups_in
from holdfast.replay.read.log_rows import Bucket
from holdfast.storage.segments.checkpoint import Checkpoint
from holdfast.storage.state.state_stream import StreamedRecord


class Touched(NamedTuple):
    """Some of a bucket's groups, or all of them."""

    bucket: Bucket
    groups: Collection[str] | None
    """None: all."""

    def __contains__(self, group_id: object) -> bool:
        """Return whether a group is taken up."""
        return self.groups is None or group_id in self.groups

    def checkpoint(self) -> Checkpoint:
        """Read what the log begins with, with these groups. Raises as `Bucket.checkpoint` does."""
        return self.bucket.checkpoint(self.__contains__)

    def others(self) -> Iterator[StreamedRecord]:
        """Read the other groups of the bucket, as the checkpoint has them."""
        if self.groups is None:
            return iter(())
        bucket = self.bucket
        return bucket.begins.stored(lambda group_id: group_id not in self, bucket.name)


def touched(bucket: Bucket, named: Collection[str] = ()) -> Touched:
    """Find which groups of a bucket have records. `named`: those that are wanted in any case."""
    if not bucket.begins.rest_believed:
        return Touched(bucket, None)
    return Touched(bucket, set(named).union(*map(groups_in, bucket.sources)))

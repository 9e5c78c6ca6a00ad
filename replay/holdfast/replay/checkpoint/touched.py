"""Which groups of a bucket a fold takes up that goes on from an earlier run's checkpoint.

Those that have new records, and those that somebody asks for. All others are as the earlier run
left them (docs/adr/0067): of them it is summed up what they add to the digest, from the bytes in
which they are kept, and the next checkpoint has them with the same bytes. Runs in Spark's workers,
and imports no Spark.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from holdfast.replay.read.log_batches import groups_in
from holdfast.replay.read.log_rows import Bucket
from holdfast.storage.codec.state_image import weight
from holdfast.storage.segments.checkpoint import Checkpoint
from holdfast.storage.state.state_stream import StreamedRecord


@dataclass(frozen=True, slots=True)
class Touched:
    """The groups of a bucket that are taken up."""

    bucket: Bucket
    groups: Collection[str] | None
    """None: all."""

    def has(self, group_id: str) -> bool:
        """Return whether a group is taken up."""
        return self.groups is None or group_id in self.groups

    def read(self) -> tuple[Checkpoint, int]:
        """Read what the log begins with, with these groups, and what the others add to a digest.

        Raises as `Bucket.checkpoint` does.
        """
        if self.groups is None:  # the checkpoint may have groups of all buckets in one file
            return self.bucket.checkpoint(), 0
        weights = list[int]()
        made = self.bucket.checkpoint(self.has, lambda content: weights.append(weight(content)))
        return made, sum(weights)

    def others(self) -> Iterator[StreamedRecord]:
        """Read the other groups of the bucket, as the checkpoint has them."""
        if self.groups is None:
            return iter(())
        bucket = self.bucket
        return bucket.begins.stored(lambda group_id: not self.has(group_id), bucket.name)


def touched(bucket: Bucket, named: Collection[str] = ()) -> Touched:
    """Find which groups of a bucket have records. `named`: those that are wanted in any case."""
    if not bucket.begins.touched_only:
        return Touched(bucket, None)
    return Touched(bucket, set(named).union(*map(groups_in, bucket.sources)))

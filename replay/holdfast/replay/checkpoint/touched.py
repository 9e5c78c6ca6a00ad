"""What of a bucket's groups a fold takes up that goes on from an earlier run's checkpoint.

Groups that have new records, and of their offsets those that new records name; groups that somebody
asks for are taken up whole. All else is as the earlier run left it (docs/adr/0067, 0068): it is
summed up what it adds to the digest, from the bytes in which it is kept, and the next checkpoint
has it with the same bytes. Runs in Spark's workers, and imports no Spark.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from holdfast.replay.read.log_batches import moved_in
from holdfast.replay.read.log_rows import Bucket
from holdfast.storage.codec.state_image import group_of, is_offset, offset_key, weight
from holdfast.storage.segments.checkpoint import Checkpoint
from holdfast.storage.state.state_stream import StreamedRecord


class _Rest:
    """What the records that are not taken up add to a digest."""

    added = 0

    def add(self, content: bytes) -> None:
        self.added += weight(content)


@dataclass(frozen=True, slots=True)
class Touched:
    """What is taken up of a bucket's groups."""

    bucket: Bucket
    groups: Collection[str] | None
    """None: all, and as a whole."""
    whole: Collection[str] = ()
    """Those of them that are taken up with all their offsets."""
    offsets: Collection[bytes] = ()
    """The keys of the offsets of others that are taken up."""

    def has(self, key: bytes) -> bool:
        """Return whether a record of a group is taken up, by its key (`codec.state_image`)."""
        if self.groups is None:
            return True
        group_id = group_of(key)
        if group_id not in self.groups:
            return False
        return not is_offset(key) or key in self.offsets or group_id in self.whole

    def read(self) -> tuple[Checkpoint, int]:
        """Read of what the log begins with what is taken up, and what all else adds to a digest.

        Raises as `Bucket.checkpoint` does.
        """
        if self.groups is None:  # the checkpoint may have groups of all buckets in one file
            return self.bucket.checkpoint(), 0
        rest = _Rest()
        made = self.bucket.checkpoint(self.has, rest.add)
        return made, rest.added

    def others(self) -> Iterator[StreamedRecord]:
        """Read what is not taken up of the bucket's groups, as the checkpoint has it."""
        if self.groups is None:
            return iter(())
        bucket = self.bucket
        return bucket.begins.stored(lambda key: not self.has(key), bucket.name)


def touched(bucket: Bucket, named: Collection[str] = ()) -> Touched:
    """Find what of a bucket's groups has records. `named`: groups that are wanted in any case.

    A deletion takes all offsets of a group with it, without naming them.
    """
    if not bucket.begins.touched_only:
        return Touched(bucket, None)
    groups, whole, offsets = set(named), set(named), set[bytes]()
    for moved in map(moved_in, bucket.sources):
        groups |= moved.groups
        whole |= moved.deleted
        offsets.update(_keys(moved.offsets))
    return Touched(bucket, groups, whole, offsets)


def _keys(named: Iterable[tuple[str, str, int]]) -> Iterator[bytes]:
    """Yield the keys of offsets; a name too long for one was forged, and no checkpoint has it."""
    for each in named:
        with suppress(struct.error):
            yield offset_key(*each)

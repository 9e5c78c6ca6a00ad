"""Count takeovers of instance ids without a release: two processes may use the same id.

A projection of the event log, kept by each node for itself: it is not replicated, and nothing is
decided on it. It follows applied events. Earlier events are read back from the event log when the
process starts, and again whenever the node begins to lead (it may have got its state as a snapshot
meanwhile). Memory and reading are bounded: the count may be too low, never too high.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from holdfast.coordinator.model.events import StaticMemberReplaced
from holdfast.coordinator.model.ids import Position
from holdfast.coordinator.model.membership import JOINED, RELEASED, line_of
from holdfast.coordinator.model.rejections import FencedInstanceId, UnreleasedInstanceId
from holdfast.coordinator.model.text import span
from holdfast.runtime.event_log.history import NotHeld
from holdfast.server.translate.refusals import sentence
from holdfast.storage.errors import StorageError
from holdfast.v1.events_pb2 import EventRecord

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.coordinator.model.events import Record
    from holdfast.coordinator.model.ids import GroupId, InstanceId, MemberId
    from holdfast.coordinator.model.membership import Line
    from holdfast.coordinator.model.rejections import Rejection
    from holdfast.runtime.ports import HistoryLike, ReplicaLike
    from holdfast.v1 import events_pb2 as ev
    from holdfast.v1 import extras_pb2 as x

logger = logging.getLogger(__name__)

WINDOW_MS: Final = 10 * 60 * 1000
"""Length of the window in which takeovers count, in ms of log time."""
KEPT_MAX: Final = 20_000
"""Most takeovers, and most releases, that are remembered; the oldest are forgotten first."""
ENTRIES_BACK_MAX: Final = 1 << 16
"""Most entries that are read back from the event log."""
PAGE_RECORDS: Final = 500
"""Records that are read at once: a few milliseconds."""


class _Takeover(NamedTuple):
    """The member `old` was replaced without a release; a member is replaced once at most."""

    log_time_ms: int
    group_id: GroupId
    instance_id: InstanceId
    old: MemberId


class Counts:
    """Takeovers within the window, in memory. Pure; the same event may come more than once."""

    def __init__(self) -> None:
        self._takeovers: dict[MemberId, _Takeover] = {}
        self._released: dict[MemberId, None] = {}
        self._came: dict[MemberId, None] = {}
        self._counts: Counter[tuple[GroupId, InstanceId]] = Counter()

    def __len__(self) -> int:
        return len(self._takeovers)

    def released(self, member_id: MemberId) -> None:
        """Note that a member released its instance id: its replacement is no takeover."""
        self._released[member_id] = None
        if len(self._released) > KEPT_MAX:
            del self._released[next(iter(self._released))]
        self._forget(member_id)

    def came(self, member_id: MemberId) -> None:
        """Note that a member took its instance id: all its later events are known here."""
        self._came[member_id] = None
        if len(self._came) > KEPT_MAX:
            del self._came[next(iter(self._came))]

    def replaced(self, takeover: _Takeover, predecessor_ms: int) -> None:
        """Count the replacement of a member; `predecessor_ms` is the event's.

        If the old member came before the events known here, its release may be unknown, too. Then
        the event tells: `predecessor_ms` is 0 after a release, or if nothing was granted yet.
        """
        if takeover.old in self._takeovers or takeover.old in self._released:
            return
        if not predecessor_ms and takeover.old not in self._came:
            return
        self._takeovers[takeover.old] = takeover
        self._counts[takeover.group_id, takeover.instance_id] += 1
        if len(self._takeovers) > KEPT_MAX:
            self._forget(next(iter(self._takeovers)))

    def count(self, group_id: GroupId, instance_id: InstanceId, log_time_ms: int) -> int:
        """Return how many takeovers of this instance id lie in the window that ends now."""
        self._prune(log_time_ms - WINDOW_MS)
        return self._counts.get((group_id, instance_id), 0)

    def sort(self) -> None:
        """Sort the takeovers by time: those read back are older than those applied."""
        ordered = sorted(self._takeovers.values(), key=attrgetter("log_time_ms"))
        self._takeovers = {takeover.old: takeover for takeover in ordered}

    def _prune(self, before_ms: int) -> None:
        while self._takeovers:
            oldest = next(iter(self._takeovers.values()))
            if oldest.log_time_ms > before_ms:
                return
            self._forget(oldest.old)

    def _forget(self, old: MemberId) -> None:
        takeover = self._takeovers.pop(old, None)
        if takeover is None:
            return
        key = (takeover.group_id, takeover.instance_id)
        self._counts[key] -= 1
        if not self._counts[key]:
            del self._counts[key]


class Takeovers:
    """Counts takeovers for this node's answers. A listener of the replica."""

    def __init__(self, replica: ReplicaLike, history: HistoryLike) -> None:
        self._replica, self._history = replica, history
        self._counts = Counts()
        self._reading: asyncio.Task[None] | None = None

    def count(self, group_id: GroupId, instance_id: InstanceId) -> int:
        """Return how often this instance id was taken over without a release in the window."""
        return self._counts.count(group_id, instance_id, self._replica.log_time_ms())

    def tell(self, extras: x.ResponseExtras, group_id: GroupId, error: Rejection | None) -> None:
        """Add the count of takeovers and the holder's age to a fenced member's answer.

        An age, not a time: log time differs from wall time once a cluster has stood still.
        """
        if isinstance(error, FencedInstanceId | UnreleasedInstanceId):
            held_ms = self._replica.log_time_ms() - error.holder_since_ms
            extras.takeovers = self.count(group_id, error.instance_id)
            extras.message = sentence(error, time_held=span(held_ms))

    def start(self) -> None:
        """Start to read back earlier events, unless that is under way."""
        if self._reading is None or self._reading.done():
            self._reading = asyncio.ensure_future(self._read())

    def stop(self) -> None:
        """Stop reading."""
        if self._reading is not None:
            self._reading.cancel()

    # --- the event log ---

    async def _read(self) -> None:
        try:
            await self._read_from(await self._beginning())
        except (NotHeld, StorageError, OSError, ValueError) as error:
            logger.warning("takeovers before this moment are not counted: %s", error)
        self._counts.sort()

    async def _beginning(self) -> Position | None:
        """Find where the window begins, or an earlier place; at most ENTRIES_BACK_MAX back."""
        now, before_ms = self._replica.state, self._replica.log_time_ms() - WINDOW_MS
        back = PAGE_RECORDS
        while back < min(now.applied_index, ENTRIES_BACK_MAX):
            start = Position(now.applied_index - back, 0)
            try:
                page = await self._history.read(start, 1)
            except NotHeld as error:
                return error.first
            if page.records and _message(page.records[0][1]).log_time_ms <= before_ms:
                return start
            back *= 2
        if now.applied_index <= back:
            return None
        return Position(now.applied_index - ENTRIES_BACK_MAX, 0)

    async def _read_from(self, at: Position | None) -> None:
        """Read to the end; events applied meanwhile are noted twice: by the listener, and here."""
        last = self._replica.state.applied_index
        while True:
            page = await self._history.read(at, PAGE_RECORDS)
            for _, content in page.records:
                self._note_message(_message(content))
            if page.end or page.next.index > last:
                return
            at = page.next
            await asyncio.sleep(0)

    def _note_change(self, record: Record, line: Line) -> None:
        """Note a record of a static member that was applied just now."""
        if line.kind == RELEASED:
            self._counts.released(*line.fenced(record.event))
        elif line.kind == JOINED:
            self._counts.came(*line.came(record.event))
        elif isinstance(record.event, StaticMemberReplaced):
            self._count_swap(record, record.event)

    def _note_message(self, record: EventRecord) -> None:
        """Note a record that was read back."""
        body = record.event.WhichOneof("body")
        if body == "instance_released":
            self._counts.released(record.event.instance_released.member_id)
        elif body == "member_joined" and record.event.member_joined.instance_id:
            self._counts.came(record.event.member_joined.member_id)
        elif body == "static_member_replaced":
            self._count_swap(record, record.event.static_member_replaced)

    def _count_swap(
        self,
        record: EventRecord | Record,
        event: ev.StaticMemberReplaced | StaticMemberReplaced,
    ) -> None:
        """Count a replacement, read back or applied just now: both have the same field names."""
        taken = _Takeover(
            record.log_time_ms, record.group_id, event.instance_id, event.old_member_id
        )
        self._counts.replaced(taken, event.predecessor_ms)
        self._counts.came(event.new_member_id)

    # --- the replica's listener ---

    def listen(self) -> None:
        """Subscribe to the replica."""
        self._replica.subscribe(
            on_leading=self.on_leading,
            on_applied=self.on_applied,
            on_stopped=self.on_stopped,
        )

    def on_leading(self, term: int) -> None:
        """Read back the events that were not applied here, but came in a snapshot."""
        del term
        self.start()

    def on_applied(self, records: Sequence[Record], index: int) -> None:
        """Note the records of static members."""
        del index
        for record in records:
            line = line_of(record.event)
            if line.instance_id(record.event):
                self._note_change(record, line)

    def on_stopped(self, reason: str) -> None:
        """Stop reading: nothing more will be asked here."""
        del reason
        self.stop()


def _message(content: bytes) -> EventRecord:
    return EventRecord.FromString(content)

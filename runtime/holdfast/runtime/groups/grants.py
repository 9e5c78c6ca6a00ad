"""What the part of an entry grants, so that nothing is granted twice in it (S13).

A fencing token is the index of the entry that granted. If a member got something and another one
took its place in the same entry, both processes would have been told the same token, and no store
could tell them apart. Knows the events of a batch in their order; decides nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.coordinator.model.consumer_events import MemberAdvanced, MemberSubscribed
from holdfast.coordinator.model.ids import TopicPartition
from holdfast.coordinator.model.membership import GRANTED, REPLACED, line_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.coordinator.model.events import Proposed
    from holdfast.coordinator.model.ids import MemberId


class Grants:
    """Who was granted something by an entry so far, and what."""

    __slots__ = ("_before", "_everyone", "_members", "_over", "_places")

    def __init__(self, before: Grants | None = None) -> None:
        """`before`: what the entry has granted by decisions that are in it already."""
        self._before = before
        self._everyone = False
        self._members: set[MemberId] = set()
        self._places: set[TopicPartition] = set()
        self._over: set[MemberId] = set()
        """Who speaks the classic protocol from here on, so has one new token for all it owns."""

    def clash(self, events: Iterable[Proposed]) -> bool:
        """Return whether these events would grant again what is granted here, or among them."""
        more = Grants(self)
        return any([more.note(each) for each in events])  # noqa: C419 - each is noted

    def note(self, proposed: Proposed) -> bool:
        """Note an event; return whether it grants something for the second time."""
        event, line = proposed.event, line_of(proposed.event)
        if any(map(self.went_over, line.went(event))):
            return True  # what it owns may be granted to others by this entry
        if isinstance(event, MemberSubscribed):
            return event.classic is not None and not event.joined and self._subscribed(event)
        if isinstance(event, MemberAdvanced):
            gives_up = bool(event.freed) and self.went_over(event.member_id)
            return gives_up or (bool(event.granted) and self._advanced(event))
        if line.kind == REPLACED:
            twice = any(map(self.has_granted, line.went(event)))
            self._members.update(line.came(event))
            return twice
        if line.everyone == GRANTED:
            twice, self._everyone = self.has_any(), True
            return twice
        return False

    def _advanced(self, event: MemberAdvanced) -> bool:
        places = {
            TopicPartition(topic, number) for topic, numbers in event.granted for number in numbers
        }
        twice = any(map(self.has_place, places))
        self._members.add(event.member_id)
        self._places |= places
        return twice

    def _subscribed(self, event: MemberSubscribed) -> bool:
        twice = self.has_granted(event.member_id)
        self._members.add(event.member_id)
        self._over.add(event.member_id)
        return twice

    def has_any(self) -> bool:
        """Return whether anything was granted."""
        here = self._everyone or bool(self._members)
        return here or (self._before is not None and self._before.has_any())

    def has_granted(self, member_id: MemberId) -> bool:
        """Return whether a member was granted something."""
        here = self._everyone or member_id in self._members
        return here or (self._before is not None and self._before.has_granted(member_id))

    def went_over(self, member_id: MemberId) -> bool:
        """Return whether a member has begun to speak the classic protocol."""
        here = member_id in self._over
        return here or (self._before is not None and self._before.went_over(member_id))

    def has_place(self, place: TopicPartition) -> bool:
        """Return whether a partition was granted to somebody."""
        here = place in self._places
        return here or (self._before is not None and self._before.has_place(place))

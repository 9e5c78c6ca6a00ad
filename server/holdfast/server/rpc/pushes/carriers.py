"""Which open stream has carried the last heartbeat of each member: there its pushes go.

A member is noted as its heartbeat begins, so that no push is lost between its answer and what
happens next, and forgotten if the heartbeat is refused. Knows no protocol and no reason to push.
"""

from __future__ import annotations

from collections import defaultdict
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from holdfast.coordinator.model.ids import GroupId, MemberId
    from holdfast.v1 import group_pb2 as g

_NOBODY: Final[Mapping[MemberId, Carrier]] = MappingProxyType({})


class Carrier(Protocol):
    """An open stream."""

    def principal(self) -> str:
        """Return who calls on it."""

    def push(self, pushes: Sequence[g.HeartbeatPush]) -> int:
        """Queue pushes for writing; returns how many were left out, for want of room."""


class Carriers:
    """The members that open streams carry."""

    def __init__(self) -> None:
        self._by_group: dict[GroupId, dict[MemberId, Carrier]] = defaultdict(dict)
        self._by_carrier: dict[Carrier, dict[GroupId, dict[MemberId, None]]] = {}
        self._awaited: dict[tuple[GroupId, MemberId], Callable[[], None]] = {}
        self._reached: Callable[[GroupId], None] = _told_nobody

    @property
    def carried(self) -> int:
        """The number of members that are carried."""
        return sum(map(len, self._by_group.values()))

    @property
    def groups(self) -> tuple[GroupId, ...]:
        """The groups with a member that is carried."""
        return tuple(self._by_group)

    def of(self, group_id: GroupId) -> Mapping[MemberId, Carrier]:
        """Return the carried members of a group; those that were asked in vain come last."""
        return self._by_group.get(group_id, _NOBODY)

    def carry(
        self, carrier: Carrier, group_id: GroupId, member_id: MemberId, *, brings: bool = False
    ) -> None:
        """Note that a heartbeat of this member has come on this stream.

        `brings`: it is one of the heartbeat protocol, which brings what its group waits for.
        """
        known = self._by_group[group_id]
        is_first = not known
        before = known.get(member_id)
        if before is not carrier:
            if before is not None:
                self._release(before, group_id, member_id)
            known[member_id] = carrier
            held = self._by_carrier.setdefault(carrier, {})
            held.setdefault(group_id, {})[member_id] = None
            if is_first:
                self._reached(group_id)
        if brings and self._awaited and (heard := self._awaited.get((group_id, member_id))):
            heard()

    def drop(self, carrier: Carrier, group_id: GroupId, member_id: MemberId) -> None:
        """Forget a member, if this stream is the one that carries it."""
        if self._by_group.get(group_id, _NOBODY).get(member_id) is carrier:
            self.forget(group_id, (member_id,))

    def forget(self, group_id: GroupId, member_ids: Iterable[MemberId]) -> None:
        """Forget members, whichever stream carries them, if one does."""
        known = self._by_group.get(group_id)
        if known is None:
            return
        for member_id in member_ids:
            carrier = known.pop(member_id, None)
            if carrier is not None:
                self._release(carrier, group_id, member_id)
        if not known:
            del self._by_group[group_id]

    def close(self, carrier: Carrier) -> None:
        """Forget all that a stream carries: it has ended."""
        for group_id, member_ids in list(self._by_carrier.get(carrier, {}).items()):
            self.forget(group_id, tuple(member_ids))

    def of_carrier(self, carrier: Carrier) -> Mapping[GroupId, Mapping[MemberId, None]]:
        """Return the members that a stream carries, by their groups."""
        return self._by_carrier.get(carrier, {})

    def silent(self, group_id: GroupId, member_id: MemberId) -> None:
        """Note that a member was asked in vain: others are asked before it from now on."""
        known = self._by_group.get(group_id)
        if known is not None and member_id in known:
            known[member_id] = known.pop(member_id)

    def when_reached(self, reached: Callable[[GroupId], None]) -> None:
        """Have `reached` called when a group of which nobody was carried has a member that is."""
        self._reached = reached

    def await_heartbeat(
        self, group_id: GroupId, member_id: MemberId, heard: Callable[[], None]
    ) -> None:
        """Have `heard` called when a heartbeat of a member comes, until `await_no_more`."""
        self._awaited[group_id, member_id] = heard

    def await_no_more(self, group_id: GroupId, member_id: MemberId) -> None:
        """Call nobody when a heartbeat of this member comes."""
        self._awaited.pop((group_id, member_id), None)

    def _release(self, carrier: Carrier, group_id: GroupId, member_id: MemberId) -> None:
        held = self._by_carrier[carrier]
        del held[group_id][member_id]
        if not held[group_id]:
            del held[group_id]
        if not held:
            del self._by_carrier[carrier]


def _told_nobody(_group_id: GroupId) -> None:
    """Nobody has asked to be told."""

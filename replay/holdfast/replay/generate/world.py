"""What the clients of all groups share: topics, names, ids, and who calls. Deterministic by seed.

Knows the leader's time alone; nothing of groups and of what is on the log.
"""

from __future__ import annotations

from hashlib import sha256
from random import Random
from typing import TYPE_CHECKING, Final

from holdfast.coordinator.model.commands import Caller
from holdfast.coordinator.model.events import TopicSize

if TYPE_CHECKING:
    from holdfast.coordinator.model.ids import GroupId, MemberId, TopicName
    from holdfast.replay.generate.leader import Leader

CLUSTER_ID: Final = "generated"
TOPICS: Final = 8
PARTITIONS: Final = 24
SIDE_PARTITIONS: Final = 4
OPERATOR: Final = "spiffe://generated/operator"
_UUID_VERSION: Final = 7 << 76 | 2 << 62
_UUID_CUTS: Final = ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32))


class World:
    """The surroundings of groups."""

    def __init__(self, leader: Leader, chance: Random) -> None:
        self.leader, self.chance = leader, chance
        self.topics = tuple(TopicSize(f"work-{n}", PARTITIONS) for n in range(TOPICS))
        self._sides = 0
        self._calls = self._members = 0

    @property
    def side_topic(self) -> TopicName:
        """The topic that no group subscribes to; commits go there, too, until it is deleted."""
        return f"side-{self._sides}"

    def next_side_topic(self) -> TopicSize:
        """Return the topic that takes the place of the last one."""
        self._sides += 1
        return TopicSize(self.side_topic, SIDE_PARTITIONS)

    def caller(self, group_id: GroupId, *, repeatable: bool = False) -> Caller:
        """Make the next call of a group's program; `repeatable`: with a request id (S14)."""
        return self._caller(f"spiffe://generated/{group_id}", group_id, repeatable=repeatable)

    def operator(self) -> Caller:
        """Make the next call of the operator, which has a request id."""
        return self._caller(OPERATOR, "operator", repeatable=True)

    def _caller(self, principal: str, client_id: str, *, repeatable: bool) -> Caller:
        self._calls += 1
        request_id = self._request_id() if repeatable else ""
        digest = sha256(request_id.encode()).digest() if repeatable else b""
        host = f"10.0.0.{self._calls % 250 + 1}"
        return Caller(self._calls, principal, client_id, host, request_id, digest)

    def _request_id(self) -> str:
        """Make a UUID of version 7, whose time is the log's: an old one would be refused (S15)."""
        number = self.leader.now_ms << 80 | _UUID_VERSION | self.chance.getrandbits(60)
        digits = f"{number:032x}"
        return "-".join(digits[start:end] for start, end in _UUID_CUTS)

    def new_member(self, name: str) -> MemberId:
        """Make a member id that nobody had before."""
        self._members += 1
        return f"{name}-{self._members:08x}-{self.chance.getrandbits(32):08x}"

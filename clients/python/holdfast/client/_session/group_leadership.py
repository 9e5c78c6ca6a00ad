"""What the group leader does beyond a member's part: assign, and watch its topics change.

The watch compares with the counts that the assignment in force was made from. A topic's count only
grows, but the topic may be deleted, and made again with fewer partitions. A group leader that
restarted and must not assign (KIP-814) reads the counts from its own assignment, where the one who
assigned wrote them (protocol.py). No clock, no IO.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.client._session.protocol import assign, read_subscription
from holdfast.client.errors import AssignmentFailed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.client._session.session_io import Settings
    from holdfast.coordinator.assignors import MemberSubscription
    from holdfast.v1 import group_pb2


class GroupLeadership:
    """One generation's leadership; a follower's is empty."""

    def __init__(self, settings: Settings) -> None:
        self.leads = False
        self.must_assign = False
        self.topics: frozenset[str] = frozenset(settings.topics)
        self._assignors = {assignor.name: assignor for assignor in settings.assignors}
        self.refresh_at_ms: int | None = None
        self._members: list[MemberSubscription] = []
        self._assigned_from: dict[str, int] = {}
        self._missing: frozenset[str] = frozenset()

    def begin(self, response: group_pb2.JoinGroupResponse) -> None:
        """Learn from a join's answer whether we lead, and whether we must assign."""
        self.leads = response.leader == response.member_id
        # KIP-814: a static group leader that comes back is told to leave the assignment alone.
        self.must_assign = self.leads and not response.skip_assignment
        self._members = [read_subscription(member) for member in response.members]
        wanted = (member.topics for member in self._members)
        self.topics = frozenset().union(*wanted) if self.leads else frozenset()
        self._assigned_from = {}
        self.refresh_at_ms = None

    def end(self) -> None:
        """Stop leading: a rebalance begins."""
        self.leads = self.must_assign = False
        self.refresh_at_ms = None

    def assign(
        self, protocol: str, counts: Mapping[str, int]
    ) -> list[group_pb2.SyncGroupRequestAssignment]:
        """Make every member's assignment. Raises AssignmentFailed, also for an unknown protocol."""
        if protocol not in self._assignors:
            raise AssignmentFailed(
                f"The group chose assignor {protocol!r}, which this member does not have."
            )
        self.must_assign = False
        self._assigned_from = {topic: counts.get(topic, 0) for topic in self.topics}
        return assign(self._assignors[protocol], self._members, self._assigned_from)

    def assignment_received(self, counts: Mapping[str, int] | None, now_ms: int) -> None:
        """Begin to watch: the own assignment has come, with the counts that it was made from."""
        if self.leads:
            self._assigned_from = dict(self._assigned_from or counts or {})
            self.refresh_at_ms = now_ms if self.refresh_at_ms is None else self.refresh_at_ms

    def refresh_due(self, now_ms: int) -> bool:
        """Return whether it is time to look at the topics again."""
        return self.leads and self.refresh_at_ms is not None and now_ms >= self.refresh_at_ms

    def refresh_from(self, at_ms: int | None) -> None:
        """Look again then; None: an answer is awaited."""
        self.refresh_at_ms = at_ms

    def changed(self, counts: Mapping[str, int]) -> str:
        """Say how the topics differ from those of the assignment in force; "" if they do not."""
        if not self._assigned_from:
            self._assigned_from = dict(counts)  # never told: watch from here on, as Kafka's client
        known = {topic: self._assigned_from.get(topic, 0) for topic in self.topics}
        more = (topic for topic in known if counts.get(topic, 0) > known[topic])
        fewer = (topic for topic in known if 0 < counts.get(topic, 0) < known[topic])
        gone = (topic for topic in known if topic not in counts and known[topic])
        told = (("more partitions", more), ("fewer partitions", fewer), ("deleted", gone))
        named = ((how, sorted(found)) for how, found in told)
        return "; ".join(f"{how}: {', '.join(names)}" for how, names in named if names)

    def newly_missing(self, counts: Mapping[str, int]) -> tuple[str, ...]:
        """Topics that do not exist, and did the last time, or were not asked for."""
        missing = self.topics - counts.keys()
        new, self._missing = missing - self._missing, missing
        return tuple(sorted(new))

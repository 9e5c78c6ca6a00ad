"""The core as the coordinator of `unit.client._session.consumer`'s walks: its messages, its clock.

Between the messages of clients and the core's commands stand the very translations of a node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.core import Core
from holdfast.coordinator.model.commands import AlterSettings, Caller, CreateTopics, FormCluster
from holdfast.coordinator.model.events import SettingChange, TopicSize
from holdfast.coordinator.model.levels import LEVEL_MAX
from holdfast.coordinator.model.replies import ConsumerHeartbeatReply
from holdfast.server.translate import requests, responses
from unit.client._session.consumer.coordinator import INTERVAL_MS, PARTITIONS, SESSION_MS

if TYPE_CHECKING:
    from holdfast.v1 import group_pb2

SETTINGS = {
    "group.consumer_min_session_timeout_ms": "500",
    "group.consumer_max_session_timeout_ms": "3600000",
    "group.consumer_session_timeout_ms": str(SESSION_MS),
    "group.consumer_min_heartbeat_interval_ms": "100",
    "group.consumer_heartbeat_interval_ms": str(INTERVAL_MS),
}


class CoreGroup:
    """One group on the core, with topic `t`."""

    def __init__(self, **settings: str) -> None:
        self.core, self._calls = Core(), 0
        changes = [SettingChange(name, value) for name, value in (SETTINGS | settings).items()]
        self.core.submit(FormCluster("c", tuple(changes), LEVEL_MAX))
        self.core.submit(CreateTopics(self._caller(), (TopicSize("t", PARTITIONS),)))

    def _caller(self) -> Caller:
        self._calls += 1
        return Caller(self._calls, principal="p", client_id="c")

    def set(self, name: str, value: str) -> None:
        """Change a setting of the cluster."""
        self.core.submit(AlterSettings(self._caller(), "", (SettingChange(name, value),)))

    @property
    def epoch(self) -> int:
        """The group's epoch, 0 before there is one."""
        group = self.core.state.groups.get("g")
        return group.generation if group else 0

    def expire(self, now_ms: int) -> None:
        """Let the core's time pass until this moment."""
        self.core.advance(max(0, now_ms - self.core.now_ms))

    def fail_over(self) -> None:
        """Another leader takes over: it knows what is on the log, and no more."""
        self.core.fail_over()

    def answer(
        self, request: group_pb2.ConsumerGroupHeartbeatRequest, now_ms: int
    ) -> group_pb2.ConsumerGroupHeartbeatResponse:
        """Take one heartbeat."""
        self.expire(now_ms)
        caller = self._caller()
        self.core.submit(requests.consumer_heartbeat(request, caller))
        reply: Any = self.core.answers[caller.call]
        assert isinstance(reply, ConsumerHeartbeatReply)
        return responses.consumer_heartbeat(reply)

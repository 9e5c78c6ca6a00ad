"""A core at the newest level with one group of the heartbeat protocol, and what members say to it.

What the core does with a call is in `harness.core`: after every entry it checks the invariants, and
the test's fixture replays the log from every cut.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harness.core import Core
from holdfast.coordinator.kernel.decide import decide_all
from holdfast.coordinator.model.commands import (
    AlterSettings,
    Caller,
    Command,
    ConsumerGroupHeartbeat,
    CreatePartitions,
    CreateTopics,
    FormCluster,
)
from holdfast.coordinator.model.effects import Answer
from holdfast.coordinator.model.events import SettingChange, TopicSize
from holdfast.coordinator.model.ids import TopicPartitions
from holdfast.coordinator.model.replies import ConsumerHeartbeatReply
from holdfast.coordinator.model.volatile import Volatile

if TYPE_CHECKING:
    from holdfast.coordinator.consumer.state import ConsumerGroup, Member
    from holdfast.coordinator.model.effects import Decision
    from holdfast.coordinator.model.events import Event

GROUP: Final = "g"


def parts(*places: str) -> tuple[TopicPartitions, ...]:
    """`t0` is partition 0 of the topic `t`; the places of a topic stand side by side."""
    found: dict[str, list[int]] = {}
    for place in places:
        topic = place.rstrip("0123456789")
        found.setdefault(topic, []).append(int(place.removeprefix(topic)))
    return tuple(TopicPartitions(topic, tuple(numbers)) for topic, numbers in found.items())


class Talk:
    """A core, and members that speak to it."""

    def __init__(self, level: int = 2, **sizes: int) -> None:
        self.core = Core()
        self.calls = 0
        self.core.submit(FormCluster("c", (), level=level))
        if sizes:
            topics = tuple(TopicSize(name, size) for name, size in sizes.items())
            self.core.submit(CreateTopics(self.caller(), topics))

    def caller(self, principal: str = "") -> Caller:
        self.calls += 1
        return Caller(self.calls, principal, client_id="client")

    def says(self, member_id: str, epoch: int, **said: Any) -> ConsumerGroupHeartbeat:  # noqa: ANN401 - a field of the command
        """The command of a heartbeat that says no more than this."""
        caller = self.caller(said.pop("principal", ""))
        group_id = said.pop("group_id", GROUP)
        return ConsumerGroupHeartbeat(caller, group_id, member_id, epoch, **said)

    def joins(self, member_id: str, *topics: str, **said: Any) -> ConsumerGroupHeartbeat:  # noqa: ANN401 - as above
        """The command of a join."""
        fields = {"owned": (), "rebalance_timeout_ms": 60_000, "topics": topics, **said}
        return self.says(member_id, 0, **fields)

    def send(self, command: Command) -> tuple[Event, ...]:
        """Commit what comes of a command."""
        return self.core.submit(command)

    def told(self, command: ConsumerGroupHeartbeat) -> ConsumerHeartbeatReply:
        """Send a heartbeat; return its answer."""
        self.send(command)
        reply = self.core.answers[command.caller.call]
        assert isinstance(reply, ConsumerHeartbeatReply)
        return reply

    def decide(self, *commands: Command) -> Decision:
        """Decide a batch, without committing what comes of it."""
        volatile = self.core.volatile.get(GROUP, Volatile())
        return decide_all(self.core.state, volatile, GROUP, commands, self.core.now_ms)

    def grow(self, **sizes: int) -> None:
        topics = tuple(TopicSize(name, size) for name, size in sizes.items())
        self.send(CreatePartitions(self.caller(), topics))

    def set(self, **values: str) -> None:
        """Change settings of the group table."""
        changes = tuple(SettingChange(f"group.{key}", value) for key, value in values.items())
        self.send(AlterSettings(self.caller(), "", changes))

    @property
    def group(self) -> ConsumerGroup:
        return self.core.state.groups[GROUP]

    def member(self, member_id: str) -> Member:
        return self.group.body.members[member_id]


def replies(decision: Decision) -> list[ConsumerHeartbeatReply]:
    """The answers of a decision, in order."""
    found = [each.reply for each in decision.effects if isinstance(each, Answer)]
    return [each for each in found if isinstance(each, ConsumerHeartbeatReply)]

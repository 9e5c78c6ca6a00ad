"""Calls of members in few words, for tests that look at exact events. All is about one group."""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.core import Core
from holdfast.coordinator.classic.state import ClassicGroup, Member
from holdfast.coordinator.model.commands import (
    Caller,
    Command,
    DeadlineFired,
    FormCluster,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    LeavingMember,
    SyncGroup,
)
from holdfast.coordinator.model.events import Assigned, Event, SettingChange
from holdfast.coordinator.model.ids import CallId, MemberId
from holdfast.coordinator.model.member_profile import Protocol
from holdfast.coordinator.model.replies import (
    HeartbeatReply,
    JoinReply,
    LeaveReply,
    Reply,
    SyncReply,
)
from holdfast.coordinator.model.volatile import DeadlineKey, Volatile
from holdfast.coordinator.projections.history import History

GROUP = "g"
SESSION_MS = 10_000
REBALANCE_MS = 15_000
P = (Protocol("p", b"p-bytes"),)


@dataclass
class Calls:
    """A core with one group, and the answers of what was called."""

    core: Core = field(default_factory=Core)
    last: CallId = 0
    principal: str = "user"
    level: int = 1

    def __post_init__(self) -> None:
        """No initial delay: a first round closes at the next tick."""
        no_delay = SettingChange("group.initial_rebalance_delay_ms", "0")
        self.core.submit(FormCluster("test", (no_delay,), self.level))

    @property
    def group(self) -> ClassicGroup:
        return self.core.state.groups[GROUP]

    @property
    def history(self) -> History:
        """What is told of the group's rebalances, the newest last."""
        return self.core.histories.get(GROUP, ())

    @property
    def volatile(self) -> Volatile:
        return self.core.volatile[GROUP]

    def member(self, member_id: MemberId) -> Member:
        return self.group.body.members[member_id]

    def caller(self, request_id: str = "", client_id: str = "c") -> Caller:
        self.last += 1
        return Caller(self.last, self.principal, client_id, "127.0.0.1", request_id)

    def submit(self, command: Command) -> tuple[Event, ...]:
        return self.core.submit(command)

    def join(  # noqa: PLR0913 - as many as a join has
        self,
        instance_id: str | None = None,
        member_id: str = "",
        *,
        fresh: str = "",
        protocols: tuple[Protocol, ...] = P,
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
        protocol_type: str = "app",
        request_id: str = "",
        client_id: str = "c",
    ) -> tuple[Event, ...]:
        """Join; a fresh id is `<instance id or client>-<number of the call>` unless given."""
        caller = self.caller(request_id, client_id)
        return self.submit(
            JoinGroup(
                caller=caller,
                group_id=GROUP,
                member_id=member_id,
                instance_id=instance_id,
                session_timeout_ms=session_ms,
                rebalance_timeout_ms=rebalance_ms,
                protocol_type=protocol_type,
                protocols=protocols,
                fresh_member_id=fresh or f"{instance_id or client_id}-{caller.call}",
            )
        )

    def sync(
        self,
        member_id: str,
        assign: dict[str, bytes] | None = None,
        *,
        generation: int | None = None,
        instance_id: str | None = None,
        protocol_type: str | None = "app",
        protocol_name: str | None = "p",
    ) -> tuple[Event, ...]:
        return self.submit(
            SyncGroup(
                caller=self.caller(),
                group_id=GROUP,
                generation=self.group.generation if generation is None else generation,
                member_id=member_id,
                instance_id=instance_id,
                protocol_type=protocol_type,
                protocol_name=protocol_name,
                assignments=tuple(Assigned(*each) for each in (assign or {}).items()),
            )
        )

    def heartbeat(
        self,
        member_id: str,
        *,
        generation: int | None = None,
        instance_id: str | None = None,
        release: bool = False,
    ) -> tuple[Event, ...]:
        current = self.group.generation if generation is None else generation
        command = Heartbeat(self.caller(), GROUP, current, member_id, instance_id, release)
        return self.submit(command)

    def leave(self, *members: LeavingMember, operator: bool = False) -> tuple[Event, ...]:
        return self.submit(LeaveGroup(self.caller(), GROUP, members, operator))

    def remove(self, *, everyone: bool = False, prefix: str = "") -> tuple[Event, ...]:
        """An operator removes members without naming them (K-G24)."""
        reason = "node retired"
        command = LeaveGroup(self.caller(), GROUP, (), True, everyone, prefix, reason)  # noqa: FBT003 - in order
        return self.submit(command)

    def fire(
        self, kind: str, member_id: str = "", *, renewals: int | None = None
    ) -> tuple[Event, ...]:
        """Let a deadline fire, whatever the time, as seen with so many renewals."""
        key = DeadlineKey(kind, member_id)
        seen = self.volatile.renewals.get(member_id, 0) if renewals is None else renewals
        return self.submit(DeadlineFired(GROUP, key, self.volatile.armed.get(key, 0), seen))

    def reply(self, call: CallId = 0) -> Reply | None:
        """The answer of a call, by default of the last; None while it is parked."""
        return self.core.answers.get(call or self.last)

    def joined(self, call: CallId = 0) -> JoinReply:
        reply = self.reply(call)
        assert isinstance(reply, JoinReply), reply
        return reply

    def synced(self, call: CallId = 0) -> SyncReply:
        reply = self.reply(call)
        assert isinstance(reply, SyncReply), reply
        return reply

    def beat(self, call: CallId = 0) -> HeartbeatReply:
        reply = self.reply(call)
        assert isinstance(reply, HeartbeatReply), reply
        return reply

    def left(self, call: CallId = 0) -> LeaveReply:
        reply = self.reply(call)
        assert isinstance(reply, LeaveReply), reply
        return reply

    def stable(
        self, *instance_ids: str, session_ms: int = SESSION_MS, rebalance_ms: int = REBALANCE_MS
    ) -> list[MemberId]:
        """Bring static members to Stable, each with its id as work; the ids, the leader's first."""
        for instance_id in instance_ids:
            self.join(
                instance_id,
                fresh=f"{instance_id}-1",
                session_ms=session_ms,
                rebalance_ms=rebalance_ms,
            )
        self.core.advance(0)
        ids = [f"{instance_id}-1" for instance_id in instance_ids]
        for member_id in ids[1:]:
            self.sync(member_id)
        self.sync(ids[0], {member_id: member_id.encode() for member_id in ids})
        assert self.group.state == "Stable"
        return ids

"""Writes histories by hand, a happening at a time, for the tests of the checkers.

Records are real ones: events of the coordinator, made into happenings as a node's are. The scribe
checks nothing, since most of what it writes has to be wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from holdfast.chaos.checkers import judge
from holdfast.chaos.checkers.verdict import Verdict
from holdfast.chaos.history import happenings as h
from holdfast.chaos.history.records import recorded
from holdfast.coordinator.model import consumer_events as c
from holdfast.coordinator.model import events as e
from holdfast.coordinator.model.ids import Position, TopicPartitions
from holdfast.coordinator.model.member_profile import ConsumerProfile, MemberProfile, Protocol
from holdfast.v1 import group_pb2

if TYPE_CHECKING:
    from collections.abc import Iterable

MS = 1_000
SESSION_MS = 10_000
REBALANCE_MS = 20_000

Outcome = Literal["ok", "rejected", "not-applied", "unknown"]


class Scribe:
    """A history as it grows: a clock in milliseconds, a log, and numbers for calls."""

    def __init__(self) -> None:
        self.history: list[h.Happening] = []
        self.now_us = 0
        self.index = 0
        self.term = 1
        self._calls = 0
        self._seqs: dict[str, int] = {}
        self._joined: set[str] = set()

    def wait(self, milliseconds: float) -> Scribe:
        """Let time pass."""
        self.now_us += round(milliseconds * MS)
        return self

    def say(self, happening: h.Happening) -> None:
        """Write anything, at whatever time it says."""
        self.history.append(happening)

    def judged(self, invariant: str) -> Verdict:
        """What one checker says of the history so far."""
        return judge(self.history, [invariant]).verdicts[invariant]

    # --- calls ---

    def send(self, op: str, who: str = "w", group: str = "g", **arguments: Any) -> int:  # noqa: ANN401 - as JSON
        """Send a call; its number."""
        self._calls += 1
        self.say(h.Invoked(self.now_us, self._calls, who, op, group, arguments))
        return self._calls

    def hear(self, call: int, outcome: Outcome = "ok", error: str = "", **result: Any) -> None:  # noqa: ANN401 - as JSON
        """Its answer is heard now."""
        self.say(h.Returned(self.now_us, call, outcome, error, result))

    def call(
        self,
        op: str,
        who: str = "w",
        group: str = "g",
        outcome: Outcome = "ok",
        error: str = "",
        result: dict[str, Any] | None = None,
        **arguments: Any,  # noqa: ANN401 - as JSON
    ) -> None:
        """A call that takes a millisecond, and a millisecond more before the next."""
        number = self.send(op, who, group, **arguments)
        self.wait(1)
        self.hear(number, outcome, error, **(result or {}))
        self.wait(1)

    def commit(self, offset: int, *, request_id: str = "", who: str = "w", **extra: Any) -> None:  # noqa: ANN401 - as JSON
        """A commit of t/0 that is acknowledged where it is recorded."""
        number = self.send(
            "OffsetCommit", who, offsets=[["t", 0, offset]], request_id=request_id, **extra
        )
        self.wait(1)
        index = self.entry(offsets(offset), request_id=request_id)
        self.wait(1)
        self.hear(number, position=[index, 0])
        self.wait(1)

    def fetch(self, offset: int, who: str = "w", **arguments: Any) -> None:  # noqa: ANN401 - as JSON
        """A read of t/0."""
        self.call("OffsetFetch", who, result={"offsets": [["t", 0, offset]]}, **arguments)

    # --- the log ---

    def entry(self, *events: e.Event, group: str = "g", request_id: str = "") -> int:
        """One entry of the log, applied now; its index."""
        self.index += 1
        for ordinal, event in enumerate(events):
            first = isinstance(event, e.GroupCreated)
            self._seqs[group] = 1 if first else self._seqs.get(group, 0) + 1
            cause = e.Cause("test", "Test")
            place = Position(self.index, ordinal)
            times = (self.now_us // MS, self.now_us // MS)
            record = e.Record(
                place, group, self._seqs[group], *times, cause, "p", request_id, event
            )
            self.say(recorded(self.now_us, self.term, record))
        return self.index

    def create(self, group: str = "g", group_type: str = "") -> None:
        """The group comes into being."""
        self.entry(e.GroupCreated(group_type), group=group)

    def stable(self, shares: dict[str, list[int]], *, generation: int = 1) -> int:
        """One entry opens a rebalance of group g for joiners, one closes it, one shares t out.

        Members whose name has a dot are static: `a.1` is instance `a`. Only new names join.
        """
        joins = [joined(name) for name in shares if name not in self._joined]
        self._joined |= set(shares)
        self.entry(opened(), *joins)
        self.entry(started(generation, *shares))
        return self.entry(assigned(generation, shares))

    def settle(self, shares: dict[str, list[int]]) -> int:
        """Make group g one of the heartbeat protocol whose members own this of t, from epoch 2 on.

        All is granted by one entry: its index, which is the token of everything.
        """
        self.entry(topic(sum(map(len, shares.values()))), group="")
        self.create(group_type="consumer")
        comes = [subscribed(name) for name in shares]
        steps = [advanced(name, 2, tuple(own)) for name, own in shares.items()]
        return self.entry(*comes, raised(2), target(2, shares), *steps)

    def beat(
        self,
        who: str,
        member_id: str,
        epoch: int,
        told: int | None = None,
        grants: list[list[Any]] | None = None,
    ) -> None:
        """A heartbeat that is accepted; it is told its own epoch, or another one."""
        result: dict[str, Any] = {
            "member_id": member_id,
            "generation": epoch if told is None else told,
        }
        result |= {"session_timeout_ms": SESSION_MS}
        result |= {} if grants is None else {"grants": grants}
        asked: dict[str, Any] = {"generation": epoch} if epoch else {}
        self.call("ConsumerGroupHeartbeat", who, member_id=member_id, result=result, **asked)

    # --- nodes and members ---

    def lead(self, node: str = "n1") -> None:
        """A node leads in the next term."""
        self.term += 1
        self.say(h.Role(self.now_us, node, "leader", self.term))

    def grant(
        self, who: str, member_id: str, numbers: list[int], token: int, until_ms: float = 0
    ) -> None:
        """A member may act on partitions of t, for so long if nothing renews it."""
        self.has(who, member_id, dict.fromkeys(numbers, token), until_ms)

    def has(self, who: str, member_id: str, tokens: dict[int, int], until_ms: float = 0) -> None:
        """Write all that a member may act on now: numbers of t, each with its token."""
        partitions = tuple(("t", number) for number in tokens)
        until_us = self.now_us + round(until_ms * MS) if until_ms else 0
        newest = max(tokens.values())
        each = () if set(tokens.values()) == {newest} else tuple(tokens.values())
        whose = (self.now_us, who, "g", member_id, "", 1)
        self.say(h.Granted(*whose, partitions, newest, 0, until_us, each))

    def renew(self, who: str, member_id: str, for_ms: float) -> None:
        """Its right is extended from now."""
        self.say(h.Renewed(self.now_us, who, "g", member_id, self.now_us + round(for_ms * MS)))

    def surrender(
        self, who: str, member_id: str, reason: Literal["revoked", "lost", "crashed"] = "revoked"
    ) -> None:
        """It may not act any more."""
        self.say(h.Surrendered(self.now_us, who, "g", member_id, reason))

    def write(self, who: str, token: int, *, accepted: bool, number: int = 0) -> None:
        """It writes to the storage outside."""
        self.say(h.Wrote(self.now_us, who, "g", "t", number, token, accepted))
        self.wait(1)

    def fault(
        self, kind: str, target: str = "n1", phase: Literal["begin", "end"] = "begin"
    ) -> None:
        """Something breaks, or is mended."""
        self.say(h.Fault(self.now_us, kind, target, phase, {}))


# --- events ---


def instance_of(name: str) -> str | None:
    """`a.1` is a member id of instance `a`; a name without a dot is a dynamic member's."""
    return name.partition(".")[0] if "." in name else None


def protocols(
    topics: tuple[str, ...] | None = ("t",), name: str = "range", metadata: bytes = b""
) -> tuple[Protocol, ...]:
    """One protocol."""
    return (Protocol(name, metadata, topics),)


def _profile(offers: tuple[Protocol, ...] | None) -> MemberProfile:
    return MemberProfile("client", "host", SESSION_MS, REBALANCE_MS, offers or protocols())


def joined(
    name: str, offers: tuple[Protocol, ...] | None = None, request_id: str = ""
) -> e.MemberJoined:
    """A member joins."""
    return e.MemberJoined(
        name,
        instance_of(name),
        _profile(offers),
        "consumer",
        request_id,
    )


def replaced(
    old: str, new: str, offers: tuple[Protocol, ...] | None = None, request_id: str = ""
) -> e.StaticMemberReplaced:
    """An instance comes back under a new member id."""
    return e.StaticMemberReplaced(
        instance_of(new) or "",
        old,
        new,
        _profile(offers),
        request_id,
        SESSION_MS,
    )


def updated(
    name: str, offers: tuple[Protocol, ...] | None = None, request_id: str = ""
) -> e.MemberUpdated:
    """A member joins again and asks for something else, or claims something else."""
    return e.MemberUpdated(name, _profile(offers), request_id)


def opened(member_id: str = "", reason: str = "a test wants it") -> e.RebalanceStarted:
    """A join phase opens."""
    return e.RebalanceStarted(reason, member_id, initial=False, timeout_ms=REBALANCE_MS)


def started(
    generation: int, *names: str, protocol: str = "range", removed: tuple[str, ...] = ()
) -> e.GenerationStarted:
    """A join phase closes; the first one named leads the group."""
    rejoined = tuple(e.Rejoin(name, "") for name in names)
    return e.GenerationStarted(generation, protocol, names[0], rejoined, (), removed)


def assigned(generation: int, shares: dict[str, list[int]]) -> e.AssignmentStored:
    """Who gets which partitions of t."""
    rows = tuple(e.Assigned(name, assignment(numbers)) for name, numbers in shares.items())
    return e.AssignmentStored(generation, rows)


def assignment(numbers: list[int], topic: str = "t") -> bytes:
    """A consumer's assignment."""
    own = group_pb2.ConsumerProtocolTopicPartitions(topic=topic, partitions=numbers)
    message = group_pb2.ConsumerProtocolAssignment(assigned_partitions=[own])
    return message.SerializeToString(deterministic=True)


def owning(numbers: list[int], name: str = "sticky", generation: int = 1) -> tuple[Protocol, ...]:
    """A sticky protocol whose member says that it owns these partitions of t."""
    own = group_pb2.ConsumerProtocolTopicPartitions(topic="t", partitions=numbers)
    message = group_pb2.ConsumerProtocolSubscription(
        topics=["t"], owned_partitions=[own], generation_id=generation
    )
    return protocols(name=name, metadata=message.SerializeToString(deterministic=True))


# --- events of the heartbeat protocol ---


def subscribed(
    name: str, topics: tuple[str, ...] = ("t",), *, regex: str = "", joins: bool = True
) -> c.MemberSubscribed:
    """A member of the heartbeat protocol comes, or says what it wants; `a.1` is instance `a`."""
    profile = ConsumerProfile(rebalance_timeout_ms=REBALANCE_MS, topics=topics, regex=regex)
    return c.MemberSubscribed(name, instance_of(name), profile, joins)


def raised(epoch: int, cause: str = "joined", digest: bytes = b"d") -> c.EpochRaised:
    """Something asks for another target."""
    return c.EpochRaised(epoch, cause, digest)


def target(epoch: int, shares: dict[str, list[int]], assignor: str = "uniform") -> c.TargetStored:
    """Who is to own which partitions of t."""
    rows = tuple(c.MemberTarget(name, of_t(numbers)) for name, numbers in shares.items())
    return c.TargetStored(epoch, assignor, rows)


def advanced(
    name: str,
    epoch: int,
    granted: tuple[int, ...] = (),
    *,
    asked_back: tuple[int, ...] = (),
    freed: tuple[int, ...] = (),
    waiting: bool = False,
) -> c.MemberAdvanced:
    """A member takes a step: partitions of t."""
    return c.MemberAdvanced(name, epoch, of_t(asked_back), of_t(freed), of_t(granted), waiting)


def returned(old: str, new: str) -> e.StaticMemberReplaced:
    """An instance comes back in the heartbeat protocol: it brings no protocols."""
    profile = MemberProfile("client", "host", 0, REBALANCE_MS, ())
    return e.StaticMemberReplaced(instance_of(new) or "", old, new, profile, "", 0)


def of_t(numbers: Iterable[int]) -> tuple[TopicPartitions, ...]:
    """Partitions of t, by topic."""
    listed = tuple(sorted(numbers))
    return (TopicPartitions("t", listed),) if listed else ()


def offsets(offset: int, number: int = 0) -> e.OffsetsCommitted:
    """An offset of a partition of t."""
    return e.OffsetsCommitted((e.OffsetCommitted("t", number, offset, -1, ""),))


def topic(size: int, name: str = "t") -> e.TopicsCreated:
    """A topic comes into being."""
    return e.TopicsCreated((e.TopicSize(name, size),))


def setting(key: str, value: str | None) -> e.SettingsChanged:
    """A setting of the cluster is changed; None: to its default."""
    return e.SettingsChanged("", (e.SettingChange(key, value),))


def whats(verdict: Verdict) -> str:
    """All sentences of a verdict, for a look at what they name."""
    return "\n".join(violation.what for violation in verdict.violations)


def settled() -> tuple[Scribe, int]:
    """Return a group of the heartbeat protocol, a and b.1 at epoch 2, and the token of all."""
    s = Scribe()
    s.lead()
    token = s.settle({"a": [0, 1], "b.1": [2, 3]})
    return s, token

"""A naive coordinator of one group of the heartbeat protocol, for random walks: no log, no network.

It says KIP-848 a second time, as plainly as it can: a partition is free when its holder has said an
owned list without it, has left, or was given up. Shares no code with the service or the client.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from holdfast.v1 import extras_pb2, group_pb2
from holdfast.v1.errors_pb2 import ErrorCode

Request = group_pb2.ConsumerGroupHeartbeatRequest
Response = group_pb2.ConsumerGroupHeartbeatResponse

SESSION_MS, REBALANCE_MS, INTERVAL_MS = 5_000, 3_000, 700
PARTITIONS = 6


@dataclass
class Member:
    """One member as the group has it."""

    epoch: int
    instance: str
    heard_ms: int
    before: int = -1
    """Its epoch before this one."""
    owns: dict[int, int] = field(default_factory=dict)
    """Tokens by partition."""
    asked_back: set[int] = field(default_factory=set)
    asked_ms: int = 0
    told: tuple[int, ...] | None = None
    number: tuple[str, int] = ("", 0)
    """Life and number of the last heartbeat that was heard (S26)."""


class Coordinator:
    """The group, and what it answers at a time."""

    def __init__(self, *, in_place: bool, interval_ms: int = INTERVAL_MS) -> None:
        """`in_place`: whether a static member that joins again under its id is answered (K-N12)."""
        self.interval_ms = interval_ms
        self.refuses: list[ErrorCode.ValueType] = []
        """What the next heartbeats are refused with, whatever they say."""
        self.members: dict[str, Member] = {}
        self.epoch = 1
        self.token = 0
        self._in_place = in_place

    # --- time ----------------------------------------------------------------------------------

    def expire(self, now_ms: int) -> None:
        """Give up who was silent for a session, or has kept what was asked back for too long."""
        for name, member in list(self.members.items()):
            silent = now_ms >= member.heard_ms + SESSION_MS
            slow = bool(member.asked_back) and now_ms >= member.asked_ms + REBALANCE_MS
            if silent or slow:
                self.remove(name)

    def remove(self, name: str) -> None:
        """Have a member no more: what it owned is free."""
        del self.members[name]
        self.epoch += 1

    # --- answers -------------------------------------------------------------------------------

    def answer(self, request: Request, now_ms: int) -> Response:
        """Take one heartbeat."""
        self.expire(now_ms)
        code = self.refuses.pop(0) if self.refuses else self._refusal(request)
        if self._is_repeated(request) and request.member_epoch >= 0:
            name = request.member_id
            return self._told(name, self.members[name], full=True)
        if code is not None:
            holder = self._holder(request.instance_id)
            return Response(error_code=code, holdfast=extras_pb2.ResponseExtras(holder=holder))
        name = request.member_id
        if request.member_epoch < 0:
            return self._goodbye(request, now_ms)
        if request.member_epoch == 0:
            self._join(name, request.instance_id, now_ms)
        member = self.members[name]
        member.heard_ms = now_ms
        member.number = _number(request)
        self._reconcile(name, member, _owned(request), now_ms)
        return self._told(name, member, full=request.HasField("rebalance_timeout_ms"))

    def _refusal(self, request: Request) -> ErrorCode.ValueType | None:
        member = self.members.get(request.member_id)
        epoch, owned = request.member_epoch, _owned(request)
        if member is not None and self._is_past(request, member):
            return ErrorCode.ERROR_CODE_FENCED_MEMBER_EPOCH
        if epoch == 0:
            return self._refused_join(request, owned)
        if member is None:
            return ErrorCode.ERROR_CODE_UNKNOWN_MEMBER_ID
        known = epoch in {member.epoch, -1, -2}
        again = epoch == member.before and owned is not None and owned <= set(member.owns)
        return None if known or again else ErrorCode.ERROR_CODE_FENCED_MEMBER_EPOCH

    def _is_past(self, request: Request, member: Member) -> bool:
        """A heartbeat comes after a later one, or in another life than the one that has joined."""
        (life, beat), (known, last) = _number(request), member.number
        if life != known:
            return bool(life and known) and request.member_epoch != 0
        return bool(beat) and beat <= last and not self._is_repeated(request)

    def _is_repeated(self, request: Request) -> bool:
        member = self.members.get(request.member_id)
        same = member is not None and bool(member.number[1]) and _number(request) == member.number
        return same and member is not None and (member.epoch == -2) == (request.member_epoch == -2)

    def _refused_join(self, request: Request, owned: set[int] | None) -> ErrorCode.ValueType | None:
        if owned or owned is None or not request.HasField("subscribed_topic_names"):
            return ErrorCode.ERROR_CODE_INVALID_REQUEST
        holder = self._holder(request.instance_id)
        if holder is None or self.members[holder].epoch == -2:
            return None
        if holder == request.member_id and self._in_place:
            return None
        return ErrorCode.ERROR_CODE_UNRELEASED_INSTANCE_ID

    def _holder(self, instance: str) -> str | None:
        found = (name for name, member in self.members.items() if member.instance == instance)
        return next(found, None) if instance else None

    def _goodbye(self, request: Request, now_ms: int) -> Response:
        name, epoch = request.member_id, request.member_epoch
        if epoch == -1:
            self.remove(name)
        else:
            member = self.members[name]
            member.epoch, member.heard_ms, member.number = -2, now_ms, _number(request)
            member.asked_back.clear()
        return Response(member_id=name, member_epoch=epoch)

    def _join(self, name: str, instance: str, now_ms: int) -> None:
        holder = self._holder(instance)
        if holder is not None:
            self.members[name] = self.members.pop(holder)  # the place, and all that it has
            self.members[name].epoch = 0
        elif name not in self.members:
            self.members[name] = Member(0, instance, now_ms)
            self.epoch += 1
        self.members[name].told = None

    # --- who is to own what --------------------------------------------------------------------

    def target(self, name: str) -> set[int]:
        """Share the partitions out in turn."""
        names = sorted(self.members)
        return {p for p in range(PARTITIONS) if names[p % len(names)] == name}

    def _free(self) -> set[int]:
        taken = {p for m in self.members.values() for p in (*m.owns, *m.asked_back)}
        return set(range(PARTITIONS)) - taken

    def _reconcile(self, name: str, member: Member, owned: set[int] | None, now_ms: int) -> None:
        if member.asked_back and (owned is None or owned & member.asked_back):
            return
        member.asked_back.clear()
        target = self.target(name)
        gone = set(member.owns) - target
        for partition in gone:
            del member.owns[partition]
        if gone and (owned is None or owned & gone):
            member.asked_back, member.asked_ms = gone, now_ms
            return
        if member.epoch != self.epoch:
            member.before, member.epoch = member.epoch, self.epoch
        for partition in target & self._free():
            self.token += 1
            member.owns[partition] = self.token

    def _told(self, name: str, member: Member, *, full: bool) -> Response:
        extras = extras_pb2.ResponseExtras(
            session_timeout_ms=SESSION_MS, rebalance_timeout_ms=REBALANCE_MS
        )
        response = Response(
            member_id=name,
            member_epoch=member.epoch,
            heartbeat_interval_ms=self.interval_ms,
            holdfast=extras,
        )
        now = tuple(sorted(member.owns))
        if full or now != member.told:
            response.assignment.SetInParent()
            if now:
                response.assignment.topic_partitions.add(topic="t", partitions=now)
                tokens = [member.owns[partition] for partition in now]
                response.holdfast.partition_tokens.add(
                    topic="t", partitions=now, fencing_tokens=tokens
                )
        member.told = now
        return response


def _owned(request: Request) -> set[int] | None:
    if not request.HasField("topic_partitions"):
        return None
    return {p for given in request.topic_partitions.topic_partitions for p in given.partitions}


def _number(request: Request) -> tuple[str, int]:
    return request.holdfast.life, request.holdfast.beat

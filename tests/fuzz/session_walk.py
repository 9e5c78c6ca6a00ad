"""A random walk over a Session stream, and what must hold whatever is sent.

Lists of calls of every kind, with numbers that are taken, free or absurd, unknown kinds, lists that
are empty or too long, mutated bytes; calls are given up, the client stops reading, ends its side or
breaks the stream off; commits are held back or fail, and the leadership is lost and won.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import grpc

from fuzz.mutations import mutated
from fuzz.session_host import Host, Wire, settle, told
from holdfast.coordinator.model.events import OffsetsCommitted
from holdfast.raft.api import Overloaded
from holdfast.server.guard.item_bounds import CALLS_MAX
from holdfast.v1 import errors_pb2 as e
from holdfast.v1 import group_pb2 as g
from unit.server.nodes import beat, commit, join, sync
from unit.server.session_calls import call, request_id

if TYPE_CHECKING:
    from collections.abc import Callable

NUMBER_MAX = (1 << 64) - 1
LONG = "m" * 2_000
INSTANCES = ("i0", "i1", "i2")
WITHOUT_KIND = 40
"""A field of a SessionCall that only a later version has."""


class Violation(AssertionError):
    """Something that must never happen did."""


@dataclass
class Asked:
    """A call as the client knows it."""

    kind: str
    serial: int = 0
    """The offset of a commit, which no other call of the walk has."""
    given_up: bool = False


@dataclass
class Line:
    """The client's side of one stream."""

    wire: Wire
    open: dict[int, Asked] = field(default_factory=dict)
    last: int = 0
    read: int = 0
    spoilt: bool = False
    """Whether something was sent for which a node may end the stream."""
    closed: bool = False


class Walk:
    """One seed's walk. `bytes_each`: the bytes that the caller may have open."""

    def __init__(self, seed: int, bytes_each: int) -> None:
        self.random = random.Random(seed)
        self.counts: Counter[str] = Counter()
        self._host = Host(bytes_each)
        self._serial = 0
        self._committed: set[int] = set()
        self._not_applied: set[int] = set()
        self._sent_to: dict[int, tuple[Wire, str]] = {}
        self._joined: dict[str, g.JoinGroupResponse] = {}
        self._steps: list[tuple[float, Callable[[], Any]]] = [
            *((20, self._send), (3, self._settle), (3, self._give_up), (2, self._stop_reading)),
            *((2, self._hold), (3, self._release), (1, self._refuse), (1, self._lose_lease)),
            *((0.6, self._depose), (0.4, self._half_close), (0.5, self._break_off)),
            *((0.3, self._number_twice), (0.2, self._too_many), (0.3, self._spoil)),
        ]

    async def run(self, steps: int) -> None:
        """Walk; raises Violation."""
        with told() as said:
            await self._host.begin()
            self._connect()
            weights = [weight for weight, _ in self._steps]
            for _ in range(steps):
                (step,) = self.random.choices([step for _, step in self._steps], weights)
                self.counts[step.__name__] += 1
                if (waits := step()) is not None:
                    await waits
                await settle(self.random.choice((0, 0, 1, 4)))
                self._take_answers()
            await self._settle()
            self._line.wire.break_off()
            await settle()
            self._check_log()
            must(not self._host.kept(), f"is left when all streams are over: {self._host.kept()}")
            must(not said, f"the node said {said}")

    # --- what a client does ---

    def _connect(self) -> None:
        self._line = Line(self._host.connect())

    def _send(self) -> None:
        calls = [self._call() for _ in range(self.random.choice((0, 1, 1, 2, 3, 8, 40)))]
        self._write(listed(*calls))

    def _write(self, message: bytes) -> None:
        if not self._line.closed:
            self._line.wire.inbox.put_nowait(message)

    def _call(self) -> g.SessionCall:
        """Make a call of any kind, under a number that is free."""
        line = self._line
        free = [n for n in (0, NUMBER_MAX) if n not in line.open] or [-1]
        number = self.random.choice(free) if self.random.random() < 0.05 else -1
        if number < 0:
            line.last += 1
            number = line.last
        made = self.random.choices(self._makers, (6, 4, 3, 3, 2, 1, 1))[0](self, number)
        if not line.closed:
            kind = made.WhichOneof("request") or ""
            line.open[number] = Asked(kind, self._serial if kind == "commit" else 0)
        return made

    def _commit(self, number: int) -> g.SessionCall:
        self._serial += 1
        group = f"c{self.random.randrange(3)}"
        request = commit(self._serial, group_id=group)
        request.topics[0].partitions[0].committed_metadata = self.random.choice(("", LONG))
        if self.random.random() < 0.2:
            request.holdfast.request_id = self.random.choice((request_id(), "nonsense"))
        if not self._line.closed:
            self._sent_to[self._serial] = self._line.wire, group
        return call(number, request)

    def _join(self, number: int) -> g.SessionCall:
        instance = self.random.choice(INSTANCES)
        request = join(instance_id=instance)
        request.protocols[0].metadata = self.random.choice((b"m", b"n", LONG.encode()))
        return call(number, request)

    def _sync(self, number: int) -> g.SessionCall:
        instance = self.random.choice(INSTANCES)
        joined = self._joined.get(instance, g.JoinGroupResponse(member_id="nobody"))
        return call(number, sync(joined, instance))

    def _beat(self, number: int) -> g.SessionCall:
        instance = self.random.choice(INSTANCES)
        joined = self._joined.get(instance, g.JoinGroupResponse(member_id="nobody"))
        return call(number, beat(joined, instance))

    def _leave(self, number: int) -> g.SessionCall:
        gone = g.LeaveGroupRequestMember(group_instance_id=self.random.choice(INSTANCES))
        return call(number, g.LeaveGroupRequest(group_id="g", members=[gone]))

    def _malformed(self, number: int) -> g.SessionCall:
        return call(number, join(member_id="x" * 9_999))

    def _unknown(self, number: int) -> g.SessionCall:
        later = bytes([(WITHOUT_KIND << 3 | 2) & 127 | 128, WITHOUT_KIND >> 4, 0])
        empty = g.SessionCall(number=number).SerializeToString()
        return g.SessionCall.FromString(empty + self.random.choice((b"", later)))

    _makers = (_commit, _join, _sync, _beat, _leave, _malformed, _unknown)

    def _give_up(self) -> None:
        numbers = self.random.sample(sorted(self._line.open), min(2, len(self._line.open)))
        for number in numbers:
            self._line.open[number].given_up = True
        self._write(g.SessionRequest(given_up=[*numbers, 77_777_777]).SerializeToString())

    def _stop_reading(self) -> None:
        readable = self._line.wire.readable
        readable.clear() if readable.is_set() else readable.set()

    def _number_twice(self) -> None:
        """Send one number twice: in one message, or while its call is open."""
        first, again = self._call(), self._call()
        self._line.open.pop(again.number, None)
        if again.HasField("commit"):
            self._sent_to.pop(self._serial, None)
        again.number = first.number
        if self.random.random() < 0.5:
            self._spoilt(listed(first, again))
        else:
            self._write(listed(first))
            self._spoilt(listed(again))

    def _too_many(self) -> None:
        calls = [g.SessionCall(number=n) for n in range(CALLS_MAX + 1)]
        self._spoilt(listed(*calls))

    def _spoil(self) -> None:
        """Send bytes that may mean anything; none of them means a commit that is ours."""
        seed = g.SessionRequest(calls=[self._join(1_000), self._sync(1_001)], given_up=[1_002])
        self._spoilt(next(mutated([seed.SerializeToString()], self.random)))

    def _spoilt(self, message: bytes) -> None:
        """Send what the node may end the stream for."""
        self._line.spoilt = True
        self._write(message)

    def _half_close(self) -> None:
        if not self._line.closed:
            self._line.wire.inbox.put_nowait(None)
            self._line.closed = True

    async def _break_off(self) -> None:
        """Break the stream off in the middle of whatever it does."""
        await settle(self.random.randrange(20))
        self._line.wire.break_off()
        self._connect()

    # --- what happens to the node ---

    def _hold(self) -> None:
        self._host.replica.hold = True

    def _release(self) -> None:
        replica = self._host.replica
        replica.hold, replica.lease = False, True
        replica.release()

    def _refuse(self) -> None:
        self._host.replica.fail_next = Overloaded("full")

    async def _lose_lease(self) -> None:
        """Send without a lease, and again when it is back: these must not overtake the others."""
        self._host.replica.lease = False
        self._send()
        await settle(self.random.randrange(8))
        self._host.replica.lease = self.random.random() < 0.8
        self._send()

    async def _depose(self) -> None:
        """Lose the leadership and win it again; what was on its way is known or unknown."""
        replica = self._host.replica
        replica.hold = replica.hold or self.random.random() < 0.7
        self._send()
        await settle(9)  # a stream that begins at a node that does not lead goes on
        replica.step_down("node-2")
        if self.random.random() < 0.5:
            self._host.commit_unseen()
        self._release()
        self._line.wire.readable.set()
        await settle()
        must(self._line.wire.ended, "a stream goes on at a node that leads no more")
        self._take_answers()
        self._check_end(deposed=True)
        replica.lead(self.random.randrange(2, 1 << 30))
        self._connect()

    # --- what must hold ---

    async def _settle(self) -> None:
        """Let everything happen that can; then only those are unanswered who wait for others."""
        self._release()
        self._line.wire.readable.set()
        await settle()
        self._take_answers()
        if self._line.wire.ended:
            self._check_end()
            self._connect()
            return
        if self._line.spoilt:
            return  # mutated bytes may hold any calls
        self._check_quiet()

    def _check_quiet(self) -> None:
        stream, line = self._host.stream(), self._line
        if stream is None:
            raise Violation("the stream is gone")
        parked = self._host.parked()
        waiting = {
            number: one.call.number
            for number, one in stream.open._calls.items()
            if one.call is not None
        }
        must(line.wire.inbox.empty(), "messages are not read, and nothing is under way")
        must(parked >= set(waiting.values()), "a call is neither answered nor parked")
        open_ones = {number for number, one in line.open.items() if not one.given_up}
        must(open_ones <= waiting.keys(), f"got no answers: {open_ones - waiting.keys()}")
        must(stream.open.counted == 0, "parked calls count as open")
        must(not self._host.bytes._held, "parked calls hold bytes")
        must(not self._host.desk.arrived._under_way, "heartbeats are taken for unheard")

    def _take_answers(self) -> None:
        line = self._line
        for answer in line.wire.answers[line.read :]:
            self._take(answer)
        line.read = len(line.wire.answers)

    def _take(self, answer: g.SessionAnswer) -> None:
        asked, kind = self._line.open.pop(answer.number, None), answer.WhichOneof("response")
        if asked is None:
            must(self._line.spoilt, f"call {answer.number} is answered and was not open")
            return
        self.counts[f"answer: {kind}"] += 1
        if kind == "status":
            self._take_status(asked, answer.status)
            return
        must(kind == asked.kind or self._line.spoilt, f"a {asked.kind} is answered as a {kind}")
        if kind == "commit":
            (line,) = answer.commit.topics[0].partitions
            if line.error_code == e.ERROR_CODE_NONE:
                self._committed.add(asked.serial)
        elif kind == "join" and answer.join.error_code == e.ERROR_CODE_NONE:
            self._joined[answer.join.member_id.partition("-")[0]] = answer.join

    def _take_status(self, asked: Asked, status: g.SessionStatus) -> None:
        self.counts[f"status: {status.code}"] += 1
        must(bool(status.message), "a status says nothing")
        must(status.code != grpc.StatusCode.INTERNAL.value[0], f"a call crashed: {status}")
        if asked.kind == "":
            must(status.code == grpc.StatusCode.UNIMPLEMENTED.value[0], f"unknown: {status}")
        if status.not_applied:
            self._not_applied.add(asked.serial)

    def _check_end(self, *, deposed: bool = False) -> None:
        """Check how a stream has ended that the client did not break off."""
        line, wire = self._line, self._line.wire
        known = {None, grpc.StatusCode.INVALID_ARGUMENT} if line.spoilt else {None}
        must(wire.code in known, f"the stream ended with {wire.code}")
        must(deposed or line.closed or line.spoilt, "the stream ended, and nobody wanted it to")
        outcome = wire.trailing.get("holdfast-outcome")
        self.counts[f"end: {wire.code}, {outcome}"] += 1
        if deposed and wire.code is None and not line.closed:
            must(outcome == "not-applied", f"a node that was deposed says {wire.trailing}")
            must(wire.trailing.get("holdfast-leader") == "127.0.0.1:2", "the leader is not named")
        if outcome == "not-applied":
            unanswered = (one for one in line.open.values() if not one.given_up)
            self._not_applied |= {one.serial for one in unanswered}
        elif not line.spoilt:
            left = [number for number, one in line.open.items() if not one.given_up]
            must(not left, f"the stream ended well, without the answers to {left}")

    def _check_log(self) -> None:
        """Compare what the client was told of its commits with the log (S5), and their order."""
        events = [record.event for record in self._host.replica.records]
        commits = [event.offsets for event in events if isinstance(event, OffsetsCommitted)]
        ours = [one.offset for offsets in commits for one in offsets if one.offset in self._sent_to]
        must(len(ours) == len(set(ours)), "a commit was done twice")
        must(self._committed - {0} <= set(ours), "a commit was confirmed and is not on the log")
        done = self._not_applied & set(ours)
        must(not done, f"commits {done} were done, and it was said that they were not")
        orders: dict[tuple[Wire, str], list[int]] = defaultdict(list)
        for serial in ours:
            orders[self._sent_to[serial]].append(serial)
        for serials in orders.values():
            must(serials == sorted(serials), f"commits to one group changed places: {serials}")


def listed(*calls: g.SessionCall) -> bytes:
    """A message of calls."""
    return g.SessionRequest(calls=calls).SerializeToString()


def must(holds: object, otherwise: str) -> None:
    """Raise Violation unless it holds."""
    if not holds:
        raise Violation(otherwise)

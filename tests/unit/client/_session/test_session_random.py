"""Random services, networks and users against one session; S11 recomputed by a second, naive model.

The model keeps every accepted sign of life with the time at which it was sent, and from that alone
says until when ownership may last. The session must never claim more. What the user was told is
kept partition by partition, eager and cooperative (KIP-429).
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from holdfast.client._session.phases import Phase
from holdfast.client._session.session_io import Assigned, FailureKind, Lost, Revoke, Stopped
from holdfast.coordinator.assignors import CooperativeAssignor, RangeAssignor
from holdfast.v1 import admin_pb2, group_pb2
from unit.client._session.driver import (
    FENCED_INSTANCE_ID,
    ILLEGAL_GENERATION,
    NONE,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
    Driver,
    claim_of,
    join_answer,
    make_settings,
    sync_answer,
)

if TYPE_CHECKING:
    from holdfast.client._session.session_io import Identity, Output, Send, TopicPartition

SESSION_MS, REBALANCE_MS = 5_000, 5_500
STEPS = 250
CODES = (NONE, REBALANCE_IN_PROGRESS, UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, FENCED_INSTANCE_ID)
WEIGHTS = (60, 30, 3, 3, 0.3)


class World:
    """A driver, a seeded fate, and the naive model of S11."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        settings = make_settings(
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            instance_id=self.random.choice([None, "i-1"]),
            takeover=self.random.choice(["now", "wait"]),
            assignors=(self.random.choice([RangeAssignor(), CooperativeAssignor()]),),
        )
        self.cooperative = settings.assignors[0].cooperative
        self.driver = Driver(settings)
        self.sent_at: dict[int, tuple[int, Identity]] = {}
        self.accepted: list[int] = []
        self.confirmed: list[int] = []
        self.generation = 0
        self.held: set[TopicPartition] = set()
        self.going: set[TopicPartition] = set()
        self.read = 0

    def step(self) -> None:
        action = self.random.choices(
            (self.answer, self.fail, self.pass_time, self.freeze, self.let_go, self.depart),
            (40, 12, 40, 3, 5, 0.3),
        )[0]
        action()
        self.look()

    def look(self) -> None:
        """What holds after every step."""
        driver = self.driver
        for told in driver.told[self.read :]:
            self.hear(told)
        self.read = len(driver.told)
        for call, send in driver.open.items():
            now_known = (driver.now, driver.session.identity)
            self.sent_at.setdefault(call, now_known)
            if isinstance(send.request, group_pb2.JoinGroupRequest):
                # KIP-429: what is kept over a join is claimed in it; eager, nothing is kept.
                assert self.held <= (set(claim_of(send.request)) if self.cooperative else set())
        for ahead in (0, 1_000, 4_000, 10_000):
            moment = driver.now + ahead
            assert not driver.session.owns(moment) or moment < self.owned_until()
        waits = driver.session.wake_at_ms is not None or bool(driver.open)
        assert waits or isinstance(driver.told_last, Stopped | Revoke | Lost)  # never stuck

    def hear(self, told: Output) -> None:
        """Keep account of what the user owns, and check that no news repeats or contradicts."""
        match told:
            case Assigned(partitions):
                assert self.held.isdisjoint(partitions)
                self.held |= set(partitions)
            case Revoke(partitions):
                assert partitions
                assert self.held >= set(partitions)
                assert self.cooperative or self.held == set(partitions)
                self.going = set(partitions)
            case Lost(partitions):
                assert self.held == set(partitions)
                self.held.clear()

    def owned_until(self) -> float:
        session = max(self.accepted, default=float("-inf")) + 0.8 * SESSION_MS
        rebalance = max(self.confirmed, default=float("-inf")) + 0.8 * REBALANCE_MS
        return min(session, rebalance)

    def answer(self) -> None:
        if not self.driver.open:
            return
        send = self.random.choice(list(self.driver.open.values()))
        code = self.random.choices(CODES, WEIGHTS)[0]
        match send.request:
            case group_pb2.JoinGroupRequest():
                self.generation += 1
                name = self.driver.settings.assignors[0].name
                response = join_answer(generation=self.generation, protocol=name)
                self.driver.answer_call(send, response)
            case group_pb2.SyncGroupRequest():
                if code == NONE:
                    self.confirm(send)
                    self.driver.answer_call(send, self.assignment())
                else:
                    self.driver.answer_call(send, group_pb2.SyncGroupResponse(error_code=code))
            case group_pb2.HeartbeatRequest():
                self.beat(send, code)
                self.driver.answer_call(send, group_pb2.HeartbeatResponse(error_code=code))
            case group_pb2.FindCoordinatorRequest():
                self.driver.answer_call(send, group_pb2.FindCoordinatorResponse())
            case group_pb2.LeaveGroupRequest():
                self.driver.answer_call(send, group_pb2.LeaveGroupResponse())
            case _:
                self.driver.answer_call(send, admin_pb2.ListTopicsResponse())

    def assignment(self) -> group_pb2.SyncGroupResponse:
        numbers = self.random.sample(range(3), self.random.randrange(4))
        said = self.random.choice([b"", b'{"counts": {}}', b'{"counts": {}, "join_again": true}'])
        return sync_answer(*numbers, predecessor_ms=700, user_data=said)

    def beat(self, send: Send, code: int) -> None:
        at, identity = self.sent_at[send.call]
        if identity != self.driver.session.identity:
            return
        if code in {NONE, REBALANCE_IN_PROGRESS}:
            self.accepted.append(at)
        if code == NONE:
            self.confirmed.append(at)

    def confirm(self, send: Send) -> None:
        at, _ = self.sent_at[send.call]
        self.accepted.append(at)
        self.confirmed.append(at)

    def fail(self) -> None:
        if self.driver.open:
            send = self.random.choice(list(self.driver.open.values()))
            kind = self.random.choice([FailureKind.RETRY, FailureKind.SUPERSEDED])
            self.driver.fail_call(send, kind, retry_in_ms=self.random.randrange(1_000))

    def pass_time(self) -> None:
        # One wake-up at a time, so that every call is seen at the moment when it is sent.
        wake = self.driver.session.wake_at_ms
        most = self.random.randrange(2_000)
        until = self.driver.now + most if wake is None else min(wake, self.driver.now + most)
        self.driver.now = max(self.driver.now, until)
        self.driver.session.tick(self.driver.now)
        self.driver.take()

    def freeze(self) -> None:
        self.driver.freeze(self.random.randrange(20_000))

    def let_go(self) -> None:
        self.driver.session.tick(self.driver.now)  # what was lost meanwhile is told first
        self.driver.take()
        self.look()
        if self.driver.session.phase is Phase.REVOKING:
            self.held -= self.going
            self.going = set()
        self.driver.session.revoked(self.driver.now)
        self.driver.take()

    def depart(self) -> None:
        self.random.choice([self.driver.session.leave, self.driver.session.restart])(
            self.driver.now
        )
        self.driver.take()


@pytest.mark.parametrize("start", range(0, 200, 20))
def test_s11_a_session_never_claims_more_than_its_signs_of_life_bought(start: int) -> None:
    owned = 0
    for seed in range(start, start + 20):
        print(f"seed {seed}: World({seed}), {STEPS} steps of World.step")
        world = World(seed)
        world.driver.start()
        world.look()
        for _ in range(STEPS):
            world.step()
        owned += sum(isinstance(told, Assigned) for told in world.driver.told)
        lost = [told for told in world.driver.told if isinstance(told, Lost)]
        assert all(told.reason for told in lost)
    assert owned > 0  # else nothing was judged

"""Several members, a naive coordinator, and a network that loses and delays: nobody owns twice.

Judged at every moment by what each member says it may act on (S11), and by tokens (S13). When the
network is well again, all converge: nothing waits for ever.
"""

from __future__ import annotations

import random
from typing import Protocol

import pytest

from holdfast.client._session.consumer.states import State
from holdfast.client._session.session_io import (
    Assigned,
    Lost,
    Revoke,
    Stage,
    Stopped,
    Subscription,
    TopicPartition,
)
from holdfast.v1.group_pb2 import HeartbeatPush
from unit.client._session.consumer.coordinator import (
    PARTITIONS,
    REBALANCE_MS,
    SESSION_MS,
    Coordinator,
    Response,
)
from unit.client._session.consumer.driver import (
    FENCED_INSTANCE_ID,
    NONE,
    UNKNOWN_MEMBER_ID,
    Beat,
    Driver,
    make_settings,
)

CODES = (NONE, NONE, FENCED_INSTANCE_ID, UNKNOWN_MEMBER_ID)
STEPS = 600
SETTLES_MS = 8 * SESSION_MS
STEP_MS = 100
ASTRAY_MAX = 8
"""Copies of heartbeats that the network has at most."""


class Process:
    """One process of the user: a member, and code that takes its time."""

    def __init__(self, number: int, fate: random.Random) -> None:
        instance = fate.choice([None, f"i-{number}"])
        self.driver = Driver(
            make_settings(
                member_id=f"m-{number}",
                instance_id=instance,
                rebalance_timeout_ms=REBALANCE_MS,
                work_timeout_ms=fate.choice([None, SESSION_MS]),
            )
        )
        self.driver.slow = True
        self.number = number
        self.pace = fate.choice([1, 1, 0.1])
        """How quickly the network carries something to it and from it."""
        self.frozen_until_ms = 0
        self.tokens: dict[TopicPartition, int] = {}
        self.held: set[TopicPartition] = set()
        """What the callbacks that have returned have told."""

    def returns(self) -> None:
        """The oldest callback returns: no news repeats or contradicts, and no token falls."""
        running = self.driver.running
        if not running:
            return
        match running[0]:
            case Assigned(names, grant):
                assert self.held.isdisjoint(names)
                self.held |= set(names)
                for name in names:
                    assert grant.fencing_token >= self.tokens.get(name, 0)
                    self.tokens[name] = grant.fencing_token
            case Revoke(names):
                assert self.held >= set(names)
                self.held -= set(names) - self.lost_meanwhile()
            case Lost(names):
                assert self.held >= set(names)
                self.held -= set(names)
        self.driver.returns()

    def lost_meanwhile(self) -> set[TopicPartition]:
        """What on_lost will be called for: it runs after on_revoked that it has overtaken."""
        waiting = (told for told in self.driver.running if isinstance(told, Lost))
        return {name for told in waiting for name in told.partitions}


class Group(Protocol):
    """What a walk needs of a coordinator."""

    @property
    def epoch(self) -> int:
        """The group's epoch, 0 before there is one."""

    def expire(self, now_ms: int) -> None:
        """Let time pass until this moment."""

    def answer(self, request: Beat, now_ms: int) -> Response:
        """Take one heartbeat."""


class World:
    """Processes, one coordinator, one clock, and a seeded fate."""

    def __init__(self, seed: int, group: Group | None = None) -> None:
        self.fate, self.hints = random.Random(seed), random.Random(seed)
        self.now = 1_000_000
        self.group: Group = group or Coordinator(in_place=self.fate.random() < 0.5)
        self.astray: list[Beat] = []
        """Heartbeats of which the network has another copy, or which it still has."""
        self.processes = [Process(number, self.fate) for number in range(3)]
        self.next_number = 3
        self.heard: dict[tuple[int, int], Response] = {}
        """Answers on their way, by process and call."""
        self.owners: dict[int, int] = {}
        self.well = False

    # --- one step ------------------------------------------------------------------------------

    def step(self) -> None:
        self.now += STEP_MS
        self.group.expire(self.now)
        self.deliver_late()
        for process in self.awake():
            process.driver.now = self.now
            if process.driver.session.stage is Stage.NEW:
                process.driver.start()
            self.one_turn(process)
        self.look()

    def deliver_late(self) -> None:
        """What went astray comes after all: nobody waits for its answer any more (S26)."""
        if self.astray and self.fate.random() < 0.05:
            late = self.astray.pop(self.fate.randrange(len(self.astray)))
            self.group.answer(late, self.now)

    def go_astray(self, request: Beat, chance: float) -> None:
        """Keep a copy of a heartbeat for later, now and then."""
        if self.fate.random() < chance:
            self.astray = [*self.astray, request][-ASTRAY_MAX:]

    def awake(self) -> list[Process]:
        return [each for each in self.processes if each.frozen_until_ms <= self.now]

    def one_turn(self, process: Process) -> None:
        driver = process.driver
        wake = driver.session.wake_at_ms
        if wake is not None and wake <= self.now:
            driver.tick()
        if not driver.quiet:
            self.network(process)
        if self.well or self.fate.random() < 0.2:
            process.returns()
        if self.well or self.fate.random() < 0.02:
            driver.do("working")
        if self.hints.random() < 0.05:
            self.push(process)
        if not self.well and self.fate.random() < 0.01:
            self.trouble(process)

    def push(self, process: Process) -> None:
        """A hint, true or not: it must neither prove anything nor keep a member from beating."""
        epoch = self.hints.randrange(-1, 1 + self.group.epoch)
        member_id, code = process.driver.settings.member_id, self.hints.choice(CODES)
        push = HeartbeatPush(
            group_id="g", member_id=member_id, generation_id=epoch, error_code=code
        )
        process.driver.do("pushed", push)

    def network(self, process: Process) -> None:
        """The open call is heard, its answer comes, or one of both is lost."""
        driver, luck = process.driver, self.fate.random() / (1 if self.well else process.pace)
        call, request = (process.number, driver.waiting.call), driver.beat
        if self.well or luck < 0.4:
            heard = self.heard.pop(call, None) or self.group.answer(request, self.now)
            self.go_astray(request, 0.05)
            driver.answer(heard)
        elif luck < 0.6 and call not in self.heard:
            self.heard[call] = self.group.answer(request, self.now)
        elif luck < 0.66:
            lost = call in self.heard or self.fate.random() < 0.5
            self.go_astray(request, 0.5 if lost else 0.0)
            driver.fail(applied=None if lost else False, retry_in_ms=self.fate.randrange(400))

    def trouble(self, process: Process) -> None:
        """Something that happens to processes."""
        driver = process.driver
        what = self.fate.choice(
            ["freeze", "freeze", "restart", "leave", "subscribe", "out", "dead"]
        )
        match what:
            case "freeze":
                process.frozen_until_ms = self.now + self.fate.randrange(2 * SESSION_MS)
            case "restart" | "leave":
                driver.do(what)
            case "subscribe":
                driver.do("subscribe", Subscription((self.fate.choice("tuv"),)))
            case "out":
                driver.do("unsubscribe")
            case "dead":
                process.frozen_until_ms = 1 << 60

    # --- what holds at every moment --------------------------------------------------------------

    def look(self) -> None:
        acting: dict[int, int] = {}
        for index, process in enumerate(self.processes):
            process.driver.now = self.now
            for number in process.driver.owns():
                assert number not in acting, f"{number} is owned twice at {self.now}"
                acting[number] = index
            driver = process.driver
            waits = driver.session.wake_at_ms is not None or driver.open or driver.running
            over = driver.session.stage in {Stage.STOPPED, Stage.NEW, Stage.FAILED}
            idle = driver.state in {State.UNSUBSCRIBED, State.STALE}
            assert waits or over or idle, f"process {index} waits for nothing"
        self.renew()

    def renew(self) -> None:
        """A supervisor starts another process for one that has ended, or hangs for good."""
        for index, process in enumerate(self.processes):
            gone = (
                isinstance(process.driver.told_last, Stopped) or process.frozen_until_ms > 1 << 50
            )
            if gone and (self.well or self.fate.random() < 0.05):
                process.driver.now = self.now
                if not process.driver.owns():
                    self.processes[index] = Process(self.next_number, self.fate)
                    self.next_number += 1

    # --- and in the end --------------------------------------------------------------------------

    def settle(self) -> None:
        """The network is well, and so are all programs: everything must come to be owned."""
        self.well = True
        for process in self.processes:
            process.frozen_until_ms = min(process.frozen_until_ms, self.now)
            process.driver.now = self.now
            process.driver.do("subscribe", Subscription(("t", "z")))
        for _ in range(SETTLES_MS // STEP_MS):
            self.step()
        owned = sorted(number for each in self.processes for number in each.driver.owns())
        assert owned == list(range(PARTITIONS))
        assert all(each.driver.session.ready(self.now) for each in self.processes)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 60, 10))
def test_s11_nobody_owns_twice_and_all_converge(start: int) -> None:
    for seed in range(start, start + 10):
        print(f"seed {seed}: World({seed}), {STEPS} steps of World.step, then settle")
        world = World(seed)
        for _ in range(STEPS):
            world.step()
        world.settle()


@pytest.mark.slow
def test_the_walk_reaches_every_state_and_every_kind_of_failure() -> None:
    """Else it would judge less than it seems to."""
    seen: set[State] = set()
    kinds: set[str] = set()
    for seed in range(30):
        world = World(seed)
        for _ in range(STEPS):
            world.step()
            for process in world.processes:
                seen |= set(process.driver.states)
                kinds |= {told.reason.kind for told in process.driver.lost}
    assert seen == set(State) - {State.FATAL}
    assert kinds >= {"clock", "superseded", "stuck"}

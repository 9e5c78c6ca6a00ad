"""Real sessions of the heartbeat protocol against the core, through a network without an order.

Heartbeats are lost, come late, and come twice, also after another node has taken over (S26), and
operators change the session timeout (S11). Nobody may act on what another one acts on, and in the
end everything is owned: the walk is that of `unit.client._session.consumer.test_session_random`.
"""

import os
from dataclasses import replace

import pytest

from holdfast.client._session.session_io import Stage
from property.core_group import CoreGroup
from unit.client._session.consumer.coordinator import SESSION_MS
from unit.client._session.consumer.driver import Driver
from unit.client._session.consumer.test_session_random import STEPS, Process, World

SEEDS = range(40)
FAIL_OVER, SET = 0.01, 0.01
"""How probable another leader is at each step, and another session timeout."""
PROCESSES_MAX = 5
SESSIONS_MS = (1_500, 3_000, SESSION_MS, 12_000)


def seeds() -> list[int]:
    chosen = os.environ.get("SEED")
    return [int(chosen)] if chosen else list(SEEDS)


class CoreWorld(World):
    """The walk, with nodes that take over from each other."""

    def __init__(self, seed: int) -> None:
        self.core = CoreGroup()
        super().__init__(seed, self.core)

    def step(self) -> None:
        if not self.well and self.fate.random() < FAIL_OVER:
            self.core.fail_over()
        if not self.well and self.fate.random() < SET:
            self.set_session(self.fate.choice(SESSIONS_MS))
        super().step()

    def set_session(self, session_ms: int) -> None:
        self.core.set("group.consumer_session_timeout_ms", str(session_ms))

    def settle(self) -> None:
        self.set_session(SESSION_MS)
        super().settle()


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds())
def test_s26_late_and_doubled_heartbeats_and_other_timeouts_make_no_two_owners(seed: int) -> None:
    print(f"again: SEED={seed} ./dev test property -- -k test_late_beats")
    world = CoreWorld(seed)
    for _ in range(STEPS):
        world.step()
    world.settle()
    world.core.core.check_replays()


class Successors(CoreWorld):
    """Processes that hang have successors under their instance id, before they wake up again.

    A takeover is no lease (S12): everybody asks to wait until older owners must have stopped.
    """

    def step(self) -> None:
        for process in list(self.processes):
            hangs = process.frozen_until_ms > self.now + SESSION_MS // 4
            if hangs and process.driver.settings.instance_id and self.fate.random() < 0.02:
                successor = Process(self.next_number, self.fate)
                self.next_number += 1
                waits(successor, instance_id=process.driver.settings.instance_id)
                self.processes = [*self.processes, successor][-PROCESSES_MAX:]
        for process in self.processes:
            if process.driver.session.stage is Stage.NEW:
                waits(process)
        super().step()


def waits(process: Process, **changes: str | None) -> None:
    """Have a process that was not started wait for older owners."""
    settings = process.driver.settings
    process.driver = Driver(replace(settings, takeover="wait", **changes))  # type: ignore[arg-type]  # a field of it
    process.driver.slow = True


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds())
def test_s12_a_newer_process_that_waits_never_acts_beside_the_one_before(seed: int) -> None:
    print(f"again: SEED={seed} ./dev test property -- -k test_late_beats")
    world = Successors(seed)
    for _ in range(STEPS):
        world.step()
    world.core.core.check_replays()

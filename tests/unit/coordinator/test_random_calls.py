"""Random calls, time, broken connections and failovers: nothing that no rule allows ever happens.

`harness.core` judges after each step: invariants of the state (S6), the leader-local part (S16),
one answer a call, a decision that is a function, deadlines that agree with what is armed (S9), and
the log replayed from cuts. At the end everybody falls silent, and then nothing may remain: no
parked call (KAFKA-14422), no member (S9: it would live for ever), no deadline.
"""

import os
import random
from collections.abc import Callable

import pytest

from harness.calls import Calls, P
from holdfast.coordinator.classic.state import ClassicGroup
from holdfast.coordinator.model.commands import (
    AlterSettings,
    CallBroken,
    Command,
    DeleteGroup,
    LeavingMember,
    TriggerRebalance,
)
from holdfast.coordinator.model.events import SettingChange
from holdfast.coordinator.model.ids import MemberId
from holdfast.coordinator.model.member_profile import Protocol
from holdfast.coordinator.model.volatile import Volatile

STEPS = 120
SEEDS = range(20)
PROTOCOLS = (
    P,
    (Protocol("q", b"q"), Protocol("p", b"p")),
    (Protocol("p", b"2"), Protocol("q", b"")),
)


class Chaos:
    """A service gone mad: whatever can be sent is sent, to whom it belongs more often than not."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.calls = Calls()

    def known(self) -> list[MemberId]:
        group = self.calls.core.state.groups.get("g")
        pending = self.calls.core.volatile.get("g", Volatile()).pending
        return [*(group.body.members if group else ()), *pending]

    def pick(self) -> MemberId:
        return self.rng.choice([*self.known() * 4, "ghost", ""])

    def instance_of(self, member_id: MemberId) -> str | None:
        group: ClassicGroup | None = self.calls.core.state.groups.get("g")
        if group and member_id in group.body.members and self.rng.random() < 0.9:
            return group.body.members[member_id].instance_id
        return self.rng.choice([None, "i1", "i2", "i3"])

    def join(self) -> None:
        member_id = self.pick() if self.rng.random() < 0.6 else ""
        self.calls.join(
            self.instance_of(member_id),
            member_id,
            protocols=self.rng.choice(PROTOCOLS),
            session_ms=self.rng.choice([6_000, 10_000, 20_000]),
            rebalance_ms=self.rng.choice([0, 5_000, 15_000]),
            request_id=self.rng.choice(["", "r1", "r2", "r3"]),
        )

    def sync(self) -> None:
        group = self.calls.core.state.groups.get("g")
        if group is None:
            return
        member_id = (group.body.leader or "") if self.rng.random() < 0.5 else self.pick()
        self.calls.sync(
            member_id,
            {each: each.encode() for each in self.known() if self.rng.random() < 0.9},
            protocol_name=group.body.protocol_name or "p",
        )

    def heartbeat(self) -> None:
        if "g" in self.calls.core.state.groups:
            member_id = self.pick()
            release = self.rng.random() < 0.15
            instance_id = self.instance_of(member_id)
            self.calls.heartbeat(member_id, instance_id=instance_id, release=release)

    def leave(self) -> None:
        members = []
        for _ in range(self.rng.randint(0, 3)):
            member_id = self.pick()
            members.append(LeavingMember(member_id, self.instance_of(member_id)))
        self.calls.leave(*members, operator=self.rng.random() < 0.3)

    def remove(self) -> None:
        """Whoever is meant goes, in whatever state it is (K-G24)."""
        prefix = self.rng.choice(["", "i", "i1", "i2", "i3"])
        group = self.calls.core.state.groups.get("g")
        meant = {
            member.member_id
            for member in (group.body.members.values() if group else ())
            if not prefix or (member.instance_id or "").startswith(prefix)
        }
        self.calls.remove(everyone=not prefix, prefix=prefix)
        told = self.calls.left().members
        assert {each.member_id for each in told if each.error is None} == meant
        assert len(told) == len(meant)

    def break_call(self) -> None:
        parked = sorted(self.calls.core.parked)
        if parked:
            call = self.rng.choice(parked)
            self.calls.submit(CallBroken("g", call))
            self.calls.core.parked.discard(call)

    def administer(self) -> None:
        caller = self.calls.caller()
        size = SettingChange("group.max_size", str(self.rng.randint(1, 5)))
        delay = self.rng.choice(["0", "0", "2000"])
        delayed = SettingChange("group.initial_rebalance_delay_ms", delay)
        deeds: list[Command] = [DeleteGroup(caller, "g"), TriggerRebalance(caller, "g", "why not")]
        self.calls.submit(
            self.rng.choice([*deeds, AlterSettings(caller, "", (size, delayed))]),
        )

    def pass_time(self) -> None:
        self.calls.core.advance(self.rng.choice([0, 100, 1_000, 3_000, 7_000]))

    def step(self) -> None:
        deeds: list[tuple[int, Callable[[], None]]] = [
            (30, self.join),
            (30, self.sync),
            (14, self.heartbeat),
            (4, self.leave),
            (1, self.remove),
            (4, self.break_call),
            (2, self.administer),
            (2, self.calls.core.fail_over),
            (14, self.pass_time),
        ]
        weights = [weight for weight, _ in deeds]
        self.rng.choices([deed for _, deed in deeds], weights)[0]()


def seeds() -> list[int]:
    chosen = os.environ.get("SEED")
    return [int(chosen)] if chosen else list(SEEDS)


@pytest.mark.parametrize("seed", seeds())
def test_whatever_is_called_no_rule_breaks(seed: int) -> None:
    print(f"again: SEED={seed} pytest tests/unit/coordinator/test_random_calls.py")
    chaos = Chaos(seed)
    for _ in range(STEPS):
        chaos.step()
    chaos.calls.core.advance(2_000_000)

    core = chaos.calls.core
    assert not core.parked, "a call was never answered"
    assert len(core.deadlines) == 0
    assert all(not group.body.members for group in core.state.groups.values())
    core.check_replays()

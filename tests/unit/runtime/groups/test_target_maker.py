"""Targets that a node computes beside the work of its groups, in children that may fail."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.poll import until
from holdfast.coordinator.consumer.assignors import ASSIGNORS
from holdfast.coordinator.model import commands as c
from holdfast.coordinator.model.consumer_events import MemberTarget
from holdfast.coordinator.model.effects import ComputeTarget, InstallTarget
from holdfast.coordinator.model.events import LevelRaised, SettingChange
from holdfast.coordinator.model.ids import TopicPartitions
from holdfast.coordinator.model.member_profile import GroupSpec, MemberSpec
from holdfast.raft.api import Overloaded
from holdfast.runtime.groups import target_maker
from holdfast.runtime.groups.target_maker import TargetMaker, in_child
from unit.runtime.world import World, with_topic

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.coordinator.consumer.assignors import Target
    from holdfast.coordinator.model.ids import CallId

WAITS = """
import os, signal, sys
from pathlib import Path
made = Path(os.environ["MADE"])
made.with_suffix(".new").write_text(str(os.getpid()))
made.with_suffix(".new").rename(made)
signal.pause()
"""


def asked(epoch: int = 2, *members: str) -> ComputeTarget:
    """A target of the topic `t` with four partitions."""
    wants = frozenset({"t"})
    specs = {name: MemberSpec(None, None, wants) for name in members or ("a",)}
    return ComputeTarget(epoch, "uniform", GroupSpec(specs, homogeneous=True), {"t": 4})


class Computer:
    """A child that a test lets fail, hang, or go on."""

    def __init__(self) -> None:
        self.asked: list[ComputeTarget] = []
        self.ended = 0
        self.failures: list[Exception | None] = []
        """What becomes of the next ones: an error, or None for one that hangs."""
        self.goes_on = asyncio.Event()
        self.goes_on.set()

    async def __call__(self, asked: ComputeTarget) -> Target:
        self.asked.append(asked)
        try:
            if self.failures and (error := self.failures.pop(0)):
                raise error
            if len(self.asked) <= self.hanging:
                await asyncio.Event().wait()
            await self.goes_on.wait()
            return ASSIGNORS[asked.assignor](asked.spec, asked.sizes)
        finally:
            self.ended += 1

    hanging = 0
    """How many of the first ones hang."""


class Maker:
    """A maker of targets, and what it submits."""

    def __init__(self) -> None:
        self.installed: list[InstallTarget] = []
        self.computer = Computer()
        self.maker = TargetMaker(self.installed.append, self.computer)

    async def until(self, holds: Callable[[], bool]) -> None:
        """Let the loop turn until something holds; a test that waits in vain fails."""
        for _ in range(10_000):
            if holds():
                return
            await asyncio.sleep(0)
        pytest.fail("it did not come about within 10,000 turns of the loop")


def of_a(epoch: int = 2) -> InstallTarget:
    """What is submitted for `asked`."""
    whole = (TopicPartitions("t", (0, 1, 2, 3)),)
    return InstallTarget("g", epoch, "uniform", (MemberTarget("a", whole),))


def test_m20_what_was_computed_is_submitted_with_what_it_was_asked_for() -> None:
    async def story() -> None:
        made = Maker()
        made.maker.ask("g", asked())
        await made.until(lambda: bool(made.installed))

        assert made.installed == [of_a()]

    asyncio.run(story())


@pytest.mark.parametrize("error", [OSError("killed"), ValueError("torn"), TimeoutError()])
def test_inv_16_a_child_that_dies_is_replaced(error: Exception) -> None:
    """INV-16: the group waits for its target."""

    async def story() -> None:
        made = Maker()
        made.computer.failures = [error]
        made.maker.ask("g", asked())
        await made.until(lambda: bool(made.installed))

        assert made.installed == [of_a()]
        assert len(made.computer.asked) == 2

    asyncio.run(story())


def test_inv_16_a_child_that_hangs_is_ended_and_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """INV-16: by the clock of the loop."""
    monkeypatch.setattr(target_maker, "CHILD_SECONDS", 0.0)

    async def story() -> None:
        made = Maker()
        made.computer.hanging = target_maker.TRIES
        made.maker.ask("g", asked())
        await made.until(lambda: bool(made.installed))

        assert made.installed == [of_a()]
        assert made.computer.ended == len(made.computer.asked) == target_maker.TRIES

    asyncio.run(story())


def test_inv_16_where_no_child_can_run_the_node_computes_the_target_and_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """INV-16: a machine that cannot start a process must not leave members without work."""

    async def story() -> None:
        made = Maker()
        made.computer.failures = [OSError("no memory")] * target_maker.TRIES
        made.maker.ask("g", asked())
        await made.until(lambda: bool(made.installed))

        assert made.installed == [of_a()]

    asyncio.run(story())
    assert "group 'g': its target is computed by the node itself" in caplog.text


def test_a_defect_is_an_alarm_and_the_next_group_has_its_target(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The group asks again when the target counts as lost."""

    async def story() -> None:
        made = Maker()
        made.computer.failures = [RuntimeError("a defect")]
        made.maker.ask("bad", asked())
        made.maker.ask("g", asked())
        await made.until(lambda: bool(made.installed))

        assert made.installed == [of_a()]

    asyncio.run(story())
    assert "alarm: no target of group 'bad'" in caplog.text


def test_a_newer_question_of_a_group_ends_the_older_one() -> None:
    """S2: the group may be another one of the same name by now."""

    async def story() -> None:
        made = Maker()
        made.computer.goes_on.clear()
        made.maker.ask("g", asked(2))
        await made.until(lambda: len(made.computer.asked) == 1)
        made.maker.ask("g", asked(5))
        await made.until(lambda: len(made.computer.asked) == 2)
        made.computer.goes_on.set()
        await made.until(lambda: bool(made.installed))

        assert made.installed == [of_a(5)]
        assert made.computer.ended == 2

    asyncio.run(story())


def test_so_many_children_at_once_and_further_groups_wait() -> None:
    """S7: each takes as much memory as its group."""

    async def story() -> None:
        made = Maker()
        made.computer.goes_on.clear()
        groups = [f"g{number}" for number in range(target_maker.CHILDREN_MAX + 1)]
        for group_id in groups:
            made.maker.ask(group_id, asked())
        await made.until(lambda: len(made.computer.asked) == target_maker.CHILDREN_MAX)
        for _ in range(50):
            await asyncio.sleep(0)
        at_once = len(made.computer.asked)
        made.computer.goes_on.set()
        await made.until(lambda: len(made.installed) == len(groups))

        assert at_once == target_maker.CHILDREN_MAX

    asyncio.run(story())


def test_s1_an_ex_leader_installs_nothing_and_its_children_end() -> None:
    """S1: neither what is under way nor what waits."""

    async def story() -> None:
        made = Maker()
        made.computer.goes_on.clear()
        for group_id in ("g", "h", "i"):
            made.maker.ask(group_id, asked())
        await made.until(lambda: len(made.computer.asked) == target_maker.CHILDREN_MAX)
        made.maker.clear()
        made.computer.goes_on.set()
        await made.until(lambda: made.computer.ended == target_maker.CHILDREN_MAX)
        for _ in range(50):
            await asyncio.sleep(0)

        assert made.installed == []

    asyncio.run(story())


# --- in a node's actors ---


def joining(member_id: str) -> Callable[[CallId], c.Command]:
    return lambda call: c.ConsumerGroupHeartbeat(
        c.Caller(call, "p", "client"),
        *("g", member_id, 0),
        rebalance_timeout_ms=10_000,
        topics=("t",),
        owned=(),
    )


async def leading(computer: Computer) -> World:
    """A leading node, which computes all targets of groups beside their work."""
    world = await World(computer).lead()
    world.replica.slip_in("", LevelRaised(2))
    await with_topic(world)
    late = (SettingChange("group.consumer_inline_work", "0"),)
    await world.ask(lambda call: c.AlterSettings(c.Caller(call), "", late))
    return world


def test_m20_joins_of_a_large_group_are_answered_before_its_target_is_there() -> None:
    """K-M20: one target for all that joined, and one more for those that came meanwhile."""

    async def story() -> None:
        computer = Computer()
        world = await leading(computer)
        computer.goes_on.clear()
        for names in (("a", "b"), ("c", "d"), ("e",)):
            for call in [world.offer(joining(name)) for name in names]:
                await call.future
        waiting = world.replica.state.groups["g"].state
        computer.goes_on.set()
        await world.until(lambda: bool(world.events("TargetStored")))
        await world.settle()

        assert waiting == "Assigning"
        assert [len(each.spec.members) for each in computer.asked] == [2, 5]
        assert len(world.events("TargetStored")) == 1

    asyncio.run(story())


def test_s1_a_leader_that_steps_down_drops_the_target_and_the_next_one_asks_anew() -> None:
    """S1, S16: and nothing waits for ever (INV-16)."""

    async def story() -> None:
        computer = Computer()
        world = await leading(computer)
        computer.goes_on.clear()
        await world.offer(joining("a")).future
        await world.until(lambda: len(computer.asked) == 1)
        world.replica.step_down("node-2")
        await world.until(lambda: computer.ended == 1)
        computer.goes_on.set()
        await world.settle()
        dropped = world.events("TargetStored")
        world.replica.lead(2)
        beat = world.offer(
            lambda call: c.ConsumerGroupHeartbeat(c.Caller(call, "p", "client"), "g", "a", 1)
        )
        await beat.future
        await world.until(lambda: bool(world.events("TargetStored")))

        assert dropped == []

    asyncio.run(story())


def test_a_node_that_stops_ends_what_it_computes() -> None:
    """Else its process would wait for the child, or the child outlive it."""

    async def story() -> None:
        computer = Computer()
        world = await leading(computer)
        computer.goes_on.clear()
        await world.offer(joining("a")).future
        await world.until(lambda: len(computer.asked) == 1)
        world.actors.stop()
        await world.until(lambda: computer.ended == 1)

    asyncio.run(story())


def test_inv_16_a_target_that_the_log_refuses_is_put_on_it_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """INV-16: no caller would repeat it."""
    monkeypatch.setattr("holdfast.runtime.groups.actor.REFUSED_RETRY_S", 0.0)

    async def story() -> None:
        computer = Computer()
        world = await leading(computer)
        computer.goes_on.clear()
        await world.offer(joining("a")).future
        world.replica.fail_next = Overloaded("full")
        computer.goes_on.set()
        await world.until(lambda: bool(world.events("TargetStored")))

        assert len(computer.asked) == 1

    asyncio.run(story())


# --- real processes ---


@pytest.mark.parametrize("assignor", ["uniform", "range"])
@pytest.mark.parametrize("homogeneous", [True, False])
def test_a_child_computes_what_the_node_would(assignor: str, *, homogeneous: bool) -> None:
    """K-P12, K-P13: member ids may be any text."""
    sets = [frozenset({"t", "u"}), frozenset({"t", "u"} if homogeneous else {"u"})]
    held = (TopicPartitions("t", (0, 3)),)
    names = ["\u00e9\u4e2d", 'quoted"', "c", "\U0001f600", "e"]
    specs = {
        name: MemberSpec(f"i-{name}" if number % 2 else None, "r", sets[number % 2], held[number:])
        for number, name in enumerate(names)
    }
    spec = GroupSpec(specs, homogeneous)
    question = ComputeTarget(2, assignor, spec, {"t": 7, "u": 4, "v": 1})
    whole = ASSIGNORS[assignor](spec, question.sizes)

    found = asyncio.run(in_child(question))

    assert found == {name: owned for name, owned in whole.items() if owned}


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a child that waits for ever writes its process id."""
    (tmp_path / "waits.py").write_text(WAITS)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.getenv("PYTHONPATH", "")]))
    monkeypatch.setenv("MADE", str(tmp_path / "pid"))
    monkeypatch.setattr(target_maker, "_PROGRAM", "waits")
    return tmp_path / "pid"


async def started(made: Path) -> int:
    """Wait for a child that waits; its process id."""
    await asyncio.to_thread(until, made.exists, "the child runs")
    return int(await asyncio.to_thread(made.read_text))


def test_inv_16_a_child_that_was_killed_is_an_error_that_says_so(made: Path) -> None:
    """INV-16: as by a kernel without memory."""

    async def story() -> None:
        task = asyncio.ensure_future(in_child(asked()))
        os.kill(await started(made), signal.SIGKILL)
        with pytest.raises(OSError, match="ended with -9"):
            await task

    asyncio.run(story())


def test_a_node_that_stops_ends_its_child(made: Path) -> None:
    """Else it would go on beside the next process of the node."""

    async def story() -> None:
        maker = TargetMaker(lambda _: None)
        maker.ask("g", asked())
        child = Path(f"/proc/{await started(made)}")
        maker.clear()
        await asyncio.to_thread(until, lambda: not child.exists(), "the child has ended")

    asyncio.run(story())

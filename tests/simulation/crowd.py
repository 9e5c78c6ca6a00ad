"""The members of all groups, who come and go: slots that are taken, left, and taken again.

A slot is one place in one group, static (with an instance id) or dynamic. What happens to it is
drawn from its own chance, so that a fault that is left out changes nothing here: it joins, leaves,
restarts with a release, dies without a word, is started anew while its old process still runs.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Final

from simulation.members import MemberPlan, SimMember
from simulation.process import Clock, Process

if TYPE_CHECKING:
    from collections.abc import Callable

    from simulation.recorder import Recorder
    from simulation.schedule import Schedule
    from simulation.storage import OutsideStorage

SECONDS: Final = 1_000_000
STAY_S: Final = (6.0, 40.0)
"""How long a process is left alone."""
ROLL_S: Final = (0.0, 6.0)
"""How long it takes until a slot is rolled, when its group is."""
ROLLED_S: Final = (0.3, 1.5)
AWAY_S: Final = (0.3, 9.0)
"""How long a slot stays empty, but for those that come back at once."""


class Slot:
    """One place in a group, and whoever has it now."""

    def __init__(self, crowd: Crowd, name: str, plan: MemberPlan, random: Random) -> None:
        self.name, self.plan, self.random = name, plan, random
        self._crowd = crowd
        self.clock = Clock(crowd.schedule)
        self._starts = 0
        self.members: list[SimMember] = []

    @property
    def current(self) -> SimMember | None:
        """The newest process, if it lives."""
        alive = [member for member in self.members if member.process.alive]
        return alive[-1] if alive else None

    def start(self, *, alone: bool = False) -> None:
        """Start a process here, beside one that still runs, if any. `alone`: only that."""
        if not self._crowd.active:
            return
        self._starts += 1
        name, chance = f"{self.name}.{self._starts}", Random(self.random.getrandbits(64))
        process = Process(name, self.name, self._crowd.schedule, self.clock, chance)
        crowd = self._crowd
        self.members.append(
            SimMember(self.plan, process, crowd.recorder, crowd.storage, crowd.addresses())
        )
        if not alone:
            self._later(STAY_S, self._move_on)

    def roll(self) -> None:
        """Exchange the program here for its next version."""
        member = self.current
        if not self._crowd.active or member is None:
            return
        member.ask_to_stop("restart")
        self._later(ROLLED_S, lambda: self.start(alone=True))

    def _later(self, between_s: tuple[float, float], act: object) -> None:
        pause_us = round(self.random.uniform(*between_s) * SECONDS)
        self._crowd.schedule.after(pause_us, act)  # type: ignore[arg-type]  # one of its methods

    def _move_on(self) -> None:
        """The next thing happens to whoever has the slot."""
        if not self._crowd.active:
            return
        member, chance = self.current, self.random.random()
        if member is None:
            self.start()
        elif chance < 0.25:
            member.ask_to_stop("leave")
            self._later(AWAY_S, self._move_on)
        elif chance < 0.60:
            member.ask_to_stop("restart")
            self._later((0.1, 2.0), self._move_on)
        elif chance < 0.80:
            member.process.kill()
            self._later(AWAY_S, self._move_on)
        else:
            self._replace(member)

    def _replace(self, member: SimMember) -> None:
        """Start anew while the old process is dead, or frozen, or runs on (a twin)."""
        if self.plan.instance_id is None or self.random.random() < 0.4:
            member.process.kill()
        elif self.random.random() < 0.5:
            member.process.pause()
            self._crowd.schedule.after(8 * SECONDS, member.process.resume)
        self.start()

    def heal(self) -> None:
        """Whoever is here goes on; an empty slot stays empty."""
        for member in self.members:
            member.process.resume()


class Crowd:
    """All slots of all groups."""

    def __init__(
        self,
        schedule: Schedule,
        recorder: Recorder,
        storage: OutsideStorage,
        random: Random,
        addresses: Callable[[], tuple[str, ...]],
    ) -> None:
        """`addresses`: of the nodes that the cluster has now, for members that start."""
        self.schedule, self.recorder, self.storage = schedule, recorder, storage
        self.addresses = addresses
        self.active = True
        self.slots: list[Slot] = []
        self._random = random

    def add(self, name: str, plan: MemberPlan) -> None:
        """A place in a group; somebody takes it soon."""
        slot = Slot(self, name, plan, Random(self._random.getrandbits(64)))
        self.slots.append(slot)
        self.schedule.after(slot.random.randint(0, 3 * SECONDS), slot.start)
        for at_us in plan.population.rolls_us:
            self.schedule.at(at_us + round(slot.random.uniform(*ROLL_S) * SECONDS), slot.roll)

    def removable(self, group: str) -> list[str]:
        """Instance ids of a group, for the operator to choose from."""
        found = (slot.plan.instance_id for slot in self.slots if slot.plan.group == group)
        return [instance for instance in found if instance]

    def calm_down(self) -> None:
        """Nobody comes or goes by itself from now on; who stands still goes on."""
        self.active = False
        for slot in self.slots:
            slot.heal()

    @property
    def alive(self) -> list[SimMember]:
        """All members whose process lives."""
        return [member for slot in self.slots for member in slot.members if member.process.alive]

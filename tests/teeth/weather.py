"""What goes wrong in the runs that look for a defect, and how long it goes on.

A defect shows where its rule is needed; a weather has more of that. All are lists of ordinary
faults of the simulator, so that a clean run of the same seed must be clean.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple

from simulation import faults
from simulation.outcome import BUSY
from simulation.populations import CONVERTING, DYNAMIC, MIXED, OLD, STATIC
from simulation.schedule import US
from simulation.versions import exchanges

if TYPE_CHECKING:
    from simulation.faults import Planned
    from simulation.world import Shape


_BEATING: Final = (STATIC, DYNAMIC, MIXED)


class Weather(NamedTuple):
    """Kinds of faults that come one after another; none named: whatever the seed brings.

    `target`: at whom all are aimed; "": at whoever comes. `mixed`: older nodes are upgraded, too.
    `groups`: kinds of groups (simulation/populations.py). `seals`: the log is sealed now and then.
    """

    kinds: tuple[str, ...]
    until_s: float
    gap_s: tuple[float, float] = (1.0, 3.0)
    target: str = ""
    mixed: bool = False
    groups: tuple[str, ...] = OLD
    seals: bool = False

    @property
    def shape(self) -> Shape:
        """The world that it happens in."""
        fault_s = (BUSY.fault_s[0], self.until_s)
        return BUSY._replace(fault_s=fault_s, mixed=self.mixed, kinds=self.groups, seals=self.seals)

    def faults(self, seed: int) -> list[Planned]:
        """The faults of a seed."""
        begins_us, ends_us = (round(second * US) for second in self.shape.fault_s)
        if not self.kinds:
            return faults.plan(seed, begins_us, ends_us)
        random, at_us = Random(f"{seed} weather"), begins_us
        planned: list[Planned] = []
        while at_us < ends_us:
            fault = faults._one(random, len(planned) + 1, at_us, random.choice(self.kinds))
            planned.append(fault._replace(target=self.target or fault.target))
            at_us += round(random.uniform(*self.gap_s) * US)
        if self.mixed:
            planned += exchanges(seed, begins_us, ends_us, len(planned) + 1)
        return planned


WEATHERS: Final = {
    "storm": Weather((), 54.0),
    "calm": Weather(("connections-reset",), 24.0, (4.0, 9.0)),
    "failovers": Weather(("crash", "partition", "leader-cut-off", "transfer"), 30.0),
    "crashes": Weather(("crash", "power-cut", "snapshot", "new-disk"), 26.0),
    "frozen-clients": Weather(("client-pause", "client-cut"), 34.0, (0.3, 1.2)),
    "frozen-leaders": Weather(("pause", "leader-cut-off"), 44.0, (3.0, 5.0), "leader"),
    "changes": Weather((*faults.CHANGES, "crash", "partition", "transfer"), 34.0, (0.3, 1.5)),
    "lost-answers": Weather(("connections-reset", "crash", "loss"), 30.0, (0.4, 1.5)),
    "upgrades": Weather(("crash", "partition"), 30.0, (1.0, 4.0), mixed=True),
    "beats": Weather(
        (*faults.BEATS, "client-pause", "connections-reset"), 30.0, (0.3, 1.2), groups=_BEATING
    ),
    "calm-beats": Weather(("connections-reset",), 24.0, (4.0, 9.0), groups=_BEATING),
    "failing-over-beats": Weather(
        ("crash", "partition", "leader-cut-off", "transfer"), 30.0, groups=_BEATING
    ),
    "boundaries": Weather(("crash", "pause", "transfer", "new-disk"), 24.0, seals=True),
    "conversions": Weather(("connections-reset",), 34.0, (4.0, 9.0), groups=(CONVERTING,) * 3),
}

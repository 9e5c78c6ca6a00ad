"""The child processes of simulated nodes: models, which take their time by the node's clock.

Now and then one dies, or hangs until its node ends it. Knows what a node asks of a child, and
nothing of processes.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from holdfast.coordinator.consumer.assignors import ASSIGNORS

if TYPE_CHECKING:
    from random import Random

    from holdfast.coordinator.consumer.assignors import Target
    from holdfast.coordinator.model.effects import ComputeTarget

TAKES_S: Final = (0.02, 2.0)
DIES: Final = 0.1
HANGS: Final = 0.05
"""How likely it is that one does."""


class Children:
    """Computes targets beside a node's work; implements `ports.ComputesTargets`."""

    def __init__(self, random: Random) -> None:
        self._random = random

    async def __call__(self, asked: ComputeTarget) -> Target:
        """Compute a target, late, or not at all."""
        fate = self._random.random()
        if fate < HANGS:
            await asyncio.get_running_loop().create_future()
        await asyncio.sleep(self._random.uniform(*TAKES_S))
        if fate < HANGS + DIES:
            raise OSError("the child process ended with -9")
        return ASSIGNORS[asked.assignor](asked.spec, asked.sizes)

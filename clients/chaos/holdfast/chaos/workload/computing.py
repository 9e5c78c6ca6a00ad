"""An assignor that members of chaos run themselves (KIP-848): it takes its time, and it fails.

Workers are frozen and killed meanwhile, leaders too, so that all happens amid a computation.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from holdfast.client import ClientAssignor, StickyAssignor, Targets

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from random import Random

    from holdfast.client import GroupMember

TAKES_S: Final = (0.0, 1.0)
SLOW_S: Final = (4.0, 9.0)
"""About a rebalance timeout: then another member is chosen."""
_SLOW: Final = 0.1
_FAILS: Final = 0.1
"""How often it is slow, and how often it makes no target."""


class ChaosAssignor(ClientAssignor):
    """Shares partitions out as the sticky assignor does, late, or not at all."""

    name = "chaos"

    def __init__(self, random: Random) -> None:
        self._random = random

    async def assign(
        self, members: Sequence[GroupMember], partition_counts: Mapping[str, int]
    ) -> Targets:
        """Compute a target; raises RuntimeError now and then."""
        slow = self._random.random() < _SLOW
        await asyncio.sleep(self._random.uniform(*(SLOW_S if slow else TAKES_S)))
        if self._random.random() < _FAILS:
            raise RuntimeError("as was wished, there is no target this time")
        shares = StickyAssignor().assign(members, partition_counts)
        return Targets(shares, {each.member_id: each.member_id.encode() for each in members})

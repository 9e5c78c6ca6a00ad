"""The user's callbacks that are under way, and for which reconciliation each was asked for.

Callbacks run one after another, in the order in which they were asked for. Each reconciliation has
a number; a fence, a leave, a newer target or the end of the lease raises it, and what was asked for
under an older number ends without effect. No IO, no clock.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from holdfast.client._session.session_io import Revoke

if TYPE_CHECKING:
    from holdfast.client._session.session_io import Output, TopicPartition


class CallbackOrder:
    """Numbers of the callbacks that have not returned, the oldest first."""

    def __init__(self, outputs: list[Output]) -> None:
        self.number = 0
        self._outputs = outputs
        self._running: deque[int] = deque()

    @property
    def idle(self) -> bool:
        """Whether the user has heard everything."""
        return not self._running

    def supersede(self) -> None:
        """Begin another reconciliation: what runs for an older one changes nothing any more."""
        self.number += 1

    def await_all(self, partitions: tuple[TopicPartition, ...] = ()) -> None:
        """Have the user let go of these, and learn when all that was told before is heard."""
        self._outputs.append(Revoke(partitions))
        self._running.append(self.number)

    def ended(self) -> bool:
        """Note that the oldest has returned; return whether it was asked for by the present one."""
        if not self._running:
            return False
        return self._running.popleft() == self.number

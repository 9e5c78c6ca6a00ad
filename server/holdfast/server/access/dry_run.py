"""What a dry run tells: calls that `deny` would refuse, in the node's log, boundedly often.

An operator reads it before switching to `deny`. Each principal, call and kind of thing is told
once a while, with the name of the first; the rest is counted.
"""

from __future__ import annotations

import logging
from time import monotonic
from typing import TYPE_CHECKING, Final

from holdfast.coordinator.model.text import truncate
from holdfast.server.rpc.callers import named

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.server.access.table import Need

logger = logging.getLogger(__name__)

AGAIN_S: Final = 60.0
"""Seconds until the same is told again."""
TOLD_MAX: Final = 1_000
"""Different things that are told within these seconds; any more are only counted."""


class DryRun:
    """Tells what would be refused."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._told: dict[tuple[str, str, str], int] = {}
        """How often each was found since `_since`."""
        self._since = clock()
        self._untold = 0

    def note(
        self, principal: str, call: str, need: Need, name: str, request: object = None
    ) -> None:
        """Note that a call would be refused; tell it, unless it was told just now.

        `request`: its request, which may have an id.
        """
        if self._clock() - self._since >= AGAIN_S:
            self._sum_up()
        key = (principal, call, need.kind)
        known = self._told.get(key, 0)
        if not known and len(self._told) >= TOLD_MAX:
            self._untold += 1
            return
        self._told[key] = known + 1
        if not known:
            logger.warning(
                "dry run: %s by %r would be refused: it needs the role %s on %s %r",
                call, truncate(principal), need.role, need.kind, truncate(name),
                extra=named(call, request),
            )  # fmt: skip

    def _sum_up(self) -> None:
        """Tell how many more there were, and begin anew."""
        more = sum(count - 1 for count in self._told.values()) + self._untold
        if more:
            logger.warning("dry run: %d more calls like these would be refused", more)
        self._told, self._since, self._untold = {}, self._clock(), 0

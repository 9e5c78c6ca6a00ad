"""The digests that nodes compare (S3): each is of one index, and made behind it, in steps.

Every node publishes the digest of its state at the same indexes. What changed since the last one
may be tens of thousands of records; taken in at once they stop the loop, on all nodes at the same
index. A state is an immutable value, so the digest of an index can be made while later entries are
applied: a step a turn of the loop, and sockets are served in between. Whoever asks for an
anchor of the log gets such a digest, too. Knows no engine and no disk.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from holdfast.raft.api import EngineStopped
from holdfast.runtime.ports import Anchor

if TYPE_CHECKING:
    from holdfast.runtime.replica.state_machine import StateMachine

logger = logging.getLogger(__name__)

DIGEST_EVERY: Final = 512
"""Nodes compare the digests of their states at every index that this divides (S3)."""

RECORDS_A_STEP: Final = 64
"""Records that are taken in before the loop may serve its sockets again: 1 to 2 ms."""

STATE_BYTES: Final = 8
"""A published digest begins with the state's own; the head of the chain follows."""

Publish = Callable[[int, bytes], None]
"""Takes an index and the digest of the state at it."""

Stop = Callable[[str], None]
"""Stops the node and says why: a state without a digest can be compared with nobody's."""


class Digests:
    """Publishes the digest of each index that nodes compare. Used by the loop's thread alone."""

    def __init__(self, publish: Publish, stop: Stop) -> None:
        """Begin with no digest under way."""
        self._publish, self._stop = publish, stop
        self._machine: StateMachine | None = None
        self._index = self._log_time_ms = self._recovery_number = 0
        self._publishes = self._scheduled = False
        self._asked: list[asyncio.Future[Anchor | None]] = []

    def note(self, index: int, machine: StateMachine) -> None:
        """Begin the digest of `machine`, which has just applied `index`, if nodes compare there.

        One that is still under way is finished first: each of these indexes gets its digest.
        """
        if index % DIGEST_EVERY:
            return
        while self._machine is not None:
            self._step()
        self._begin(machine, publishes=True)

    async def anchor(self, machine: Callable[[], StateMachine]) -> Anchor:
        """Return the anchor of an index that is applied now: the one whose digest is under way.

        If none is, it is that of this moment. `machine`: gives the machine that is used now, since
        another state may take its place meanwhile. Raises EngineStopped if there is no digest.
        """
        while True:
            if self._machine is None:
                self._begin(machine(), publishes=False)
            asked = asyncio.get_running_loop().create_future()
            self._asked.append(asked)
            told: Anchor | None = await asked
            if told is not None:
                return told

    def forget(self) -> None:
        """Drop what is under way: another state has taken its place."""
        self._machine = None
        self._tell(None)

    def _begin(self, machine: StateMachine, *, publishes: bool) -> None:
        machine.begin_digest()
        self._machine, self._publishes = machine, publishes
        self._index = machine.state.applied_index
        self._log_time_ms = machine.state.log_time_ms
        self._recovery_number = machine.state.recovery_number
        if not self._scheduled:
            self._schedule()

    def _tell(self, told: Anchor | None) -> None:
        """Tell whoever asked; None: ask again."""
        asked, self._asked = self._asked, []
        for future in asked:
            if not future.done():
                future.set_result(told)

    def _fail(self, error: Exception) -> None:
        asked, self._asked = self._asked, []
        for future in asked:
            if not future.done():
                future.set_exception(EngineStopped(f"the state has no digest: {error!r}"))

    def _schedule(self) -> None:
        self._scheduled = True
        asyncio.get_running_loop().call_soon(self._step_and_go_on)

    def _step_and_go_on(self) -> None:
        self._scheduled = False
        try:
            self._step()
        except Exception as error:
            logger.critical("alarm: the state at %d has no digest", self._index, exc_info=True)
            self.forget()
            self._stop(f"the state at index {self._index} has no digest: {error!r}")
        if self._machine is not None:
            self._schedule()

    def _step(self) -> None:
        if self._machine is None:
            return
        try:
            digest = self._machine.step_digest(RECORDS_A_STEP)
        except Exception as error:
            self._fail(error)
            raise
        if digest is not None:
            self._machine = None
            if self._publishes:
                self._publish(self._index, digest)
            own, chain = digest[:STATE_BYTES], digest[STATE_BYTES:]
            place = self._index, self._log_time_ms
            self._tell(Anchor(*place, chain, own, self._recovery_number))

"""Heartbeats of the heartbeat protocol that come late, or twice (S26).

A connection keeps its order; what stands between a client and a node may not: a proxy gives up, and
sends later what nobody waits for any more, or sends again what has arrived. So some heartbeats of a
member are sent again here, some are kept back and sent when their member has gone on. The member
hears nothing of these. Knows no rule.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from holdfast.chaos.workload.messages import Answer
from holdfast.client._rpc.caller import Caller
from holdfast.client._session.session_io import Failure, FailureKind
from holdfast.client.errors import OutcomeUnknown
from holdfast.v1 import group_pb2 as g

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from holdfast.chaos.workload.recorder import Recorder
    from holdfast.client import Credentials

DOUBLED: Final = 0.08
LATE: Final = 0.02
"""How many heartbeats come twice; how many come late and only then."""
AFTER_S: Final = (0.02, 6.0)
_ATTEMPT_MS: Final = 3_000
_UNHEARD: Final = Answer("unknown", "nobody waits for it", {})


class Echoes:
    """Sends heartbeats of one member late, on a connection of its own."""

    def __init__(
        self,
        endpoints: Sequence[str],
        credentials: Credentials,
        recorder: Recorder,
        who: str,
        random: Random,
    ) -> None:
        """`who`: the member; its echoes are calls of their own in the history."""
        self._caller = Caller(endpoints, credentials=credentials, client_id=who.partition("#")[0])
        self._recorder, self._who, self._random = recorder, f"{who}~", random
        self._under_way: set[asyncio.Task[None]] = set()

    def takes(self, request: Any) -> Failure | None:  # noqa: ANN401 - any request of the contract
        """Return how a heartbeat ends that is kept back; None: it goes on as usual."""
        if not isinstance(request, g.ConsumerGroupHeartbeatRequest):
            return None
        chance = self._random.random()
        if chance < DOUBLED + LATE:
            copy = g.ConsumerGroupHeartbeatRequest()
            copy.CopyFrom(request)
            task = asyncio.ensure_future(self._send(copy, self._random.uniform(*AFTER_S)))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)
        if chance >= LATE:
            return None
        return Failure(FailureKind.RETRY, OutcomeUnknown("the connection was lost"), 0)

    async def close(self) -> None:
        """Send nothing more."""
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)
        await self._caller.close()

    async def _send(self, request: g.ConsumerGroupHeartbeatRequest, after_s: float) -> None:
        await asyncio.sleep(after_s)
        call = self._recorder.invoked(self._who, request)
        try:
            await self._caller.attempt(request, _ATTEMPT_MS)
        finally:
            self._recorder.returned(call, _UNHEARD)

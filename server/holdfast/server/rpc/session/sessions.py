"""All Session streams of a node: how they are served, and how each of them ends.

Knows no calls: `stream` carries them out.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import grpc

from holdfast.runtime.errors import Crashed
from holdfast.server.rpc.callers import end
from holdfast.server.rpc.errors import ENDED, LEADER_KEY, OUTCOME_KEY
from holdfast.server.rpc.session.stream import Stream
from holdfast.server.security.seen_addresses import for_caller

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from holdfast.runtime.ports import ReplicaLike
    from holdfast.server.rpc.callers import Context
    from holdfast.server.rpc.session.stream import Desk
    from holdfast.v1 import group_pb2 as g

logger = logging.getLogger(__name__)


class Sessions:
    """All open Session streams of a node."""

    def __init__(self, replica: ReplicaLike, desk: Desk) -> None:
        self._replica, self._desk = replica, desk
        self._streams: dict[Stream, None] = {}

    async def serve(self, messages: AsyncIterator[g.SessionRequest], context: Context) -> None:
        """Serve one stream until the client ends it, or this node stops leading.

        A message that cannot be taken ends it with a status: a caller that numbers two calls alike
        could not tell their answers apart.
        """
        unanswered = False
        try:
            stream = Stream(self._desk, self._desk.callers.identity(context), context.peer())
            self._streams[stream] = None
            try:
                await stream.serve(messages, context)
            finally:
                unanswered = bool(stream.open)
                del self._streams[stream]
                stream.close()
            if stream.told_to_end:
                context.set_trailing_metadata(self._last_words())
        except ENDED as error:
            await end(context, error, "unknown" if unanswered else "not-applied")
        except grpc.aio.AbortError:
            raise
        except Exception:
            logger.exception("a stream failed inside")
            await end(context, Crashed("a stream"))

    def _last_words(self) -> tuple[tuple[str, str], ...]:
        """Tell who leads, and that calls without an answer were not begun (S5)."""
        leader = for_caller(self._desk.actors.leader_address)
        told = ((OUTCOME_KEY, "not-applied"),)
        return (*told, (LEADER_KEY, leader)) if leader else told

    def stop(self) -> None:
        """End every stream, once the calls that are open on it are answered."""
        for stream in self._streams:
            stream.end()

    # --- the replica's listener ---

    def listen(self) -> None:
        """Subscribe to the replica, behind the actors, who fail every open call."""
        self._replica.subscribe(on_not_leading=self.stop)

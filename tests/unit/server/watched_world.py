"""The world of the actors' tests with what a server keeps beside its actors: takeovers."""

from __future__ import annotations

from typing import cast

from holdfast.server.access.gate import Gate
from holdfast.server.access.principal_limits import PrincipalLimits
from holdfast.server.guard.pace import Pace
from holdfast.server.metrics.call_counts import CallCounts
from holdfast.server.rpc.arrived_heartbeats import ArrivedHeartbeats
from holdfast.server.rpc.callers import Asker, Callers, Context
from holdfast.server.rpc.calls.heartbeat_batch import HeartbeatBatches
from holdfast.server.rpc.calls.member_calls import MemberCalls
from holdfast.server.rpc.heartbeat_stream import HeartbeatStreams, Stream
from holdfast.server.rpc.pushes.carriers import Carriers
from holdfast.server.rpc.takeovers import Takeovers
from unit.runtime.fake_history import FakeHistory
from unit.runtime.world import World


class WatchedWorld(World):
    """One leading node whose takeovers of instance ids are counted."""

    def __init__(self) -> None:
        super().__init__()
        self.takeovers = Takeovers(self.replica, FakeHistory(self.replica))
        self.takeovers.listen()
        self.carriers = Carriers()

    def batches(self, callers: Callers | None = None) -> HeartbeatBatches:
        """What answers batches of heartbeats."""
        calls = MemberCalls(
            *(self.replica, self.actors, callers or Callers(), self.takeovers),
            Gate(lambda: self.replica.state),
        )
        return HeartbeatBatches(
            *(self.actors, calls, self.carriers, ArrivedHeartbeats()),
            *(CallCounts(), PrincipalLimits(lambda: self.replica.state)),
        )

    def streams(self) -> HeartbeatStreams:
        """What serves streams of heartbeats."""
        return HeartbeatStreams(self.batches(), Callers(), self.carriers, Pace())


def stream(callers: Callers | None = None) -> Stream:
    """A stream of nobody in particular."""
    return Stream(Asker(callers or Callers(), cast("Context", None)))

"""The world of the actors' tests with what a server keeps beside its actors: takeovers."""

from __future__ import annotations

from holdfast.server.rpc.takeovers import Takeovers
from unit.runtime.fake_history import FakeHistory
from unit.runtime.world import World


class WatchedWorld(World):
    """One leading node whose takeovers of instance ids are counted."""

    def __init__(self) -> None:
        super().__init__()
        self.takeovers = Takeovers(self.replica, FakeHistory(self.replica))
        self.takeovers.listen()

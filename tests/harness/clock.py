"""Virtual time: nothing moves it but the test."""

from __future__ import annotations


class VirtualClock:
    """The world's time in seconds. Starts away from zero, as a boot clock does."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        if seconds < 0:
            raise ValueError("time does not run backwards")
        self.now += seconds

    def __call__(self) -> float:
        return self.now


class NodeClock:
    """One node's boot clock: the world's, at a rate of its own, and it may stand still."""

    def __init__(self, world: VirtualClock, rate: float = 1.0) -> None:
        self._world, self._rate = world, rate
        self._origin = self._base = world.now

    def set_rate(self, rate: float) -> None:
        """Run at another rate from here on."""
        self._base, self._origin, self._rate = self(), self._world.now, rate

    def __call__(self) -> float:
        return self._base + (self._world.now - self._origin) * self._rate

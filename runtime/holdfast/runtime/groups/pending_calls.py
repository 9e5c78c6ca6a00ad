"""Calls that wait on this node for their answer, by number.

A service opens a call, an effect of a group's actor answers it, and the service closes it. Parked
calls are calls that are still open (S17). Those that are traced have their moments noted. Knows no
rules.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from holdfast.runtime.groups.moments import ANSWERED, PARKED

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable

    from holdfast.coordinator.model.ids import CallId, Position
    from holdfast.coordinator.model.replies import Reply
    from holdfast.runtime.groups.moments import Moments


class Answered(NamedTuple):
    """A reply, and the position of the change; None if nothing was recorded."""

    reply: Reply
    position: Position | None = None


class Calls:
    """All open calls of the node."""

    def __init__(self) -> None:
        self._open: dict[CallId, asyncio.Future[Answered]] = {}
        self._when_parked: dict[CallId, Callable[[], None]] = {}
        self.traced: dict[CallId, Moments] = {}
        """The open calls that are traced; look whether there is one before anything is noted."""
        self._last = 0

    def __len__(self) -> int:
        return len(self._open)

    def __contains__(self, call: object) -> bool:
        """Return whether the call is still open (S17)."""
        return call in self._open

    def open(self, moments: Moments | None = None) -> tuple[CallId, asyncio.Future[Answered]]:
        """Open a call; return its number, and the future of its answer.

        `moments`: where to note what becomes of it; None: it is not traced.
        """
        self._last += 1
        future: asyncio.Future[Answered] = asyncio.get_running_loop().create_future()
        self._open[self._last] = future
        if moments is not None:
            self.traced[self._last] = moments
        return self._last, future

    def note(self, calls: Iterable[CallId], name: str, at: float | None = None) -> None:
        """Note what happens to those of these calls that are traced."""
        for call in calls:
            if (moments := self.traced.get(call)) is not None:
                moments.note(name, at)

    def close(self, call: CallId) -> None:
        """Close a call: nobody waits for it any more."""
        self._open.pop(call, None)
        self._when_parked.pop(call, None)
        self.traced.pop(call, None)

    def _note_last(self, call: CallId) -> None:
        """Note the end of a call, if it is traced and has not ended before."""
        if self.traced and (moments := self.traced.pop(call, None)) is not None:
            moments.note(ANSWERED)

    def when_parked(self, call: CallId, tell: Callable[[], None]) -> None:
        """Have `tell` called if this call is parked by its own decision."""
        self._when_parked[call] = tell

    def decided(self, calls: Iterable[CallId]) -> None:
        """Note that the commands of these calls are carried out: what is open now is parked."""
        if not self._when_parked and not self.traced:
            return
        for call in calls:
            if call in self.traced:  # else it has its answer
                self.traced[call].note(PARKED)
            tell = self._when_parked.pop(call, None)
            if tell is not None and call in self._open:
                tell()

    def answer(self, call: CallId, answered: Answered) -> None:
        """Answer a call; ignore it if it is closed."""
        self._note_last(call)
        future = self._open.pop(call, None)
        if future is not None and not future.done():
            future.set_result(answered)

    def fail(self, call: CallId, error: Exception) -> None:
        """End a call without an answer."""
        self._when_parked.pop(call, None)
        self._note_last(call)
        future = self._open.pop(call, None)
        if future is not None and not future.done():
            future.set_exception(error)

    def fail_all(self, error: Callable[[], Exception], spare: Container[CallId] = ()) -> None:
        """End every call but those in `spare`; each gets an exception of its own."""
        for call in [call for call in self._open if call not in spare]:
            self.fail(call, error())

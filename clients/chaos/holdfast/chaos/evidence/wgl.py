"""The search for an order of operations that a single copy could have gone through.

Wing and Gong's search ("Testing and verifying concurrent objects", 1993) with Lowe's memory of
configurations ("Testing for linearizability", 2017): take any operation that was sent before the
first unanswered one was answered, let the model make the step, go on; when stuck, take the last
step back. A configuration (which operations were taken, and the model's state) that was seen once
is never tried again. What only reads is taken as soon as it can be, and never taken back for
another: it changes nothing for those that come after it. An operation without a known end may take
its step at any later time, or never. The search is bounded by steps, not by time, so that its
outcome is repeatable. Knows no offsets and no groups: the model is given.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar

State = TypeVar("State", bound=Hashable)

STEPS_MAX: Final = 2_000_000
"""Of one search: some seconds."""


class Operation(NamedTuple):
    """A call between two moments, as the model sees it."""

    call: str
    """Names the call, for people."""
    start_us: int
    end_us: int | None
    """None: it may never have had an effect."""
    what: Any
    """What was asked and answered, for the model."""
    reads: bool = False
    """It only tells a known state."""


class Outcome(NamedTuple):
    """What a search found."""

    linearizable: bool | None
    """None: the search was given up after `steps`."""
    steps: int
    blocked: Operation | None = None
    """If there is no order: an operation that has no place in the longest order found."""
    placed: Sequence[Operation] = ()


class _Event:
    """An operation's call or return, in a list that operations are lifted out of and put back."""

    __slots__ = ("after", "before", "number", "operation", "partner")

    def __init__(self, number: int, operation: Operation) -> None:
        self.number = number
        self.operation = operation
        self.partner: _Event | None = None
        """Of a call: its return, if it has one. A return has none."""
        self.before: _Event = self
        self.after: _Event | None = None


class _Search(Generic[State]):
    def __init__(
        self,
        operations: Sequence[Operation],
        initial: State,
        step: Callable[[State, Any], State | None],
    ) -> None:
        self._step = step
        self._state = initial
        self._head = _linked(operations)
        self._steps = 0
        self._unanswered = sum(1 for each in operations if each.end_us is not None)
        self._taken = 0
        self._seen: set[tuple[int, State]] = set()
        self._path: list[tuple[_Event, State, bool]] = []
        self._best: tuple[int, Operation | None, list[Operation]] = (-1, None, [])

    def run(self, steps_max: int) -> Outcome:
        """Search for an order; see the module's text."""
        at = self._after_reads()
        while self._unanswered and self._steps < steps_max:
            self._steps += 1
            if at is None or _is_return(at):
                self._remember(at)
                last = self._take_back()
                if last is None:
                    _, blocked, placed = self._best
                    return Outcome(False, self._steps, blocked, placed)  # noqa: FBT003 - its first field
                at = last.after
            else:
                at = self._after_reads() if self._take(at) else at.after
        return Outcome(None if self._unanswered else True, self._steps)

    def _after_reads(self) -> _Event | None:
        """Take every read that fits here; return where to continue with the rest."""
        at = self._head.after
        while at is not None and not _is_return(at):
            self._steps += 1
            after = at.after
            if at.operation.reads and self._step(self._state, at.operation.what) == self._state:
                self._lift(at, self._state, free=True)
                after = self._head.after  # its return may have been what was in the way
            at = after
        return self._head.after

    def _take(self, call: _Event) -> bool:
        """Let an operation happen now, if the model allows it and this was not tried before."""
        state = self._step(self._state, call.operation.what)
        if state is None:
            return False
        taken = self._taken | 1 << call.number
        if (taken, state) in self._seen:
            return False
        self._seen.add((taken, state))
        self._lift(call, state, free=False)
        return True

    def _lift(self, call: _Event, state: State, *, free: bool) -> None:
        self._path.append((call, self._state, free))
        self._state, self._taken = state, self._taken | 1 << call.number
        _lift(call)
        if call.partner is not None:
            _lift(call.partner)
            self._unanswered -= 1

    def _take_back(self) -> _Event | None:
        """Undo the last step that was a choice, and the reads after it.

        Return None if there was none.
        """
        while self._path:
            call, self._state, free = self._path.pop()
            self._taken &= ~(1 << call.number)
            if call.partner is not None:
                _put_back(call.partner)
                self._unanswered += 1
            _put_back(call)
            if not free:
                return call
        return None

    def _remember(self, blocked: _Event | None) -> None:
        if len(self._path) > self._best[0]:
            placed = [call.operation for call, *_ in self._path[-_SHOWN:]]
            self._best = (len(self._path), blocked.operation if blocked else None, placed)


_SHOWN: Final = 3
"""How much of the longest order is kept to be shown."""


def search(
    operations: Sequence[Operation],
    initial: State,
    step: Callable[[State, Any], State | None],
    steps_max: int = STEPS_MAX,
) -> Outcome:
    """Search for an order. `step` gives the state after an operation; None: it cannot happen."""
    return _Search(operations, initial, step).run(steps_max)


# --- the list ---


def _linked(operations: Sequence[Operation]) -> _Event:
    """Link all calls and returns in order of time, after a head; calls before returns."""
    timed: list[tuple[int, bool, int, _Event]] = []
    for number, operation in enumerate(operations):
        call = _Event(number, operation)
        timed.append((operation.start_us, False, number, call))
        if operation.end_us is not None:
            call.partner = _Event(-1, operation)
            timed.append((operation.end_us, True, number, call.partner))
    head = last = _Event(-1, Operation("", 0, None, None))
    for *_, event in sorted(timed, key=lambda each: each[:3]):
        last.after, event.before = event, last
        last = event
    return head


def _is_return(event: _Event) -> bool:
    return event.number < 0


def _lift(event: _Event) -> None:
    event.before.after = event.after
    if event.after is not None:
        event.after.before = event.before


def _put_back(event: _Event) -> None:
    event.before.after = event
    if event.after is not None:
        event.after.before = event

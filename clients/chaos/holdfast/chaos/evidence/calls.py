"""Calls of a history: each request with what became of it. Knows no invariant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from holdfast.chaos.evidence.memo import memo
from holdfast.chaos.history.happenings import Happening, Invoked, Returned

NEVER: Final = 1 << 62
"""Microseconds; later than everything."""

ONE_SHOT: Final = frozenset(
    {
        *("OffsetCommit", "OffsetDelete", "LeaveGroup", "RemoveMembers", "DeleteGroups"),
        *("TriggerRebalance", "CreateTopics", "CreatePartitions", "DeleteTopics", "AlterSettings"),
        "SealLog",
    }
)
"""Calls whose effect happens once for a request id, and whose answer is stored (S14)."""


class Call(NamedTuple):
    """A request and its answer; None: no answer was heard by the end of the history."""

    invoked: Invoked
    returned: Returned | None

    @property
    def op(self) -> str:
        """The contract's name for the call."""
        return self.invoked.op

    @property
    def group(self) -> str:
        """The group that it is about; "" for none."""
        return self.invoked.group

    @property
    def outcome(self) -> str:
        """As returned; `unknown` if it never was."""
        return self.returned.outcome if self.returned else "unknown"

    @property
    def ok(self) -> bool:
        """Whether it was answered without an error."""
        return self.outcome == "ok"

    @property
    def alive(self) -> bool:
        """Whether the member was accepted, as is a heartbeat that is told to rejoin (S11)."""
        if self.returned is None or self.invoked.op != "Heartbeat":
            return self.ok
        return self.ok or self.returned.error == "REBALANCE_IN_PROGRESS"

    @property
    def start_us(self) -> int:
        """When it was sent."""
        return self.invoked.at_us

    @property
    def end_us(self) -> int:
        """When the answer was heard, NEVER if none was."""
        return self.returned.at_us if self.returned else NEVER

    @property
    def result(self) -> dict[str, Any]:
        """What the answer says, empty without one."""
        return self.returned.result if self.returned else {}

    @property
    def request_id(self) -> str:
        """As sent; "" for none."""
        return str(self.invoked.arguments.get("request_id") or "")

    @property
    def member_id(self) -> str:
        """The member that the call says it is from; "" for none."""
        return str(self.invoked.arguments.get("member_id") or "")

    @property
    def position(self) -> tuple[int, int] | None:
        """The position in the log that the answer names."""
        found = self.result.get("position")
        return (int(found[0]), int(found[1])) if found else None

    def __str__(self) -> str:
        """Format the call and its caller for sentences."""
        return f"call {self.invoked.call} ({self.invoked.op} by {self.invoked.who})"


@memo
def calls_of(history: Iterable[Happening]) -> list[Call]:
    """Return all calls, in the order in which they were sent."""
    sent: dict[int, Invoked] = {}
    answers: dict[int, Returned] = {}
    for happening in history:
        if isinstance(happening, Invoked):
            sent[happening.call] = happening
        elif isinstance(happening, Returned) and happening.call in sent:
            answers[happening.call] = happening
    return [Call(invoked, answers.get(number)) for number, invoked in sent.items()]


def flaws(history: Sequence[Happening]) -> list[str]:
    """Say why a history cannot be judged: time that runs back, answers without or beyond a call."""
    found, last_us = [], 0
    open_calls: set[int] = set()
    known: set[int] = set()
    for happening in history:
        if happening.at_us < last_us:
            found.append(f"{type(happening).__name__} at {happening.at_us} us after {last_us} us")
        last_us = happening.at_us
        if isinstance(happening, Invoked):
            if happening.call in known:
                found.append(f"call {happening.call} was invoked twice")
            known.add(happening.call)
            open_calls.add(happening.call)
        elif isinstance(happening, Returned):
            if happening.call not in open_calls:
                how = "twice" if happening.call in known else "without having been invoked"
                found.append(f"call {happening.call} returned {how}")
            open_calls.discard(happening.call)
    return found

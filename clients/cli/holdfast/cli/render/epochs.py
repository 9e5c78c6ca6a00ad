"""Describe epochs of the heartbeat protocol: when, why, by whom, what moved, how long it took.

Reads `DescribedRebalance`, in which an epoch is told, and writes lines for people; asks no node,
decides nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.cli.render import explain
from holdfast.coordinator.model.text import readable, span

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.cli.render.times import Now
    from holdfast.v1 import admin_pb2 as a

_WHY: Final = {
    "joined": "{who} joined the group",
    "subscription": "{who} wants other topics",
    "assignor": "{who} wants another assignor, or tells one something new",
    "topics": "topics of the group were created, grew, or were deleted",
    "regex": "a regular expression of its members matches other topics",
    "left": "{gone} left",
    "removed": "{gone} removed by {operator}",
    "expired": "the session of {gone} ended: it was not heard in time",
    "asked": "{operator} asked for it",
}
"""Causes, by the words of the event that raises an epoch."""
_EXPIRED: Final = {
    "M25": "{gone} did not give up in time what it was asked for, though it was heard",
    "Q10": "{gone}, of the classic protocol, did not join again or sync in time",
}
"""Whose session did not end, and who is expelled all the same, by the rule."""
_OUTGROWN: Final = {
    "KIP-848": "the group became too large for its assignor while a member was to compute a target",
}
"""Who wants nothing else, by the rule."""


def lines(epoch: a.DescribedRebalance, newest: int, now: Now) -> Iterator[str]:
    """Yield the lines of one epoch: a headline, then the details, indented.

    `newest`: the number of the group's epoch now.
    """
    yield f"{explain.begun(epoch, now)}: epoch {epoch.generation_id}, {_reached(epoch, newest)}"
    yield f"  why: {why(epoch)}"
    yield f"  members: {epoch.members} before{explain.changes(epoch)}"
    yield from (f"  target: {line}" for line in _in_vain(epoch))
    yield f"  moved: {explain.counted(epoch) if epoch.HasField('join_phase_ms') else 'nothing'}"
    yield from (f"    {line}" for line in explain.moves(epoch))


def _in_vain(epoch: a.DescribedRebalance) -> Iterator[str]:
    """Write how many members were asked to compute the target and have not done so, and why."""
    if epoch.relieved:
        why = readable(epoch.problem) or "the last one did not answer in time"
        times = "once" if epoch.relieved == 1 else f"{epoch.relieved} times"
        yield f"asked for in vain {times}; {why}"


def all_of(epochs: Sequence[a.DescribedRebalance], newest: int, now: Now) -> Iterator[str]:
    """Yield the lines of all these epochs, which come with the newest first; it is the last."""
    for epoch in reversed(epochs):
        yield from lines(epoch, newest, now)


def why(epoch: a.DescribedRebalance) -> str:
    """Write the cause, with the member or the operator behind it."""
    words = _WHY.get(epoch.reason, epoch.reason)
    if epoch.reason == "expired":
        words = _EXPIRED.get(epoch.rule, words)
    if epoch.reason == "assignor":
        words = _OUTGROWN.get(epoch.rule, words)
    return words.format(
        who=explain.who(epoch),
        gone=explain.gone(epoch),
        operator=f"operator {epoch.principal or 'unknown'}",
    )


def _reached(epoch: a.DescribedRebalance, newest: int) -> str:
    """Write how far it got: a target, and everybody with what is its own."""
    if epoch.HasField("assigned_after_ms"):
        return f"everybody owns its part after {span(epoch.assigned_after_ms)}"
    overtaken = epoch.generation_id != newest
    if not epoch.HasField("join_phase_ms"):
        return "overtaken before it had a target" if overtaken else "without a target yet"
    target = f"target after {span(epoch.join_phase_ms)}"
    return f"{target}, overtaken on the way" if overtaken else f"{target}, members are on the way"

"""Describe who owned a partition at a place of the log: since when, by which event, who before.

Writes what a replay found, for people and for programs; asks no node and reads no log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from holdfast.cli.render.times import instant
from holdfast.coordinator.model.text import readable, span

if TYPE_CHECKING:
    from collections.abc import Iterator

_ENDED: Final = {
    "generation": "another generation began",
    "freed": "it gave the partition up",
    "released": "its process stopped, and said so",
    "replaced": "another process took its place",
    "left": "it left",
    "removed": "it was removed",
    "expired": "its session ended",
    "refused": "the group was full",
    "deleted": "the group was emptied or deleted",
}
"""Why somebody's time with a partition ended (`Interval.ended`)."""


def lines(told: Any) -> Iterator[str]:  # noqa: ANN401 - replay's Owned, unknown here
    """Yield who owned it, then who had owned it before, the newest first."""
    place = f"{readable(told.topic)}/{told.partition} of group {readable(told.group)}"
    yield f"{place} after {_place(told.at)}, the group's last record up to the place asked for:"
    for each in told.owners:
        yield f"  owned by {_who(each)}, token {each.token}"
        yield f"    since {_begun(each)}"
    if not told.owners:
        last = told.before[0] if told.before else None
        yield "  owned by nobody" + (f" since {_when(last.until_ms)}" if last else "")
    for each in told.before:
        for_time = span(each.until_ms - each.since_ms)
        yield f"  before: {_who(each)}, token {each.token}, for {for_time}"
        yield f"    since {_begun(each)}"
        yield f"    until {_when(each.until_ms)}: {_ENDED[each.how]}; {_step(each.ended)}"


def plain(told: Any) -> dict[str, Any]:  # noqa: ANN401 - replay's Owned, unknown here
    """Convert the answer to plain data."""
    return {
        **{name: getattr(told, name) for name in ("group", "topic", "partition")},
        "at": told.at._asdict(),
        "log_time_ms": told.log_time_ms,
        "owners": [_plain(each) for each in told.owners],
        "before": [_plain(each) for each in told.before],
    }


def _plain(owner: Any) -> dict[str, Any]:  # noqa: ANN401 - replay's Owner, unknown here
    steps = {name: _plain_step(getattr(owner, name)) for name in ("begun", "ended")}
    return {**owner._asdict(), "how": owner.how or None, **steps}


def _plain_step(step: Any) -> dict[str, Any] | None:  # noqa: ANN401 - replay's Step, unknown here
    return None if step is None else {**step._asdict(), "position": step.position._asdict()}


def _who(owner: Any) -> str:  # noqa: ANN401 - replay's Owner, unknown here
    if owner.instance_id is None:
        return f"member {readable(owner.member_id)}"
    return f"instance {readable(owner.instance_id)} (member {readable(owner.member_id)})"


def _begun(owner: Any) -> str:  # noqa: ANN401 - replay's Owner, unknown here
    if owner.begun is None:
        return f"before {_when(owner.since_ms)}, where a checkpoint begins the log"
    return f"{_when(owner.since_ms)}: {_step(owner.begun)}"


def _step(step: Any) -> str:  # noqa: ANN401 - replay's Step, unknown here
    number = "" if step.generation is None else f" of {step.generation}"
    cause = ", ".join(
        filter(
            None,
            (
                step.command and f"by {step.command}",
                step.rule and f"rule {step.rule}",
                step.principal and f"principal {readable(step.principal)}",
            ),
        )
    )
    return f"{step.event}{number} at {_place(step.position)}" + (f" ({cause})" if cause else "")


def _place(position: Any) -> str:  # noqa: ANN401 - a Position
    return f"{position.index}.{position.ordinal}"


def _when(log_time_ms: int) -> str:
    return f"log time {instant(log_time_ms)[:-1]}.{log_time_ms % 1000:03d}Z"

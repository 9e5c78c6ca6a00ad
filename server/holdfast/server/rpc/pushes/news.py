"""What an event tells members at once: that all have to join again, or that a member is gone.

In the heartbeat protocol more follows from the state after an event (`hints`). Decides nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from holdfast.coordinator.kernel.group_types import type_of
from holdfast.coordinator.model.membership import (
    CONVERTED,
    EXPIRED,
    LATE,
    LEFT,
    RECALLED,
    REFUSED,
    REMOVED,
    REPLACED,
    line_of,
)
from holdfast.v1 import errors_pb2 as e
from holdfast.v1 import extras_pb2 as x
from holdfast.v1 import group_pb2 as g

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from holdfast.coordinator.model.events import Record
    from holdfast.coordinator.model.ids import GroupId, MemberId
    from holdfast.coordinator.model.state import Group
    from holdfast.server.translate.refusals import Code

_FENCED: Final = e.ERROR_CODE_FENCED_INSTANCE_ID
_GONE: Final = e.ERROR_CODE_UNKNOWN_MEMBER_ID
_WHY: Final[Mapping[str, str]] = {
    LEFT: "",
    REMOVED: "{reason}",
    EXPIRED: "its session ended",
    REFUSED: "",
    LATE: "it did not rejoin in time",
    REPLACED: "another process took over {instance_id}",
}
"""The text for a member that is gone, by how it went; empty where its own call has the answer."""
NOBODY: Final = -1
"""The generation of a push about a group that is gone."""


def news(record: Record, group: Group[Any] | None) -> Iterator[g.HeartbeatPush]:
    """Yield a push for each member that must hear of an event now; the group is as after it."""
    event = record.event
    line = line_of(event)
    reason = line.reason(event) or ""
    if line.everyone in {RECALLED, CONVERTED} and group is not None:
        code = e.ERROR_CODE_REBALANCE_IN_PROGRESS
        for member_id in type_of(group).members(group):
            yield push(record.group_id, group, member_id, code, reason)
    elif why := _WHY.get(line.kind):
        code = _FENCED if line.kind == REPLACED else _GONE
        told = why.format(reason=reason, instance_id=line.instance_id(event))
        for member_id in line.went(event):
            yield push(record.group_id, group, member_id, code, told)


def gone(record: Record) -> tuple[MemberId, ...]:
    """Return the ids that get no more pushes after an event: nobody acts under them any more."""
    line = line_of(record.event)
    return (*line.went(record.event), *line.fenced(record.event))


def push(
    group_id: GroupId, group: Group[Any] | None, member_id: MemberId, code: Code, why: str = ""
) -> g.HeartbeatPush:
    """Make the push to one member."""
    return g.HeartbeatPush(
        group_id=group_id,
        member_id=member_id,
        generation_id=NOBODY if group is None else group.generation,
        error_code=code,
        holdfast=x.ResponseExtras(reason=why) if why else None,
    )

"""A described group on the terminal: its head, its members with what they own, its rebalances."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.cli.options import table
from holdfast.cli.render import explain
from holdfast.cli.render.speaking import say
from holdfast.cli.render.times import ago_log, now
from holdfast.coordinator.model.text import span
from holdfast.v1 import errors_pb2 as e

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.cli.render.times import Now
    from holdfast.v1 import admin_pb2 as a

CONSUMER: Final = "consumer"
SILENT_SHARE: Final = 2
"""A member is shown as silent when half of its session is over: it sends 3 heartbeats in one."""
_COLUMNS: Final = (
    *("INSTANCE", "MEMBER", "CLIENT", "PRINCIPAL", "HOST", "SESSION", "TOKEN", "OWNS", "NOTE"),
)


def show(response: a.DescribeGroupsResponse) -> None:
    """Print all groups that could be described."""
    present = now(response.holdfast.log_time_ms)
    found = [each for each in response.groups if each.error_code == e.ERROR_CODE_NONE]
    for number, each in enumerate(found):
        if number:
            say()
        _show(each, present)


def _show(found: a.DescribedGroup, present: Now) -> None:
    for line in _head(found, present.log_ms):
        say(line)
    if found.members:
        table(
            _COLUMNS,
            (_member(found, member) for member in found.members),
        )
    for rebalance in found.holdfast.rebalances:
        first, *rest = explain.lines(rebalance, present)
        say(f"rebalance of {first}")
        for line in rest:
            say(line)


def _head(found: a.DescribedGroup, now_ms: int) -> Iterator[str]:
    extra = found.holdfast
    since = ago_log(extra.state_since_ms, now_ms)
    yield f"{found.group_id}: {found.group_state}, generation {extra.generation_id}, since {since}"
    facts = [f"protocol type {found.protocol_type}"] if found.protocol_type else []
    facts += [f"protocol {found.protocol_data}"] if found.protocol_data else []
    facts += [f"{len(found.members)} members"]
    yield ", ".join(facts)
    if extra.message:
        yield extra.message


def _member(found: a.DescribedGroup, member: a.DescribedGroupMember) -> tuple[object, ...]:
    extra = member.holdfast
    return (
        member.group_instance_id or "-",
        member.member_id,
        member.client_id,
        extra.principal or "-",
        member.client_host,
        span(extra.session_timeout_ms),
        extra.fencing_token if extra.HasField("fencing_token") else "-",
        _owned(found, member),
        _note(member, found.holdfast.leader),
    )


def _owned(found: a.DescribedGroup, member: a.DescribedGroupMember) -> str:
    """Format the assigned partitions if they can be read, else the number of bytes."""
    assigned = member.holdfast.assigned_partitions
    if assigned or found.protocol_type == CONSUMER:
        places = ((each.topic, number) for each in assigned for number in each.partitions)
        return explain.partitions(places) or "-"
    return f"{len(member.member_assignment)} bytes" if member.member_assignment else "-"


def _note(member: a.DescribedGroupMember, leader: str) -> str:
    """Write what is special about a member: leader, restarting, taken over, silent.

    A static member that nobody uses, as after a downgrade to dynamic members (K-H1), shows as
    silent until its session ends.
    """
    extra = member.holdfast
    notes = ["group leader"] if member.member_id == leader else []
    notes += ["restarting"] if extra.released else []
    notes += [explain.fought_over(extra.takeovers)] if extra.takeovers > 1 else []
    left_ms, session_ms = extra.session_left_ms, extra.session_timeout_ms
    if extra.HasField("session_left_ms") and left_ms * SILENT_SHARE < session_ms:
        silent = f"not heard for {span(session_ms - left_ms)}, expires in {span(left_ms)}"
        notes.append(silent)
    return "; ".join(notes)

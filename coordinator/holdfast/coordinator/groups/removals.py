"""Which members a removal means that names none, in groups of every type (K-G24).

Knows no type: it reads of a member only what members of all types have.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from holdfast.coordinator.model.commands import LeaveGroup
from holdfast.coordinator.model.ids import MemberId
from holdfast.coordinator.model.replies import MemberResult


def unnamed(
    members: Iterable[Any], command: LeaveGroup, going: dict[MemberId, bool]
) -> tuple[MemberResult, ...]:
    """Find the members that are meant without a name, the oldest first; note that they go.

    These are the ones bound now, live or released (S12), so no identity is checked.
    """
    meant = [
        each
        for each in sorted(members, key=lambda each: each.joined_seq)
        if command.everyone or (each.instance_id or "").startswith(command.prefix)
    ]
    going.update((each.member_id, False) for each in meant)
    return tuple(MemberResult(each.member_id, each.instance_id, None) for each in meant)

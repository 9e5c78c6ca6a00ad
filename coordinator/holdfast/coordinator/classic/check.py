"""What must hold of a classic group beside what holds of every group (S6). Sentences; none is good.

Each sentence begins with the rule's id. Knows the state only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.coordinator.classic.transitions import COMPLETING, PREPARING
from holdfast.coordinator.model.state import EMPTY, STABLE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.coordinator.model.state import Group, Member

STATES: Final = frozenset({EMPTY, PREPARING, COMPLETING, STABLE})
"""The states that a stored group can be in."""

_DECIDED: Final = frozenset({COMPLETING, STABLE})
"""States in which a generation runs: there is a protocol, and a group leader."""


def check(group: Group) -> Iterator[str]:
    """What does not hold of the group, in time that does not follow its size."""
    if group.state not in STATES:
        yield f"transitions: there is no state {group.state!r}"
    if group.state == EMPTY and (group.members or group.leader or group.protocol_name is not None):
        yield "D9: it is Empty, but has members, a leader or a protocol"
    if group.members and group.protocol_type is None:
        yield "I2: it has members, but no protocol type"
    if group.state != PREPARING and (group.initial or group.round_timeout_ms):
        yield "D1: no join phase is open, but something is left of one"
    yield from _leadership(group)
    if len(set(group.rejoined)) != len(group.rejoined):
        yield "S16: a member rejoined the same generation twice"


def _leadership(group: Group) -> Iterator[str]:
    if group.leader is not None and group.leader not in group.members:
        yield f"D13: its leader {group.leader!r} is no member"
    if group.state not in _DECIDED:
        return
    if not group.members or group.leader is None or group.generation < 1:
        yield f"S16: it is {group.state} without members, leader or generation"
    if group.protocol_name is None:  # an empty name is one, as with Kafka
        yield f"D11: it is {group.state} without a protocol"


def check_member(group: Group, member: Member) -> Iterator[str]:
    """What does not hold of a member of the group."""
    who = f"member {member.member_id!r}"
    if group.state == STABLE and not member.granted_index:
        yield f"E5: {who} has no grant in a Stable group"
    if group.state in _DECIDED and not _speaks(member, group.protocol_name):
        yield f"I1: {who} does not support the protocol {group.protocol_name!r}"


def _speaks(member: Member, protocol_name: str | None) -> bool:
    return any(protocol.name == protocol_name for protocol in member.profile.protocols)

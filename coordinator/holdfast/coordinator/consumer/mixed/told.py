"""How answers to members of the classic protocol are built; nothing is decided here."""

from __future__ import annotations

from typing import Final

from holdfast.coordinator.consumer import answers, holdings, sessions
from holdfast.coordinator.consumer.state import ConsumerGroup, Member
from holdfast.coordinator.groups import assignment_bytes
from holdfast.coordinator.groups.draft import Draft
from holdfast.coordinator.model.ids import UNCOMMITTED, MemberId
from holdfast.coordinator.model.replies import Grant, JoinReply, SyncReply

PROTOCOL_TYPE: Final = "consumer"
"""The only protocol type of members here."""


def protocol(member: Member) -> tuple[str, str]:
    """Return protocol type and name of a member: the service assigns, whatever it wants most."""
    names = () if member.classic is None else member.classic.protocols
    return PROTOCOL_TYPE, names[0].name if names else ""


def joined(draft: Draft, member_id: MemberId) -> JoinReply:
    """Return the answer of a join: its epoch, and no leader, since the service assigns."""
    group: ConsumerGroup = draft.group
    member = group.body.members[member_id]
    protocol_type, name = protocol(member)
    return JoinReply(
        None,
        generation=member.epoch,
        protocol_type=protocol_type,
        protocol_name=name,
        member_id=member_id,
        grant=grant(draft, member),
    )


def synced(draft: Draft, member: Member) -> SyncReply:
    """Return the answer of a sync: what the member owns."""
    protocol_type, name = protocol(member)
    owned = assignment_bytes.written(holdings.listed(member.owned))
    return SyncReply(None, protocol_type, name, owned, grant(draft, member))


def grant(draft: Draft, member: Member) -> Grant:
    """Return what a member has beside its assignment (S11 to S13).

    It gets one token for all that it owns, that of the newest grant: whoever owned one of these
    partitions before had an older one.
    """
    newest = newest_grant(member)
    return Grant(
        answers.token(draft.state, newest) if newest else 0,
        sessions.timeout_ms(draft, member),
        member.profile.rebalance_timeout_ms,
        answers.predecessor_ms(draft, member),
    )


def newest_grant(member: Member) -> int:
    """Return the entry of a member's newest grant; one that is not committed yet is newer."""
    indexes = {index for each in (*member.owned, *member.revoking) for index in each.granted}
    return UNCOMMITTED if UNCOMMITTED in indexes else max(indexes, default=0)

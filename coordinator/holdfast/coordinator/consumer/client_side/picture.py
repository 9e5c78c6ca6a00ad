"""How large the picture of a group is that the assignor of a member would be given (S7, ADR 57).

A group for which an answer has no room has no member chosen: each would be told that it is too
large, for ever. The bytes are an upper bound, so what is found to fit does fit. Decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from holdfast.coordinator.consumer.state import ConsumerBody, Member
from holdfast.coordinator.consumer.targets import topics_digest
from holdfast.coordinator.groups.sizes import (
    LIST_ON_LOG,
    NUMBER_ON_LOG,
    TEXT_ON_LOG,
    of_assignor,
    of_name,
    of_partitions,
)
from holdfast.coordinator.groups.usage import SIGN_BYTES_MAX, of_text
from holdfast.coordinator.model.events import TopicSize
from holdfast.coordinator.model.ids import TopicName

BYTES_MAX: Final = (16 << 20) - (64 << 10)
"""What one answer has room for (`server.guard.answer_size`)."""
_HEAD: Final = 1 << 10
"""The fields that a picture has once: the name of the assignor is the longest."""
_TOPIC: Final = 16
"""Beside the name of a topic: how many partitions it has, tags and lengths."""
_LIST: Final = 16
_PLACE: Final = 5
"""One topic in a list: its place among all topics of the picture."""
_MEMBER: Final = 64
"""Beside the texts and lists of a member: its epoch, its list of topics, tags and lengths."""
_NAME_MOST: Final = 292 + TEXT_ON_LOG
"""The id of a member that joined by the classic protocol; the name of a topic is shorter."""
_MEMBER_MOST: Final = _MEMBER + _NAME_MOST + 2 * SIGN_BYTES_MAX * _NAME_MOST
"""A member: its id, instance id and rack, the latter two in any letters."""


def most(body: ConsumerBody, topics: Mapping[TopicName, TopicSize], assignor: str) -> int:
    """Return at most how many bytes the picture has: it looks at all members, and their targets."""
    named = [of_name(name) + _TOPIC for name in topics_digest.subscribed(body) if name in topics]
    members = [_of_member(body, member, assignor) for member in body.members.values()]
    return _HEAD + sum(named) + _of_lists(body) + sum(members)


def fits(body: ConsumerBody, topics: Mapping[TopicName, TopicSize], assignor: str) -> bool:
    """Return whether an answer has room for the picture.

    It is asked at each choice, so what is far from too large is not looked at closely.
    """
    return roughly(body, topics, assignor) <= BYTES_MAX or most(body, topics, assignor) <= BYTES_MAX


def roughly(body: ConsumerBody, topics: Mapping[TopicName, TopicSize], assignor: str) -> int:
    """Return a coarser bound, for which of all members only the targets are counted."""
    named = [of_name(name) + _TOPIC for name in topics_digest.subscribed(body) if name in topics]
    matched = [
        n * len(body.regexes[e].topics) for e, n in body.regex_users.items() if e in body.regexes
    ]
    places = sum(body.topic_users.values()) + sum(matched)
    given = [len(each.partitions) for target in body.targets.values() for each in target.partitions]
    return (
        _HEAD
        + sum(named)
        + (_MEMBER_MOST + _LIST) * len(body.members)
        + _PLACE * places
        + body.client_assignor_bytes.get(assignor, 0)
        + (_NAME_MOST + LIST_ON_LOG) * len(given)
        + NUMBER_ON_LOG * sum(given)
    )


def _of_lists(body: ConsumerBody) -> int:
    """Return at most the bytes of the lists of topics; those that want the same share one."""
    wishes = {(each.profile.topics, each.profile.regex) for each in body.members.values()}
    matched = {regex: len(found.topics) for regex, found in body.regexes.items()}
    return sum([_LIST + _PLACE * (len(names) + matched.get(regex, 0)) for names, regex in wishes])


def _of_member(body: ConsumerBody, member: Member, assignor: str) -> int:
    said = member.profile.client_assignor(assignor)
    target = body.targets.get(member.member_id)
    return (
        _MEMBER
        + of_text(member.member_id)
        + of_text(member.instance_id or "")
        + of_text(member.profile.rack_id or "")
        + (0 if said is None else of_assignor(said))
        + (0 if target is None else of_partitions(target.partitions))
    )

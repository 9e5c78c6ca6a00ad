"""Finds out whether the topics of a group have changed since its last epoch (K-M27).

The digest covers name, size and creation of each topic that exists and that a member subscribes to.
A topic that was deleted and created again is another one, though it looks the same. Decides
nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Final

from holdfast.coordinator.consumer.state import ConsumerBody
from holdfast.coordinator.groups.draft import Draft
from holdfast.coordinator.model.events import TopicSize
from holdfast.coordinator.model.ids import TopicName
from holdfast.coordinator.structures.pmap import PMap

_DIGEST_BYTES: Final = 16


def subscribed(body: ConsumerBody) -> frozenset[TopicName]:
    """Return the topics that members name, or that their regular expressions match."""
    matched = [name for found in body.regexes.values() for name in found.topics]
    return frozenset((*body.topic_users, *matched))


def of(names: Iterable[TopicName], topics: PMap[TopicName, TopicSize]) -> bytes:
    """Return the digest of those of these topics that exist; empty if none does."""
    found = [topics[name] for name in sorted(names) if name in topics]
    if not found:
        return b""
    text = "\0".join(f"{name}:{size}:{created}" for name, size, created in found)
    return sha256(text.encode()).digest()[:_DIGEST_BYTES]


_newest: list[tuple[PMap[TopicName, TopicSize], int]] = []
"""The last answer of `newest_index`; kept by identity of an immutable value, so never stale."""


def newest_index(topics: PMap[TopicName, TopicSize]) -> int:
    """Return when the newest of these topics was created; they are looked at once."""
    if not _newest or _newest[0][0] is not topics:
        found = max([each.created_index for each in topics.values()], default=0)
        _newest[:] = [(topics, found)]
    return _newest[0][1]


def now(draft: Draft) -> bytes:
    """Return the digest of the group's topics as they are, and note that they were looked at."""
    topics = draft.state.topics
    draft.volatile = draft.volatile._replace(topics_seen=topics)
    return of(subscribed(draft.group.body), topics)


def moved(draft: Draft) -> bool:
    """Return whether the group's topics have changed since its last epoch.

    While no topic of the cluster changes, this looks at none.
    """
    if draft.volatile.topics_seen is draft.state.topics:
        return False
    known: bytes = draft.group.body.digest
    return now(draft) != known


def sizes(body: ConsumerBody, topics: Mapping[TopicName, TopicSize]) -> dict[TopicName, int]:
    """Return how many partitions each topic has that exists and is subscribed to."""
    names = sorted(subscribed(body))
    return {name: topics[name].num_partitions for name in names if name in topics}

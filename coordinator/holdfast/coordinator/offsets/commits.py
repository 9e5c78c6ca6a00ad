"""Offsets of a group: commit, delete, expire (K-J1 to K-J34, K-C8 to K-C11, K-F12).

The order of checks is Kafka's: first whether the partition exists, then who commits, then what.
Knows nothing of how members join; only who is a member now, and at which generation.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from holdfast.coordinator.cluster import settings
from holdfast.coordinator.groups.lifecycle import delete_empty, invalid_group_id
from holdfast.coordinator.model.events import GroupCreated, OffsetsCommitted, OffsetsDeleted
from holdfast.coordinator.model.ids import TopicPartition
from holdfast.coordinator.model.rejections import (
    GroupIdNotFound,
    GroupSubscribedToTopic,
    InvalidCommitOffsetSize,
    NonEmptyGroup,
    OffsetMetadataTooLarge,
    TopicAuthorizationFailed,
    UnknownTopic,
)
from holdfast.coordinator.model.replies import OffsetsReply, PartitionResult

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.coordinator.groups.draft import Draft
    from holdfast.coordinator.model.commands import CommitOffsets, DeleteOffsets, ExpireOffsets
    from holdfast.coordinator.model.events import OffsetCommitted
    from holdfast.coordinator.model.rejections import Rejection
    from holdfast.coordinator.model.state import Group, Offset, State
    from holdfast.coordinator.model.subscriptions import Subscribed

EXPIRED_AT_ONCE_MAX: Final = 20_000
"""Offsets that one sweep of a group may list; the rest waits for the next one (S7)."""
OFFSET_BYTES: Final = 64
"""Of one offset on the log and in the stored answer, at most, beside its texts."""
ENTRY_HEAD_BYTES: Final = 8_192
"""Of an entry with one commit, at most, beside its offsets."""


# --- commit ---


def commit(draft: Draft, command: CommitOffsets) -> OffsetsReply:
    """Commit the offsets that may be; one result for each partition. Renew the session (K-F12)."""
    bad_id = invalid_group_id(command.group_id)
    if bad_id:
        return OffsetsReply(bad_id)
    results = _commit_results(draft, command)
    granted = tuple(
        [
            offset
            for offset, result in zip(command.offsets, results, strict=True)
            if result.error is None
        ]
    )
    too_much = _oversized(draft.state, granted)
    if too_much:
        return OffsetsReply(too_much)
    if granted:
        if draft.found is None:
            draft.emit(GroupCreated(), "J1")
        draft.emit(OffsetsCommitted(granted), _commit_rule(command))
    _renew(draft, command, results)
    return OffsetsReply(None, results)


def _commit_results(draft: Draft, command: CommitOffsets) -> tuple[PartitionResult, ...]:
    refusal = _commit_refusal(draft, command)
    most = settings.of(draft.state, command.group_id).offset_metadata_max
    return tuple(
        [
            PartitionResult(
                TopicPartition(offset.topic, offset.partition),
                _forbidden(command, offset.topic)
                or _unknown_partition(draft.state, offset)
                or refusal
                or _too_large(offset, most),
            )
            for offset in command.offsets
        ]
    )


def _forbidden(command: CommitOffsets | DeleteOffsets, topic: str) -> Rejection | None:
    """Refuse before anything else: the answer must not tell whether the topic is there."""
    return TopicAuthorizationFailed(topic) if topic in command.forbidden else None


def _unknown_partition(state: State, place: OffsetCommitted | TopicPartition) -> Rejection | None:
    size = state.topics.get(place.topic)
    if size is None:
        return UnknownTopic(place.topic)
    if not 0 <= place.partition < size.num_partitions:
        return UnknownTopic(f"{place.topic}-{place.partition}")
    return None


def _too_large(offset: OffsetCommitted, most: int) -> Rejection | None:
    """Refuse a text over the limit, which counts characters, not bytes (K-J14)."""
    length = len(offset.metadata)
    return OffsetMetadataTooLarge(length, most) if length > most else None


def _oversized(state: State, granted: tuple[OffsetCommitted, ...]) -> Rejection | None:
    """Refuse a commit that no entry of the log could hold with its stored answer (S7).

    Otherwise it would fail only when it is proposed, together with the rest of its batch.
    """
    most = settings.of_cluster(state).entry_bytes_max - ENTRY_HEAD_BYTES
    size = sum(
        [
            2 * len(each.topic.encode()) + len(each.metadata.encode()) + OFFSET_BYTES
            for each in granted
        ]
    )
    return InvalidCommitOffsetSize(size, most) if size > most else None


def _commit_refusal(draft: Draft, command: CommitOffsets) -> Rejection | None:
    """Say why this caller may not commit now: a generation needs a group, whose type decides."""
    if draft.found is None:
        return GroupIdNotFound(command.group_id) if command.generation >= 0 else None
    return draft.group_type.may_commit(draft.state, draft.found, command)


def _commit_rule(command: CommitOffsets) -> str:
    return "F12" if command.generation >= 0 else "J4"


def heard_again(draft: Draft, command: CommitOffsets) -> None:
    """Renew a session by a repeated commit, if it would be accepted now (K-F12).

    Kafka executes it anew; here only its answer is old (S14).
    """
    _renew(draft, command, _commit_results(draft, command))


def _renew(draft: Draft, command: CommitOffsets, results: tuple[PartitionResult, ...]) -> None:
    """Renew a session by an accepted commit, also if single partitions fail (K-F12).

    A commit that names no existing partition, or none that the caller may touch, does not reach the
    group, as in Kafka.
    """
    group = draft.found
    if group is None or draft.group_type.is_empty(group):
        return
    lost = (UnknownTopic, TopicAuthorizationFailed)
    heard = any(not isinstance(result.error, lost) for result in results)
    if heard and _commit_refusal(draft, command) is None:
        draft.group_type.heard(draft, command)


# --- delete ---


def delete(draft: Draft, command: DeleteOffsets) -> OffsetsReply:
    """Delete offsets of topics that no member subscribes to (K-J22 to K-J25)."""
    refusal = invalid_group_id(command.group_id) or _delete_refusal(draft, command)
    if refusal:
        return OffsetsReply(refusal)
    group = draft.group
    subscribed = draft.group_type.subscribed(group)
    results = tuple(
        PartitionResult(
            place,
            _forbidden(command, place.topic) or _kept(draft.state, subscribed, place),
        )
        for place in command.partitions
    )
    gone = {r.partition for r in results if r.error is None and r.partition in group.offsets}
    if gone:
        draft.emit(OffsetsDeleted(tuple(sorted(gone))), "J24")
    return OffsetsReply(None, results)


def _delete_refusal(draft: Draft, command: DeleteOffsets) -> Rejection | None:
    group = draft.found
    if group is None:
        return GroupIdNotFound(command.group_id)
    if draft.group_type.is_empty(group) or draft.group_type.tells_topics(group):
        return None
    return NonEmptyGroup(len(draft.group_type.members(group)))


def _kept(state: State, subscribed: Subscribed, place: TopicPartition) -> Rejection | None:
    """Say why this offset must stay; check first that its partition exists, as in a commit."""
    unknown = _unknown_partition(state, place)
    if unknown is not None:
        return unknown
    return GroupSubscribedToTopic(place.topic) if subscribed.includes(place.topic) else None


# --- expire ---


def expire(draft: Draft, command: ExpireOffsets) -> None:
    """Remove offsets that have expired, and at last the group itself (K-J26 to K-J34).

    Log time counts, never a wall clock (S8). The events list what is removed.
    """
    if draft.found is None:
        return
    room = settings.of_cluster(draft.state).entry_bytes_max - ENTRY_HEAD_BYTES
    room -= _forget(draft, _of_gone_topics(draft.state, draft.group), room, "J34")
    retention_ms = settings.of(draft.state, draft.group_id).retention_ms
    too_old_ms = command.log_time_ms - retention_ms
    rule = draft.group_type.expiry_rule(draft.group)
    if rule:
        _forget(draft, _expired(draft, too_old_ms), room, rule)
    if _group_expired(draft, too_old_ms):
        delete_empty(draft, "J32")


def _forget(draft: Draft, places: Iterator[TopicPartition], room: int, rule: str) -> int:
    """Record removed offsets, as far as there is room; return the bytes it takes, at most (S7)."""
    gone: list[TopicPartition] = []
    size = 0
    for place in islice(places, EXPIRED_AT_ONCE_MAX):
        size += OFFSET_BYTES + len(place.topic.encode())
        if size > room:
            break
        gone.append(place)
    if gone:
        draft.emit(OffsetsDeleted(tuple(sorted(gone))), rule)
    return min(size, room)


def _of_gone_topics(state: State, group: Group[Any]) -> Iterator[TopicPartition]:
    yield from [place for place in group.offsets if place.topic not in state.topics]


def _expired(draft: Draft, too_old_ms: int) -> Iterator[TopicPartition]:
    """Yield the offsets that are due, of topics to which no member subscribes."""
    group, kind = draft.group, draft.group_type
    subscribed, left = kind.subscribed(group), kind.is_empty(group) and kind.had_members(group)
    for place, offset in group.offsets.items():
        due = _base_ms(group, offset, left=left) <= too_old_ms
        if due and not subscribed.includes(place.topic):
            yield place


def _base_ms(group: Group[Any], offset: Offset, *, left: bool) -> int:
    """Return from when an offset ages; `left`: the group had members and has none any more.

    With its last member gone, the whole group starts to age together (K-J27). A commit from outside
    after that is younger, and kept in full; Kafka would remove it with the rest.
    """
    if left:
        return max(group.state_since_ms, offset.committed_ms)
    return offset.committed_ms


_NEVER_TOLD: Final = 1
"""The first join phase closes with generation 1. A group that is Empty at it closed with nobody."""


def _group_expired(draft: Draft, too_old_ms: int) -> bool:
    """Return whether an empty group without offsets is over (K-J32 bettered).

    It is kept for the retention time, too, so that its generation does not start over under a
    client that pauses. A group whose generation no member was ever told is removed at once:
    otherwise made-up names that no member joins would fill the node for the retention time. A group
    stays while a member was given its id and has not used it yet.
    """
    group = draft.group
    if not draft.group_type.is_empty(group) or group.offsets or draft.volatile.pending:
        return False
    return group.generation <= _NEVER_TOLD or group.state_since_ms <= too_old_ms

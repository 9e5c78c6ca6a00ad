"""Offsets of a group: requests and answers as plain mappings.

For members and for Admin. Knows the bounds of a call, and nothing of retries. No IO.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from holdfast.client._session.session_io import TopicPartition
from holdfast.client._translate.call_arguments import Offset, offsets_to_commit, partitions_listed
from holdfast.client.errors import from_code
from holdfast.v1 import extras_pb2, offset_pb2
from holdfast.v1.errors_pb2 import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from holdfast.client._session.session_io import Identity, Settings

Item = TypeVar("Item")


PARTITIONS_MAX: Final = 500
"""Partitions of one call, the service's bound; more are sent in several calls."""


def commit_request(
    settings: Settings,
    identity: Identity,
    offsets: Mapping[TopicPartition, Offset],
    request_id: str,
) -> offset_pb2.OffsetCommitRequest:
    """Make a commit under the member's present identity."""
    return offset_pb2.OffsetCommitRequest(
        group_id=settings.group,
        generation_id_or_member_epoch=identity.generation,
        member_id=identity.member_id,
        group_instance_id=settings.instance_id,
        topics=_topics(offsets),
        holdfast=extras_pb2.RequestExtras(request_id=request_id),
    )


def outside_commit_requests(
    group: str, offsets: Mapping[tuple[str, int], Offset | int]
) -> Iterator[offset_pb2.OffsetCommitRequest]:
    """Make commits from outside the group (K-J1, K-J4). Raises as `to_commit`."""
    for some in to_commit(offsets):
        yield offset_pb2.OffsetCommitRequest(group_id=group, topics=_topics(some))


def to_commit(
    offsets: Mapping[tuple[str, int], Offset | int],
) -> list[Mapping[TopicPartition, Offset]]:
    """Split offsets into parts, one a call, at least one; a plain number has no metadata.

    Raises ValueError for an impossible offset, TypeError for other values; both name the partition.
    """
    return [dict(some) for some in _parts(sorted(offsets_to_commit(offsets).items()))]


def _parts(items: Sequence[Item]) -> list[Sequence[Item]]:
    firsts = range(0, max(len(items), 1), PARTITIONS_MAX)
    return [items[first : first + PARTITIONS_MAX] for first in firsts]


def _topics(
    offsets: Mapping[TopicPartition, Offset],
) -> list[offset_pb2.OffsetCommitRequestTopic]:
    by_topic: dict[str, list[offset_pb2.OffsetCommitRequestPartition]] = {}
    for (topic, number), offset in offsets.items():
        partition = offset_pb2.OffsetCommitRequestPartition(
            partition_index=number,
            committed_offset=offset.value,
            committed_metadata=offset.metadata,
        )
        by_topic.setdefault(topic, []).append(partition)
    return [
        offset_pb2.OffsetCommitRequestTopic(name=topic, partitions=partitions)
        for topic, partitions in by_topic.items()
    ]


def delete_requests(
    group: str, partitions: Iterable[tuple[str, int]]
) -> Iterator[offset_pb2.OffsetDeleteRequest]:
    """Make calls that delete the offsets of these partitions. Raises as `partitions_listed`."""
    for some in _parts(list(partitions_listed(partitions))):
        by_topic: dict[str, list[offset_pb2.OffsetDeleteRequestPartition]] = {}
        for topic, number in some:
            partition = offset_pb2.OffsetDeleteRequestPartition(partition_index=number)
            by_topic.setdefault(topic, []).append(partition)
        topics = [
            offset_pb2.OffsetDeleteRequestTopic(name=topic, partitions=listed)
            for topic, listed in by_topic.items()
        ]
        yield offset_pb2.OffsetDeleteRequest(group_id=group, topics=topics)


def named(
    request: offset_pb2.OffsetCommitRequest | offset_pb2.OffsetDeleteRequest,
) -> Iterator[TopicPartition]:
    """Yield the partitions that a call names."""
    for topic in request.topics:
        for partition in topic.partitions:
            yield TopicPartition(topic.name, partition.partition_index)


def codes(
    response: offset_pb2.OffsetCommitResponse | offset_pb2.OffsetDeleteResponse,
) -> dict[TopicPartition, ErrorCode.ValueType]:
    """Return the error code of each partition."""
    return {
        TopicPartition(topic.name, partition.partition_index): partition.error_code
        for topic in response.topics
        for partition in topic.partitions
    }


def refusals(
    response: offset_pb2.OffsetCommitResponse,
) -> dict[TopicPartition, ErrorCode.ValueType]:
    """Return the refused partitions, each with its code."""
    return {
        name: code for name, code in codes(response).items() if code != ErrorCode.ERROR_CODE_NONE
    }


def fetch_request(
    group: str, partitions: Iterable[tuple[str, int]]
) -> offset_pb2.OffsetFetchRequest:
    """Make a request for the offsets of these partitions; none named: of all the group has.

    Raises as `partitions_listed`.
    """
    by_topic: dict[str, list[int]] = {}
    for topic, number in partitions_listed(partitions):
        by_topic.setdefault(topic, []).append(number)
    topics = [
        offset_pb2.OffsetFetchRequestTopic(name=topic, partition_indexes=numbers)
        for topic, numbers in by_topic.items()
    ]
    asked = offset_pb2.OffsetFetchRequestGroup(group_id=group, topics=topics)
    return offset_pb2.OffsetFetchRequest(groups=[asked])


def fetched(response: offset_pb2.OffsetFetchResponse) -> dict[TopicPartition, Offset]:
    """Read offsets by partition; one that was never committed is left out.

    Raises the refusal of the group or of its first refused partition.
    """
    offsets: dict[TopicPartition, Offset] = {}
    for group in response.groups:
        subject, why = f"Offsets of group {group.group_id!r}", response.holdfast.message
        _raise_if_refused(group.error_code, subject, why)
        for topic in group.topics:
            for partition in topic.partitions:
                name = TopicPartition(topic.name, partition.partition_index)
                _raise_if_refused(partition.error_code, f"Offset of {name}")
                if partition.committed_offset >= 0:
                    offsets[name] = Offset(partition.committed_offset, partition.metadata)
    return offsets


def _raise_if_refused(code: ErrorCode.ValueType, subject: str, why: str = "") -> None:
    if code != ErrorCode.ERROR_CODE_NONE:
        raise from_code(code, subject=subject, message=why)

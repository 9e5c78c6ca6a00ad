"""The requests of the heartbeat protocol, and their answers read.

One is a heartbeat, or a goodbye. Two are of the member that was chosen to compute a target.

When a request is sent, and what an answer means, is not known here. No IO, no clock.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from holdfast.client._session.session_io import Grant, ToldByAssignor, TopicPartition
from holdfast.client.errors import IncompatibleServer
from holdfast.v1 import extras_pb2, group_pb2

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from holdfast.client._session.session_io import SaidByAssignor, Settings, Subscription

EPOCH_JOIN: Final = 0
EPOCH_LEAVE: Final = -1
EPOCH_RELEASE: Final = -2
"""A static member's process stops, and its place is kept for the next one (S12)."""


class Fields(NamedTuple):
    """The fields that are left out while they are as the group knows them (None: nothing to say).

    The instance id is not among them: it goes out with every heartbeat, for only with it the
    service can tell a member whose place was taken from one that it never knew (K-N14, K-N15).
    """

    rack_id: str | None
    rebalance_timeout_ms: int
    topics: tuple[str, ...]
    regex: str
    server_assignor: str | None
    owned: frozenset[TopicPartition]
    client_assignors: tuple[SaidByAssignor, ...] | None


def fields_of(
    settings: Settings,
    subscription: Subscription,
    owned: frozenset[TopicPartition],
    client_assignors: tuple[SaidByAssignor, ...],
) -> Fields:
    """Say everything that a full heartbeat says."""
    return Fields(
        rack_id=settings.rack_id,
        rebalance_timeout_ms=settings.rebalance_timeout_ms,
        topics=subscription.topics,
        regex=subscription.regex,
        server_assignor=settings.server_assignor,
        owned=owned,
        client_assignors=client_assignors or None,
    )


def heartbeat(
    settings: Settings, epoch: int, fields: Mapping[str, object], number: extras_pb2.RequestExtras
) -> group_pb2.ConsumerGroupHeartbeatRequest:
    """Make a heartbeat that says these of `Fields`, by name; `number`: of it in its life."""
    request = goodbye(settings, epoch, number)
    for name, value in fields.items():
        match name:
            case "topics":
                request.subscribed_topic_names.CopyFrom(
                    group_pb2.ConsumerGroupTopicNames(names=value)  # type: ignore[arg-type]  # of its own kind
                )
            case "owned":
                request.topic_partitions.CopyFrom(_by_topic(value))  # type: ignore[arg-type]  # as above
            case "client_assignors":
                request.holdfast.client_assignors.CopyFrom(_said(value))  # type: ignore[arg-type]  # as above
            case "regex":
                request.subscribed_topic_regex = value  # type: ignore[assignment]  # as above
            case _:
                setattr(request, name, value)
    return request


def goodbye(
    settings: Settings, epoch: int, number: extras_pb2.RequestExtras
) -> group_pb2.ConsumerGroupHeartbeatRequest:
    """Make the last heartbeat: EPOCH_LEAVE or EPOCH_RELEASE."""
    return group_pb2.ConsumerGroupHeartbeatRequest(
        group_id=settings.group,
        member_id=settings.member_id,
        member_epoch=epoch,
        instance_id=settings.instance_id,
        holdfast=number,
    )


def read_assignment(
    response: group_pb2.ConsumerGroupHeartbeatResponse, member_id: str
) -> dict[TopicPartition, Grant] | None:
    """Return what the member is to own, each under its own grant (S13); None: as before.

    Raises IncompatibleServer for a partition without a token.
    """
    if not response.HasField("assignment"):
        return None
    extras = response.holdfast
    tokens = {
        TopicPartition(given.topic, number): token
        for given in extras.partition_tokens
        for number, token in zip(given.partitions, given.fencing_tokens, strict=False)
    }
    granted: dict[TopicPartition, Grant] = {}
    for given in response.assignment.topic_partitions:
        for number in given.partitions:
            name = TopicPartition(given.topic, number)
            if name not in tokens:
                raise IncompatibleServer(
                    f"The service gave partition {number} of {given.topic!r} without a fencing "
                    "token, so no storage could tell its holders apart."
                )
            granted[name] = Grant(
                member_id, response.member_epoch, tokens[name], extras.predecessor_ms
            )
    return granted


def read_metadata(
    response: group_pb2.ConsumerGroupHeartbeatResponse,
) -> ToldByAssignor | None:
    """Return what the assignor of the target says with an assignment; None: nothing new.

    "" in place of an assignor: the service's own has computed the target.
    """
    extras = response.holdfast
    if not extras.HasField("assigned_metadata") or not response.HasField("assignment"):
        return None
    partitions = (
        TopicPartition(given.topic, number)
        for given in response.assignment.topic_partitions
        for number in given.partitions
    )
    said = extras.assigned_metadata
    return ToldByAssignor(said.assignor, tuple(sorted(partitions)), said.metadata, said.version)


def prepare(settings: Settings, epoch: int) -> group_pb2.PrepareAssignmentRequest:
    """Ask for what an assignor needs."""
    return group_pb2.PrepareAssignmentRequest(
        group_id=settings.group, member_id=settings.member_id, member_epoch=epoch
    )


def install(
    settings: Settings,
    epoch: int,
    group_epoch: int,
    members: Sequence[group_pb2.InstallAssignmentRequestMember],
    request_id: str,
) -> group_pb2.InstallAssignmentRequest:
    """Hand a target in."""
    return group_pb2.InstallAssignmentRequest(
        group_id=settings.group,
        member_id=settings.member_id,
        member_epoch=epoch,
        group_epoch=group_epoch,
        members=members,
        holdfast=extras_pb2.RequestExtras(request_id=request_id),
    )


def not_installed(
    settings: Settings, epoch: int, failure: group_pb2.AssignmentFailure, request_id: str
) -> group_pb2.InstallAssignmentRequest:
    """Say why there is no target."""
    return group_pb2.InstallAssignmentRequest(
        group_id=settings.group,
        member_id=settings.member_id,
        member_epoch=epoch,
        failure=failure,
        holdfast=extras_pb2.RequestExtras(request_id=request_id),
    )


def _said(assignors: Iterable[SaidByAssignor]) -> extras_pb2.ClientAssignors:
    named = [extras_pb2.ClientAssignor(**each._asdict()) for each in assignors]
    return extras_pb2.ClientAssignors(assignors=named)


def _by_topic(partitions: Iterable[TopicPartition]) -> group_pb2.ConsumerGroupAssignment:
    numbers: dict[str, list[int]] = defaultdict(list)
    for topic, number in sorted(partitions):
        numbers[topic].append(number)
    return group_pb2.ConsumerGroupAssignment(
        topic_partitions=[
            group_pb2.ConsumerGroupTopicPartitions(topic=topic, partitions=listed)
            for topic, listed in numbers.items()
        ]
    )

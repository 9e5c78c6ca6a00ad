"""What an assignor is that runs in a member of the heartbeat protocol (KIP-848), for users.

And its way to and from the wire: what a member says of it, the picture of the group that it is
given, and the target that it makes. Like an assignor of the classic protocol it shares partitions
out by `assign`; unlike one, it may be told things by the members, and tell them things. No IO.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

from holdfast.client._session.session_io import SaidByAssignor
from holdfast.client._text import abbreviate
from holdfast.client._translate.arguments import listed
from holdfast.client.errors import AssignmentFailed
from holdfast.coordinator.assignors import MemberSubscription
from holdfast.v1 import group_pb2

ASSIGNORS_MAX: Final = 16
NAME_BYTES_MAX: Final = 255
VERSION_MAX: Final = 32_767
REASON_MAX: Final = 127
"""The service's bounds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMember(MemberSubscription):
    """One member as a client assignor sees it.

    `topics` are those that exist, also those that match its `topic_regex`; `owned` is its target
    until now, and `generation` its epoch. So an assignor of the classic protocol can share out
    among such members, but for a cooperative one, which would hold partitions back.
    """

    rack_id: str | None = None
    metadata: bytes = b""
    """What it says for this assignor, in `version`."""
    version: int = 0
    versions: tuple[int, int] = (0, 0)
    """The oldest and the newest version of metadata that it understands."""
    reason: int = 0


@dataclass(frozen=True, slots=True)
class Targets:
    """What members are to own, and what is said to them beside that."""

    partitions: Mapping[str, Mapping[str, Sequence[int]]]
    """Member id -> topic -> partitions. A member that is not named is to own nothing."""
    metadata: Mapping[str, bytes] = field(default_factory=dict)
    """Member id -> what its `on_assignment` is told."""
    version: int | None = None
    """The version that the metadata is of; None: the newest that all members understand."""


class ClientAssignor(ABC):
    """Computes the target of a group in one of its members: `Member(client_assignors=[...])`.

    It is used while all members of the group have one of this name, with a version in common. The
    service chooses the member that computes, and another one if that fails, or has not handed in a
    target within its rebalance timeout. Attributes may be the class's or the object's;
    `Member.update_assignors` tells the group when they have changed.
    """

    name: str
    """1 to 255 bytes; by it members agree on an assignor."""
    versions: tuple[int, int] = (0, 0)
    """The oldest and the newest version of metadata that it understands, up to 32,767."""
    version: int = 0
    """The version that `metadata` is of."""
    metadata: bytes = b""
    """What the assignor needs to know of this member, wherever it runs. If it changes, another
    target is made."""
    reason: int = 0
    """0 to 127. Another number than before, but 0, asks for another target."""

    @abstractmethod
    def assign(
        self, members: Sequence[GroupMember], partition_counts: Mapping[str, int]
    ) -> Targets | Awaitable[Targets]:
        """Share partitions out among members, each only of topics that its member subscribes to.

        A plain function runs in a thread of its own, a coroutine function in the event loop, one
        at a time in a member. Heartbeats go on, and what it computes is dropped if it is overtaken.
        One that raises, or makes what is no target, costs only time: the members keep what they
        have, the logger tells it, and the group's log, and that of another member is called, or
        this one again.
        """

    def on_assignment(  # noqa: B027 - an assignor that tells members nothing hears nothing
        self,
        assignment: Mapping[str, Sequence[int]],
        metadata: bytes | None,
        version: int,
    ) -> Awaitable[None] | None:
        """Hear what the target says to this member, and what it is to own of it by now.

        A callback like the others, and in their order: after the `on_revoked` of what goes, before
        the `on_assigned` of what comes, and also when only the metadata has changed. It is called
        for each new epoch, and again as others let go of more. `metadata` None: the target is not
        this assignor's any more; forget what it said. One that raises ends the member.
        """


def client_assignors_of(given: object) -> tuple[ClientAssignor, ...]:
    """Return the assignors, the most wanted first; raise TypeError for what is none."""
    named = listed("client_assignors", given, "objects whose class extends ClientAssignor")
    for each in named:
        if not isinstance(each, ClientAssignor):
            raise TypeError(
                "client_assignors is a list of objects whose class extends ClientAssignor, and "
                f"{abbreviate(each)} is none."
            )
    return cast("tuple[ClientAssignor, ...]", named)


def said_by(given: object) -> tuple[SaidByAssignor, ...]:
    """Return what a member says of its assignors as they are now.

    Raises ValueError for what the service would refuse, TypeError for what is no assignor.
    """
    assignors = client_assignors_of(given)
    if len(assignors) > ASSIGNORS_MAX:
        raise ValueError(
            f"client_assignors has {len(assignors)} assignors, at most {ASSIGNORS_MAX} go."
        )
    said = tuple(_said(each) for each in assignors)
    names = [each.name for each in said]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"client_assignors has more than one of the name {twice[0]!r}.")
    return said


def _said(assignor: ClientAssignor) -> SaidByAssignor:
    name = getattr(assignor, "name", None)
    if not isinstance(name, str) or not 0 < len(name.encode()) <= NAME_BYTES_MAX:
        raise ValueError(
            f"The name of a client assignor is a text of 1 to {NAME_BYTES_MAX} bytes, not "
            f"{abbreviate(name)}."
        )
    versions: Any = assignor.versions
    if not isinstance(versions, tuple) or len(versions) != len(ClientAssignor.versions):
        raise ValueError(_versions_of(name, versions, assignor.version))
    oldest, newest = versions
    numbers = (oldest, assignor.version, newest)
    if not all(map(_is_version, numbers)) or not oldest <= assignor.version <= newest:
        raise ValueError(_versions_of(name, versions, assignor.version))
    if not _is_version(assignor.reason) or assignor.reason > REASON_MAX:
        raise ValueError(
            f"The reason of client assignor {name!r} is 0 to {REASON_MAX}, not "
            f"{abbreviate(assignor.reason)}."
        )
    if not isinstance(assignor.metadata, bytes):
        raise TypeError(
            f"The metadata of client assignor {name!r} is bytes, not "
            f"{abbreviate(assignor.metadata)}."
        )
    return SaidByAssignor(
        *(name, oldest, newest), assignor.version, assignor.metadata, assignor.reason
    )


def _is_version(number: object) -> bool:
    is_number = isinstance(number, int) and not isinstance(number, bool)
    return is_number and 0 <= cast("int", number) <= VERSION_MAX


def _versions_of(name: str, versions: object, version: object) -> str:
    return (
        f"The versions of client assignor {name!r} are the oldest and the newest of 0 to "
        f"{VERSION_MAX} that it understands, and its version is one of them; not "
        f"{abbreviate(versions)} and {abbreviate(version)}."
    )


# --- its way to and from the wire ----------------------------------------------------------------


def read_picture(
    picture: group_pb2.PrepareAssignmentResponse,
) -> tuple[tuple[GroupMember, ...], dict[str, int]]:
    """Return the members and the partition counts that an assignor is given."""
    counts = {topic.name: topic.num_partitions for topic in picture.topics}
    names = list(counts)
    lists = [frozenset(names[place] for place in each.topics) for each in picture.topic_lists]
    members = [_read_member(told, lists[told.topic_list]) for told in picture.members]
    return tuple(members), counts


def _read_member(
    told: group_pb2.PrepareAssignmentResponseMember, topics: frozenset[str]
) -> GroupMember:
    assignor = told.assignor
    return GroupMember(
        member_id=told.member_id,
        topics=topics,
        instance_id=told.instance_id if told.HasField("instance_id") else None,
        owned={given.topic: tuple(given.partitions) for given in told.topic_partitions},
        generation=told.member_epoch,
        rack_id=told.rack_id if told.HasField("rack_id") else None,
        metadata=assignor.metadata,
        version=assignor.version,
        versions=(assignor.minimum_version, assignor.maximum_version),
        reason=assignor.reason,
    )


def write_targets(
    targets: object, picture: group_pb2.PrepareAssignmentResponse
) -> list[group_pb2.InstallAssignmentRequestMember]:
    """Make what is handed in. Raises AssignmentFailed for what has not the form of a target.

    Whether it is true of the group, the service says.
    """
    if not isinstance(targets, Targets):
        raise AssignmentFailed(
            f"Client assignor {picture.assignor_name!r} is to return Targets(...), and its "
            f"assign returned {abbreviate(targets)}."
        )
    version = picture.assignor_version if targets.version is None else targets.version
    try:
        named = dict.fromkeys([*targets.partitions, *targets.metadata])
        return [
            group_pb2.InstallAssignmentRequestMember(
                member_id=member_id,
                topic_partitions=_written(targets.partitions.get(member_id, {})),
                version=version,
                metadata=targets.metadata.get(member_id, b""),
            )
            for member_id in named
        ]
    except (TypeError, ValueError, AttributeError) as error:
        raise AssignmentFailed(
            f"Client assignor {picture.assignor_name!r} is to return Targets of member id -> topic "
            f"-> partitions, with metadata of member id -> bytes; what it returned is not: {error}"
        ) from error


def _written(
    topics: Mapping[str, Sequence[int]],
) -> list[group_pb2.ConsumerGroupTopicPartitions]:
    return [
        group_pb2.ConsumerGroupTopicPartitions(topic=topic, partitions=numbers)
        for topic, numbers in topics.items()
        if numbers
    ]

"""Results of a call about several things, by name; the refusal of a single one is raised.

A refusal that is a value is easily overlooked; if one thing was asked for, there are no other
results that an exception could hide. No IO.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from holdfast.client.errors import GroupNotEmpty, HoldfastError, UnknownMember, from_code
from holdfast.v1.errors_pb2 import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from holdfast.client._session.session_io import TopicPartition
    from holdfast.v1 import admin_pb2

NameT = TypeVar("NameT")
FoundT = TypeVar("FoundT")
DescribedT = TypeVar(
    "DescribedT", "admin_pb2.DescribedGroup", "admin_pb2.ConsumerGroupDescribedGroup"
)


def by_name(
    results: dict[NameT, FoundT | HoldfastError], asked: Collection[object]
) -> dict[NameT, FoundT | HoldfastError]:
    """Return the results; raise the refusal if only one thing was `asked` for."""
    if len(asked) == 1:
        for result in results.values():
            if isinstance(result, HoldfastError):
                raise result
    return results


def described(group: DescribedT) -> DescribedT | HoldfastError:
    """Return the group, or why it cannot be described."""
    if group.error_code == ErrorCode.ERROR_CODE_NONE:
        return group
    subject = f"Group {group.group_id!r}"
    return from_code(group.error_code, subject=subject, message=group.error_message)


def no_such_topic(name: str) -> HoldfastError:
    """Make the refusal of a missing topic: the service's list only leaves it out."""
    code = ErrorCode.ERROR_CODE_UNKNOWN_TOPIC_OR_PARTITION
    return from_code(code, subject=f"Topic {name!r}", message="there is no such topic")


def nobody_known(results: Mapping[str, HoldfastError | None]) -> bool:
    """Return whether no member was known: the result of a missing group looks the same."""
    return all(isinstance(refusal, UnknownMember) for refusal in results.values())


def refuse_members(group: str, results: Mapping[TopicPartition, HoldfastError | None]) -> None:
    """Raise GroupNotEmpty if a commit from outside met members.

    The service answers UNKNOWN_MEMBER_ID then, which does not tell the cause.
    """
    for refusal in results.values():
        if isinstance(refusal, UnknownMember):
            raise GroupNotEmpty(
                f"Group {group!r} has members, and while it has, only they may commit: nothing was "
                "committed. Stop them first, or commit in one of them (Member.commit).",
                code=refusal.code,
            )

"""The refusal of a whole call, in the form of the call's answer. No rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from holdfast.coordinator.cluster import requests
from holdfast.coordinator.kernel import group_types

if TYPE_CHECKING:
    from holdfast.coordinator.groups.draft import Draft
    from holdfast.coordinator.groups.group_type import GroupType
    from holdfast.coordinator.model.commands import Asked, OneShot
    from holdfast.coordinator.model.rejections import Rejection
    from holdfast.coordinator.model.replies import Reply
    from holdfast.coordinator.model.state import Group


def misplaced(group: Group[Any], command: Asked) -> Reply:
    """Return the answer of a call that groups of this type do not know."""
    kind = cast("GroupType[Draft]", group_types.for_command(None, command))
    return of_call(command, kind.misplaced(group, command))


def of_call(command: Asked, error: Rejection) -> Reply:
    """Return the answer of a call that is refused whole."""
    kind = group_types.answering(command)
    if kind is not None:
        return kind.refused(command, error)
    return requests.refusal(cast("OneShot", command), error)

"""Commands for a group that is quarantined (S6): all are refused, but the one that ends it.

Its state was left as it was before the event that could not be applied, so nothing that builds on
it may be decided; deleting the group is what an operator can do, and says so to everybody.
"""

from __future__ import annotations

from typing import Any

from holdfast.coordinator.kernel.refusals import of_call
from holdfast.coordinator.model.commands import Asked, DeleteGroup, GroupCommand, OneShot
from holdfast.coordinator.model.rejections import UnknownServerError
from holdfast.coordinator.model.replies import Reply
from holdfast.coordinator.model.state import Group


def holds(group: Group[Any] | None, command: GroupCommand | OneShot) -> bool:
    """Whether a command must be refused for the group's quarantine."""
    return group is not None and bool(group.quarantined) and not isinstance(command, DeleteGroup)


def refusal(group: Group[Any], command: Asked) -> Reply:
    """The answer of a refused command, in the form that the call is answered in."""
    error = UnknownServerError(
        f"group {group.group_id!r} is quarantined ({group.quarantined}); "
        "delete it to begin anew, and report this with the node's log"
    )
    return of_call(command, error)

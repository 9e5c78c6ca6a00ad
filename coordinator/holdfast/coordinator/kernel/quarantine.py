"""Commands for a quarantined group (S6): all are refused, but the one that ends the quarantine.

Its state was left as it was before the event that could not be applied, so nothing that builds on
it may be decided. An operator can delete the group; the refusals say so.
"""

from __future__ import annotations

from typing import Any

from holdfast.coordinator.kernel.refusals import of_call
from holdfast.coordinator.model.commands import Asked, DeleteGroup, GroupCommand, OneShot
from holdfast.coordinator.model.rejections import UnknownServerError
from holdfast.coordinator.model.replies import Reply
from holdfast.coordinator.model.state import Group


def holds(group: Group[Any] | None, command: GroupCommand | OneShot) -> bool:
    """Return whether a command must be refused because the group is quarantined."""
    return group is not None and bool(group.quarantined) and not isinstance(command, DeleteGroup)


def refusal(group: Group[Any], command: Asked) -> Reply:
    """Return the answer of a refused command, in the form of the call's answer."""
    error = UnknownServerError(
        f"group {group.group_id!r} is quarantined ({group.quarantined}); "
        "delete it to begin anew, and report this with the node's log"
    )
    return of_call(command, error)

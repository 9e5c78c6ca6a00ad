"""Checks of the assignors that a member says it can run; no group is needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from holdfast.coordinator.model.commands import ConsumerGroupHeartbeat
from holdfast.coordinator.model.member_profile import ClientAssignor
from holdfast.coordinator.model.rejections import InvalidRequest

ASSIGNORS_MAX: Final = 16
"""Assignors of one member."""
NAME_BYTES_MAX: Final = 255
VERSION_MAX: Final = 2**15 - 1
"""Versions are 16 bits wide in KIP-848."""
REASON_MAX: Final = 2**7 - 1
"""Reasons have 8 bits there."""
FIELD: Final = "holdfast.client_assignors"


def problem_of(command: ConsumerGroupHeartbeat) -> InvalidRequest | None:
    """Say what is wrong with the assignors of a heartbeat; None: nothing."""
    said = command.client_assignors
    if not said:
        return None
    problem = _of_all(said) or next((each for each in map(_of_one, said) if each), "")
    return InvalidRequest(FIELD, problem) if problem else None


def _of_all(said: Sequence[ClientAssignor]) -> str:
    if len(said) > ASSIGNORS_MAX:
        return f"are {len(said)}, at most {ASSIGNORS_MAX} are allowed"
    names = [each.name for each in said]
    return "" if len(set(names)) == len(names) else "must each have another name"


def _of_one(assignor: ClientAssignor) -> str:
    name = assignor.name
    if not 1 <= len(name.encode()) <= NAME_BYTES_MAX:
        return f"must have names of 1 to {NAME_BYTES_MAX} bytes"
    if not 0 <= assignor.minimum_version <= assignor.maximum_version <= VERSION_MAX:
        return f"{name!r}: minimum_version and maximum_version must be 0 to {VERSION_MAX}, in order"
    if not assignor.understands(assignor.version):
        return f"{name!r}: version must be from minimum_version to maximum_version"
    if not 0 <= assignor.reason <= REASON_MAX:
        return f"{name!r}: reason must be 0 to {REASON_MAX}"
    return ""

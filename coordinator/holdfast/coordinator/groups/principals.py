"""To whom an instance id belongs: the principal that joined with it first, while it is there."""

from __future__ import annotations

from holdfast.coordinator.model.access import ADMIN, DENY, GROUP, RANKS, rank
from holdfast.coordinator.model.ids import GroupId, InstanceId, Principal
from holdfast.coordinator.model.rejections import InstanceForbidden
from holdfast.coordinator.model.state import State


def of_another(
    state: State, group_id: GroupId, instance_id: InstanceId, owner: Principal, caller: Principal
) -> InstanceForbidden | None:
    """Refuse the instance id of another principal, where grants decide what may be done.

    An administrator of the group may take it over.
    """
    if state.access_mode != DENY or owner in {"", caller}:
        return None
    rules = rank(state.acls, caller, GROUP, group_id) == RANKS[ADMIN]
    return None if rules else InstanceForbidden(instance_id)

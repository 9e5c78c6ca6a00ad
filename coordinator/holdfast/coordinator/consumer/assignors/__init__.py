"""Server assignors: pure functions that compute the target assignment of a group (K-P11 to K-P14).

The coordinator calls one when the group epoch moves. They give what Kafka 4.3's assignors of the
same names give; where those go by the random ids of topics, these go by the topics' names. They
know nothing of epochs, heartbeats or what members own at the moment.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from holdfast.coordinator.consumer.assignors.range_ import assign_range
from holdfast.coordinator.consumer.assignors.spec import Assignor, GroupSpec, MemberSpec, Target
from holdfast.coordinator.consumer.assignors.uniform import assign_uniform

if TYPE_CHECKING:
    from collections.abc import Mapping

ASSIGNORS: Mapping[str, Assignor] = MappingProxyType(
    {"uniform": assign_uniform, "range": assign_range}
)
"""By the name that members and the group's settings say; in Kafka's order of preference."""

__all__ = ["ASSIGNORS", "Assignor", "GroupSpec", "MemberSpec", "Target"]

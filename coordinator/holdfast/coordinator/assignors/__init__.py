"""Assignors: pure functions that share the partitions of topics out among members."""

from holdfast.coordinator.assignors.base import (
    GENERATION_UNKNOWN,
    Assignment,
    Assignor,
    MemberSubscription,
)
from holdfast.coordinator.assignors.by_instance import ByInstanceAssignor
from holdfast.coordinator.assignors.cooperative import CooperativeAssignor
from holdfast.coordinator.assignors.range_ import RangeAssignor
from holdfast.coordinator.assignors.round_robin import RoundRobinAssignor
from holdfast.coordinator.assignors.sticky import StickyAssignor
from holdfast.coordinator.assignors.weighted import WeightedAssignor

__all__ = [
    "GENERATION_UNKNOWN",
    "Assignment",
    "Assignor",
    "ByInstanceAssignor",
    "CooperativeAssignor",
    "MemberSubscription",
    "RangeAssignor",
    "RoundRobinAssignor",
    "StickyAssignor",
    "WeightedAssignor",
]

"""Defects of groups that change their protocol, and of their members that speak the other one."""

# ruff: noqa: ANN401 (a patch passes on whatever the function in whose place it stands takes)

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.coordinator.classic import parked_calls
from holdfast.coordinator.consumer.mixed import recall
from holdfast.coordinator.groups import assignment_bytes
from holdfast.coordinator.groups.draft import Draft
from holdfast.coordinator.kernel import conversion_fold
from holdfast.coordinator.model.volatile import REBALANCE, DeadlineKey
from teeth.catalogue import Scenario, seeded
from teeth.patching import replaced

if TYPE_CHECKING:
    from collections.abc import Iterator

CONVERSION = "tests/unit/coordinator/kernel/test_conversion.py::"


@seeded(
    "S13",
    Scenario(f"{CONVERSION}test_a_partition_keeps_its_owner_and_its_token_in_an_upgrade"),
)
def tokens_begin_anew_with_the_type() -> Iterator[None]:
    """A store refuses the rightful owners, since their tokens fell when the group was converted."""
    made: Any = conversion_fold._to_consumer

    def without_grants(old: Any, told: Any, epoch: int) -> Any:
        return made(old._replace(granted_index=1), told, epoch)

    with replaced(conversion_fold, "_to_consumer", without_grants):
        yield


@seeded(
    "S11",
    Scenario(f"{CONVERSION}test_nobody_is_granted_what_a_classic_member_has_not_given_up"),
)
def a_converted_group_begins_with_free_partitions() -> Iterator[None]:
    """What classic members own is granted to the newcomer, while they work on it."""

    def nothing(_assignment: bytes) -> tuple[()]:
        return ()

    with replaced(assignment_bytes, "partitions", nothing):
        yield


@seeded(
    "S11",
    Scenario(
        f"{CONVERSION}test_a_classic_member_may_act_for_its_rebalance_timeout_after_it_was_told"
    ),
)
def a_classic_member_is_given_half_of_its_time() -> Iterator[None]:
    """It is removed while it still may act by its last heartbeat: a partition has two owners."""

    def too_soon(draft: Draft, member: Any, *, rejoin: bool) -> None:
        key = DeadlineKey(REBALANCE, member.member_id)
        if rejoin and key not in draft.volatile.armed:
            draft.arm(key, member.profile.rebalance_timeout_ms // 2)

    with replaced(recall, "tell", too_soon):
        yield


@seeded(
    "S17",
    Scenario(f"{CONVERSION}test_parked_joins_end_with_the_conversion_and_their_members_stay"),
)
def parked_calls_outlive_the_conversion() -> Iterator[None]:
    """A member waits for an answer that no rule of the new type will give."""
    with replaced(parked_calls, "refuse", lambda *_: None):
        yield

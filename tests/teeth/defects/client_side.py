"""Defects of targets that members compute: who is chosen, and what is taken from it (KIP-848)."""

# ruff: noqa: ANN401 (a patch passes on whatever the function in whose place it stands takes)

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from holdfast.coordinator.consumer.client_side import choice, installing, picture
from holdfast.coordinator.consumer.targets import computing
from holdfast.coordinator.model.rejections import NotChosen
from teeth.catalogue import Scenario, seeded
from teeth.patching import replaced

if TYPE_CHECKING:
    from collections.abc import Iterator

CHOICE = "tests/unit/coordinator/consumer/client_side/test_choice.py::"
FAILING = "tests/unit/coordinator/consumer/client_side/test_choice_failing.py::"
INSTALLING = "tests/unit/coordinator/consumer/client_side/test_installing.py::"
PICTURE = "tests/unit/coordinator/consumer/client_side/test_picture.py::"


@seeded(
    "S2",
    Scenario(f"{INSTALLING}test_a_target_of_an_older_epoch_is_refused_whatever_it_says"),
)
def a_stale_install_is_accepted() -> Iterator[None]:
    """Who joined since a target was prepared is left out of it, and nobody computes another."""
    install: Any = installing._install

    def as_of_now(draft: Any, command: Any) -> Any:
        epoch = max(command.epoch, draft.group.generation)
        return install(draft, dataclasses.replace(command, epoch=epoch))

    with replaced(installing, "_install", as_of_now):
        yield


@seeded("I16", Scenario(f"{CHOICE}test_who_is_late_is_not_fenced_and_m25_still_fences"))
def a_chosen_member_is_never_relieved() -> Iterator[None]:
    """A member whose assignor hangs keeps its group without a target for ever."""
    with replaced(choice, "relieve", lambda _draft, _problem="": None):
        yield


@seeded("I16", Scenario(f"{FAILING}test_another_is_asked_at_once_and_the_log_says_why"))
def a_member_that_makes_no_target_stays_chosen() -> Iterator[None]:
    """A group waits five minutes for each process of a bad release, one after the other."""
    relieve: Any = choice.relieve

    def by_time_alone(draft: Any, problem: str = "") -> None:
        if not problem:
            relieve(draft)

    with replaced(choice, "relieve", by_time_alone):
        yield


@seeded("S7", Scenario(f"{PICTURE}test_s7_a_group_that_is_too_large_has_the_services_target"))
def a_group_of_any_size_is_shown_to_a_member() -> Iterator[None]:
    """Every chosen member is told that the picture is too large, and the group has no target."""
    with replaced(picture, "fits", lambda *_: True):
        yield


@seeded("I8", Scenario(f"{INSTALLING}test_a_target_that_is_not_true_changes_nothing"))
def a_partition_may_be_installed_twice() -> Iterator[None]:
    """Two members are to own one partition: one of them waits for the other for ever."""
    untruth: Any = computing.untruth

    def but_for_doubled(*arguments: Any) -> str:
        found: str = untruth(*arguments)
        return "" if found.endswith("is named twice") else found

    with replaced(computing, "untruth", but_for_doubled):
        yield


@seeded("S6", Scenario(f"{INSTALLING}test_a_target_that_is_not_true_changes_nothing"))
def a_stranger_may_be_given_partitions() -> Iterator[None]:
    """What is given to nobody of the group is nobody's, and the assignor is not told."""
    problem: Any = installing._problem

    def of_members(draft: Any, body: Any, targets: Any) -> str:
        known = [each for each in targets if each.member_id in body.members]
        found: str = problem(draft, body, known)
        return found

    with replaced(installing, "_problem", of_members):
        yield


@seeded("S16", Scenario(f"{CHOICE}test_a_new_leader_gives_the_chosen_member_its_whole_time"))
def a_new_leader_forgets_the_time_of_the_chosen_member() -> Iterator[None]:
    """After a failover nobody relieves a member that has died while it computed."""
    arm: Any = choice.arm

    def not_when_leading(draft: Any) -> None:
        if draft._command != "Leading":
            arm(draft)

    with replaced(choice, "arm", not_when_leading):
        yield


@seeded("I16", Scenario(f"{INSTALLING}test_both_calls_are_checked_in_the_order_of_kip_848"))
def any_member_may_install() -> Iterator[None]:
    """A member that was relieved, or never asked, puts its target over what another computes."""
    refusal: Any = installing.refusal

    def of_anybody(*arguments: Any) -> Any:
        error = refusal(*arguments)
        return None if isinstance(error, NotChosen) else error

    with replaced(installing, "refusal", of_anybody):
        yield

"""Defects of targets that are computed beside the group's work, and of what an entry can hold."""

# ruff: noqa: ANN401 (a patch passes on whatever the function in whose place it stands takes)

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from holdfast.coordinator.consumer.targets import computing, reconciliation
from holdfast.runtime.groups import weights
from holdfast.runtime.groups.target_maker import TargetMaker
from teeth.catalogue import Scenario, seeded
from teeth.patching import replaced

if TYPE_CHECKING:
    from collections.abc import Iterator

COMPUTING = "tests/unit/coordinator/consumer/targets/test_computing.py::"
GROUPS = "tests/unit/runtime/groups/"


@seeded("S2", Scenario(f"{COMPUTING}test_joins_meanwhile_share_one_further_target"))
def a_target_that_was_overtaken_is_installed() -> Iterator[None]:
    """Who joined while it was computed is left out, and the group calls itself balanced."""
    install: Any = computing.install

    def stale(draft: Any, command: Any) -> None:
        work, epoch = draft.volatile.target_work, draft.group.generation
        draft.volatile = draft.volatile._replace(target_work=work._replace(epoch=epoch))
        install(draft, dataclasses.replace(command, epoch=epoch))

    with replaced(computing, "install", stale):
        yield


@seeded(
    "S6",
    Scenario(f"{COMPUTING}test_o15_a_target_that_is_not_true_of_the_group_is_computed_again"),
)
def a_target_is_believed() -> Iterator[None]:
    """Strangers are to own partitions, or two members one; the batch breaks an invariant."""
    with replaced(computing, "untruth", lambda *_: ""):
        yield


@seeded(
    "S1",
    Scenario(
        f"{GROUPS}test_target_maker.py::test_s1_an_ex_leader_installs_nothing_and_its_children_end"
    ),
)
def an_ex_leader_goes_on_computing() -> Iterator[None]:
    """What it computes is installed in its next term, over what was decided in between."""
    with replaced(TargetMaker, "clear", lambda _: None):
        yield


@seeded("S7", Scenario(f"{GROUPS}test_weights.py::test_s7_steps_of_all_members_are_cut_to_entries"))
def steps_weigh_nothing() -> Iterator[None]:
    """Beats that come together exceed an entry, are refused, and come again together for ever."""
    with replaced(weights, "of_events", lambda _: 0):
        yield


@seeded("S7", Scenario(f"{COMPUTING}test_s7_a_step_that_exceeds_an_entry_is_taken_in_two"))
def a_step_is_taken_whole() -> Iterator[None]:
    """What one member frees and is granted exceeds an entry, so it never gets its partitions."""
    with replaced(reconciliation, "_fitting", lambda _draft, step: step):
        yield

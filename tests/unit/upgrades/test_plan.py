"""The rounds of `./dev upgrades`: what a seed draws, and what every round begins and ends with."""

from __future__ import annotations

import pytest

from upgrades.plan import Kind, Round, plan

NAMES = ("a", "b", "c")
ROUNDS = plan(7, 60, NAMES)


def of_kind(kind: Kind) -> list[Round]:
    return [each for each in ROUNDS if each.kind is kind]


def test_a_seed_draws_the_same_rounds_and_another_seed_draws_others() -> None:
    assert plan(7, 60, NAMES) == ROUNDS
    assert plan(8, 60, NAMES) != ROUNDS


@pytest.mark.parametrize("planned", ROUNDS)
def test_a_round_ends_with_all_nodes_of_one_version(planned: Round) -> None:
    """The next round begins there, or with a new cluster once an upgrade was ended."""
    newer = dict.fromkeys(NAMES, False)
    for step in planned.steps:
        assert newer[step.node] is not step.newer, "each step changes a node's version"
        newer[step.node] = step.newer

    assert set(newer.values()) == {planned.kind is Kind.END}


def test_nodes_go_up_and_back_in_any_order() -> None:
    orders = {tuple(step.node for step in planned.steps[:3]) for planned in of_kind(Kind.BACK)}
    backs = {tuple(step.node for step in planned.steps[3:]) for planned in of_kind(Kind.BACK)}

    assert len(orders) > 3
    assert len(backs) > 3


def test_some_nodes_alone_go_up_in_a_part_of_an_upgrade() -> None:
    assert {len(planned.steps) for planned in of_kind(Kind.PART)} == {2, 4}

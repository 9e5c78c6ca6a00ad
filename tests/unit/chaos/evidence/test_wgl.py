"""The search itself: histories whose answer is known, and random ones against trying every order.

The known ones are the register histories that Herlihy and Wing ("Linearizability: a correctness
condition for concurrent objects", 1990) and Lowe tell of, written anew for integers.
"""

from __future__ import annotations

import time
from itertools import permutations
from random import Random
from typing import Final

import pytest

from holdfast.chaos.evidence.offset_registers import UNKNOWN, step
from holdfast.chaos.evidence.wgl import Operation, search
from unit.chaos.evidence.registers import START, honest_history, random_history, read, write

SEEDS: Final = 400

LINEARIZABLE = {
    "nothing": [],
    "one after the other": [write(1, 0, 1), read(1, 2, 3), write(2, 4, 5), read(2, 6, 7)],
    "a read during a write sees the old": [write(1, 0, 10), read(0, 2, 3)],
    "a read during a write sees the new": [write(1, 0, 10), read(1, 2, 3)],
    "old, then new, during one write": [write(1, 0, 10), read(0, 1, 2), read(1, 3, 4)],
    "two writes at once, the later call first": [write(1, 0, 9), write(2, 1, 8), read(1, 10, 11)],
    "readers order two writes": [
        *(write(1, 0, 20), write(2, 0, 20), read(2, 1, 2), read(1, 3, 4), read(1, 5, 6)),
    ],
    "a write of unknown outcome that took effect": [write(1, 0, None), read(1, 5, 6)],
    "a write of unknown outcome that never did": [write(1, 0, None), read(0, 5, 6)],
    "a write of unknown outcome that took effect late": [
        *(write(1, 0, None), read(0, 5, 6), read(1, 7, 8), read(1, 9, 10)),
    ],
    "an unknown write comes after a later one": [
        *(write(1, 0, None), write(2, 1, 2), read(2, 3, 4), read(1, 5, 6)),
    ],
    "touching moments count as overlap": [write(1, 0, 5), read(0, 5, 6)],
}
NOT_LINEARIZABLE = {
    "a read of what was never written": [write(1, 0, 1), read(7, 2, 3)],
    "a stale read": [write(1, 0, 1), read(0, 2, 3)],
    "new, then old": [write(1, 0, 10), read(1, 1, 2), read(0, 3, 4)],
    "a lost write": [write(1, 0, 1), write(2, 2, 3), read(1, 4, 5)],
    "readers disagree on the order": [
        *(write(1, 0, 3), write(2, 0, 3), read(1, 4, 5), read(2, 6, 7)),
    ],
    "a read of the future": [read(1, 0, 1), write(1, 2, 3)],
    "an unknown write is seen and unseen": [
        *(write(1, 0, None), read(1, 5, 6), read(0, 7, 8)),
    ],
    "an unknown write is seen before it was sent": [read(1, 0, 1), write(1, 2, None)],
}


@pytest.mark.parametrize("name", LINEARIZABLE)
def test_a_known_linearizable_history_has_an_order(name: str) -> None:
    assert search(LINEARIZABLE[name], START, step).linearizable is True


@pytest.mark.parametrize("name", NOT_LINEARIZABLE)
def test_a_known_other_history_has_none(name: str) -> None:
    outcome = search(NOT_LINEARIZABLE[name], START, step)

    assert outcome.linearizable is False
    assert outcome.blocked is not None


def test_what_a_register_held_at_first_may_be_left_to_the_first_read() -> None:
    assert search([read(7, 0, 1), read(7, 2, 3)], UNKNOWN, step).linearizable is True
    assert search([read(7, 0, 1), read(8, 2, 3)], UNKNOWN, step).linearizable is False


def test_the_longest_order_that_was_found_is_shown() -> None:
    outcome = search([write(1, 0, 1), write(2, 2, 3), read(1, 4, 5)], START, step)

    assert [each.call for each in outcome.placed] == ["w1", "w2"]
    assert outcome.blocked is not None
    assert outcome.blocked.call == "r1"


def test_a_search_that_is_given_up_says_so() -> None:
    """It is neither: who runs out of steps has proved nothing."""
    many = [write(value, 0, 100) for value in range(12)]
    outcome = search([*many, read(99, 101, 102)], START, step, steps_max=500)

    assert outcome.linearizable is None
    assert 500 <= outcome.steps < 520, "a walk over the reads is finished"


def oracle(operations: list[Operation]) -> bool:
    """Try every order of every choice of the operations that may not have happened."""
    unsure = [each for each in operations if each.end_us is None]
    sure = [each for each in operations if each.end_us is not None]
    for choice in range(1 << len(unsure)):
        chosen = [each for bit, each in enumerate(unsure) if choice >> bit & 1]
        if any(_is_an_order(order) for order in permutations([*sure, *chosen])):
            return True
    return False


def _is_an_order(order: tuple[Operation, ...]) -> bool:
    held: int | None = START
    for number, operation in enumerate(order):
        later = order[number + 1 :]
        if any(each.end_us is not None and each.end_us < operation.start_us for each in later):
            return False
        held = step(held, operation.what) if held is not None else None
        if held is None:
            return False
    return True


def test_random_histories_are_judged_as_by_trying_every_order() -> None:
    verdicts = {True: 0, False: 0}
    for seed in range(SEEDS):
        operations = random_history(Random(seed))
        expected = oracle(operations)
        found = search(operations, START, step).linearizable

        assert found is expected, f"seed {seed}: random_history(Random({seed})) = {operations}"
        verdicts[expected] += 1
    assert min(verdicts.values()) > SEEDS // 10, "the generator makes one kind only"


@pytest.mark.slow
def test_ten_callers_of_each_of_a_hundred_registers_are_judged_in_seconds() -> None:
    """10,000 operations over 100 partitions. Two million steps take about a second of CPU time."""
    steps = 0
    began = time.process_time()
    for seed in range(100):
        outcome = search(honest_history(Random(seed), 100), START, step)
        assert outcome.linearizable is True, f"seed {seed}"
        steps += outcome.steps
    spent = time.process_time() - began

    print(f"10,000 operations, {steps} steps, {spent:.2f} s of CPU time")
    assert steps < 6_000_000

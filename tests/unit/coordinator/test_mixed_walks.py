"""Random groups of both protocols: no two clients ever own one partition, and all find rest."""

from __future__ import annotations

from random import Random

import pytest

from unit.coordinator.people import Classic, Consumer, World, settle

STEPS, SEEDS = 40, 12
PEOPLE = 3
"""Of each protocol."""


def owners(everyone: list[Classic | Consumer]) -> list[int]:
    return sorted(number for one in everyone for number in one.owned)


def act(random: Random, one: Classic | Consumer) -> None:
    """One client does one thing; who is not in the group may come."""
    if isinstance(one, Consumer):
        one.leave() if one.epoch and random.random() < 0.2 else one.beat()
        return
    one.look()
    if one.parked:
        return
    if not one.id or random.random() < 0.05:
        one.join()
    elif random.random() < 0.15:
        one.leave()
        one.id, one.generation = "", -1
    elif one.beat().error is not None:
        one.join()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_partition_never_has_two_owners_and_gets_one_in_the_end(seed: int) -> None:
    """S11, K-O15, K-Q2, K-Q12: also over changes of the protocol and of the leader."""
    random = Random(seed)
    world = World(count=5)
    everyone: list[Classic | Consumer] = [
        *(Classic(world, f"x{n}", f"i-{n}" if n else None) for n in range(PEOPLE)),
        *(Consumer(world, f"a{n}") for n in range(PEOPLE)),
    ]
    for _ in range(STEPS):
        act(random, random.choice(everyone))
        for one in everyone:
            if isinstance(one, Classic):
                one.look()
        found = owners(everyone)
        assert len(set(found)) == len(found), found
        if random.random() < 0.05:
            _fail_over(world, everyone)
    _rest(world, everyone)
    if any(one.owned for one in everyone):
        assert owners(everyone) == list(range(5))
    world.core.check_replays()


def _fail_over(world: World, everyone: list[Classic | Consumer]) -> None:
    world.core.fail_over()
    for one in everyone:
        if isinstance(one, Classic):
            world.core.answers.pop(one.parked, None)
            one.parked = 0


def _rest(world: World, everyone: list[Classic | Consumer]) -> None:
    """Let all who are there do what they are told, until nobody has anything to do.

    It takes as long as the session of a member that a lost answer has left behind.
    """
    for _ in range(13):
        world.core.advance(4_000)
        settle([one for one in everyone if isinstance(one, Classic) and one.id], rounds=2)
        for one in everyone:
            if isinstance(one, Consumer) and one.epoch:
                one.beat()

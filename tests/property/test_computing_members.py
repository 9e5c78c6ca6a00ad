"""The core against a second opinion on who computes a target, and what is taken (KIP-848)."""

from __future__ import annotations

import os
from collections import Counter
from random import Random
from typing import Final

import pytest

from holdfast.coordinator.consumer import holdings
from holdfast.coordinator.model.consumer_events import MemberTarget
from holdfast.coordinator.model.ids import TopicPartitions
from holdfast.coordinator.model.member_profile import ClientAssignor
from property.computing_crowd import Crowd, Runs, some_runs
from unit.coordinator.consumer.client_side.computing_members import Computing

PARTITIONS: Final = 5
STEPS: Final = 60
SEEDS: Final = range(150)
PEOPLE: Final = ("a", "b", "c", "d")


def seeds() -> list[int]:
    chosen = os.environ.get("SEED")
    return [int(chosen)] if chosen else list(SEEDS)


def told(runs: tuple[Runs, ...]) -> tuple[ClientAssignor, ...]:
    return tuple(ClientAssignor(r.name, r.least, r.most, r.reason, r.version, b"") for r in runs)


class Walk:
    """One random life of a group, in the core and in the other one."""

    def __init__(self, seed: int) -> None:
        self.random, self.crowd, self.seen = Random(seed), Crowd(), Counter[str]()
        self.core = Computing(t=PARTITIONS)
        self.core.set(consumer_max_session_timeout_ms="3600000")
        self.core.set(consumer_session_timeout_ms="3600000")

    def step(self) -> None:
        acts = (self._join, self._say, self._leave, self._beat, self._beat, self._wait, self._over)
        self.random.choice((*acts, self._install, self._install, self._install))()
        self.check()

    def check(self) -> None:
        crowd, group = self.crowd, self.core.group if self.core.core.state.groups else None
        if group is None or not crowd.members:
            return
        body = group.body
        assert (group.generation, body.assignment_epoch) == (crowd.epoch, crowd.target)
        assert (self.core.chosen, list(body.late)) == (crowd.chosen, crowd.late)

    def _who(self) -> str:
        return self.random.choice(list(self.crowd.members) or [""])

    def _join(self) -> None:
        free = [each for each in PEOPLE if each not in self.crowd.members]
        if not free:
            return
        who, runs, timeout_ms = self.random.choice(free), some_runs(self.random), 10_000
        answer = self.core.told(
            self.core.comes(who, client_assignors=told(runs), rebalance_timeout_ms=timeout_ms)
        )
        self.crowd.joins(who, runs, timeout_ms)
        self._heard(who, should_compute=answer.should_compute)

    def _heard(self, who: str, *, should_compute: bool) -> None:
        crowd = self.crowd
        due = crowd.chosen == who and crowd.chosen_for == crowd.epoch
        assert should_compute == due
        self.seen["asked"] += due

    def _beat(self, who: str = "") -> None:
        who = who or self._who()
        if who:
            mine = holdings.listed(self.core.member(who).owned)
            asked = self.core.beats(who, owned=mine)
            self.crowd.speaks(who)
            self._heard(who, should_compute=asked)

    def _say(self) -> None:
        who, runs = self._who(), some_runs(self.random)
        if who:
            asked = self.core.beats(who, client_assignors=told(runs))
            self.crowd.says(who, runs)
            self._heard(who, should_compute=asked)

    def _leave(self) -> None:
        who = self._who()
        if who and len(self.crowd.members) > 1 and self.random.random() < 0.6:
            self.core.send(self.core.says(who, -1))
            self.crowd.leaves(who)

    def _wait(self) -> None:
        """Let time pass; everybody beats before, so that nobody is taken out for what it keeps."""
        for who in [*self.crowd.members, *self.crowd.members]:
            self._beat(who)
        by_ms, before = self.random.choice((3_000, 9_000)), list(self.crowd.late)
        self.core.core.advance(by_ms)
        self.crowd.passes(by_ms)
        self.seen["relieved"] += self.crowd.late != before

    def _over(self) -> None:
        self.core.core.fail_over()
        self.crowd.fails_over()

    def _install(self) -> None:
        crowd = self.crowd
        who = crowd.chosen if crowd.chosen and self.random.random() < 0.8 else self._who()
        if not who:
            return
        epoch = crowd.epoch + self.random.choice((0, 0, 0, 0, -1, 1))
        if self.random.random() < 0.2:
            self._fail(who, self.random.choice((0, epoch)))
            return
        true = self.random.random() < 0.8
        self._hand_in(who, epoch, true=true)

    def _fail(self, who: str, epoch: int) -> None:
        error = self.core.fails(who, at=epoch)
        found = "" if error is None else type(error).__name__
        assert found == self.crowd.fails(who, epoch)
        self.seen[found or "failed"] += 1

    def _hand_in(self, who: str, epoch: int, *, true: bool) -> None:
        targets = self._targets()
        if not true:
            targets = self.random.choice((_doubled, _strange, _beyond))(targets)
        error = self.core.hands_in(who, targets, at=epoch)
        found = "" if error is None else type(error).__name__
        assert found == self.crowd.installs(who, epoch, true=true)
        self.seen[found or "taken"] += 1

    def _targets(self) -> tuple[MemberTarget, ...]:
        given: dict[str, list[int]] = {who: [] for who in self.crowd.members}
        for number in range(PARTITIONS):
            given[self.random.choice(list(given))].append(number)
        return tuple(
            MemberTarget(who, (TopicPartitions("t", tuple(numbers)),))
            for who, numbers in given.items()
            if numbers
        )

    def comes_to_rest(self) -> None:
        """INV-17: all do what they should, and everything is somebody's in the end."""
        for _ in range(8):
            for who in self.crowd.members:
                self._beat(who)
            if self.crowd.chosen:
                self._hand_in(self.crowd.chosen, self.crowd.epoch, true=True)
        if self.crowd.members:
            assert self.core.group.state == "Stable"
            assert len(self.core.group.body.owners) == PARTITIONS


def _doubled(targets: tuple[MemberTarget, ...]) -> tuple[MemberTarget, ...]:
    first = targets[0].partitions[0].partitions
    twice = (TopicPartitions("t", tuple(sorted((*first, first[0])))),)
    return (targets[0]._replace(partitions=twice), *targets[1:])


def _strange(targets: tuple[MemberTarget, ...]) -> tuple[MemberTarget, ...]:
    return (targets[0]._replace(member_id="nobody"), *targets[1:])


def _beyond(targets: tuple[MemberTarget, ...]) -> tuple[MemberTarget, ...]:
    first = targets[0].partitions[0].partitions
    return (
        targets[0]._replace(partitions=(TopicPartitions("t", (*first, PARTITIONS)),)),
        *targets[1:],
    )


@pytest.mark.parametrize("seed", seeds())
def test_the_core_chooses_and_takes_what_the_rules_say(seed: int) -> None:
    print(f"again: SEED={seed} ./dev test property -- -k test_computing_members")
    walk = Walk(seed)
    for _ in range(STEPS):
        walk.step()
    walk.comes_to_rest()
    walk.core.core.check_replays()


def test_walks_come_to_every_answer() -> None:
    """A crowd that never errs, or is never late, would show nothing."""
    seen: Counter[str] = Counter()
    for seed in SEEDS[:60]:
        walk = Walk(seed)
        for _ in range(STEPS):
            walk.step()
        seen.update(walk.seen)

    wanted = (
        "asked",
        "relieved",
        "failed",
        "taken",
        "NotChosen",
        "StaleAssignment",
        "InvalidRequest",
    )
    assert min(seen[each] for each in wanted) >= 10, seen

"""A member that computes, and everything that may come in between, in any order: random walks.

What must hold whatever happens (T-20): one computation at a time, none of a member that the group
has not, nothing handed in that was dropped, and one that is asked for in the end is handed in.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from holdfast.client._session.consumer.states import IN_GROUP, State
from holdfast.client._session.session_io import (
    Compute,
    FailureKind,
    Stage,
    StopComputing,
    Subscription,
)
from holdfast.v1.errors_pb2 import ErrorCode
from holdfast.v1.group_pb2 import InstallAssignmentResponse
from unit.client._session.consumer.computing_driver import (
    ZONES,
    ComputingDriver,
    Install,
    Prepare,
)
from unit.client._session.consumer.driver import (
    FENCED_MEMBER_EPOCH,
    NONE,
    UNKNOWN_MEMBER_ID,
)

if TYPE_CHECKING:
    from collections.abc import Callable

STEPS = 300
CODES = (
    *(ErrorCode.ERROR_CODE_STALE_MEMBER_EPOCH, UNKNOWN_MEMBER_ID),
    *(ErrorCode.ERROR_CODE_INVALID_REQUEST, ErrorCode.ERROR_CODE_TOPIC_AUTHORIZATION_FAILED),
)


class Walk:
    """One member, and a seeded fate."""

    def __init__(self, seed: int) -> None:
        self.fate = random.Random(seed)
        self.driver = ComputingDriver()
        self.driver.slow = self.fate.random() < 0.5
        self.epoch = 1
        self.driver.start()

    def step(self) -> None:
        driver, fate = self.driver, self.fate
        can: list[Callable[[], None]] = [
            lambda: driver.advance(fate.choice((1, 300, 1_000, 2_500)))
        ]
        if not driver.quiet and driver.state is not State.LEAVING:
            can += [self.hears] * 3
        elif not driver.quiet:
            can += [lambda: driver.unchanged(driver.beat.member_epoch)]
        if self.ways():
            can += [self.goes_on] * 3
        if self.begun():
            can += [self.assignor] * 2
        if driver.running:
            can += [driver.returns] * 2
        if fate.random() < 0.1:
            can = [self.user]
        fate.choice(can)()
        self.look()

    def hears(self) -> None:
        driver, fate = self.driver, self.fate
        self.epoch += fate.random() < 0.3
        match fate.randrange(8):
            case 0:
                driver.fail(retry_in_ms=100)
            case 1:
                driver.refuse(fate.choice((FENCED_MEMBER_EPOCH, UNKNOWN_MEMBER_ID)))
            case 2:
                driver.unchanged(self.epoch)
            case 3:
                numbers = fate.sample(range(4), fate.randrange(4))
                driver.says(b"x", *numbers, epoch=self.epoch, by=fate.choice(("zones", "")))
            case _:
                joins = driver.beat.member_epoch == 0
                driver.asks(self.epoch, {} if joins else None)

    def goes_on(self) -> None:
        driver, fate = self.driver, self.fate
        (send,) = self.ways()
        if fate.random() < 0.2:
            driver.no_answer(fate.choice(list(FailureKind)))
        elif fate.random() < 0.3:
            driver.refuses(fate.choice(CODES))
        elif isinstance(send, Prepare):
            driver.prepares(self.epoch)
        else:
            driver.other(InstallAssignmentResponse(error_code=NONE))

    def assignor(self) -> None:
        """One of all that were ever begun ends, wanted or not."""
        compute = self.fate.choice(self.begun())
        wanted, before = compute.number in self.wanted(), len(self.ways())
        if self.fate.random() < 0.2:
            self.driver.raised(compute)
        else:
            self.driver.made(compute)
            assert len(self.ways()) == before + wanted
        self.driver.told = [
            each for each in self.driver.told if each != compute and each != self.stop_of(compute)
        ]

    def stop_of(self, compute: Compute) -> StopComputing:
        return StopComputing(compute.number)

    def user(self) -> None:
        driver, fate = self.driver, self.fate
        match fate.randrange(4):
            case 0:
                driver.do("unsubscribe")
            case 1:
                driver.do("subscribe", Subscription((fate.choice("tu"),)))
            case _:
                driver.do("say_of_assignors", (ZONES._replace(reason=fate.randrange(128)),))

    # --- looks -----------------------------------------------------------------------------------

    def ways(self) -> list[Prepare | Install]:
        requests = (send.request for send in self.driver.others.values())
        return [each for each in requests if isinstance(each, Prepare | Install)]

    def begun(self) -> list[Compute]:
        return [each for each in self.driver.told if isinstance(each, Compute)]

    def wanted(self) -> set[int]:
        stopped = {each.number for each in self.driver.told if isinstance(each, StopComputing)}
        return {each.number for each in self.begun()} - stopped

    def look(self) -> None:
        under_way = len(self.ways()) + len(self.wanted())
        assert under_way <= 1
        if self.driver.state not in IN_GROUP:
            assert under_way == 0
        assert self.driver.session.stage is Stage.RUNNING

    def settle(self) -> None:
        """All is well from now on, and the group asks until it has a target."""
        driver = self.driver
        driver.do("subscribe", Subscription(("t",)))
        for _ in range(400):
            while driver.running:
                driver.returns()
            if not driver.quiet:
                epoch = max(1, driver.beat.member_epoch)
                if driver.beat.member_epoch < 0:
                    driver.unchanged(driver.beat.member_epoch)
                else:
                    driver.asks(epoch, {})
            elif self.ways() and isinstance(self.ways()[0], Install):
                return
            elif self.ways():
                driver.prepares(self.epoch)
            elif self.wanted():
                (number,) = self.wanted()
                driver.made(next(each for each in self.begun() if each.number == number))
            else:
                driver.advance(1_000)
        raise AssertionError("nothing was handed in")


@pytest.mark.parametrize("seed", range(60))
def test_t20_whatever_comes_in_between(seed: int) -> None:
    walk = Walk(seed)
    for _ in range(STEPS):
        walk.step()
    walk.settle()

"""Logs of groups of the heartbeat protocol: an eventful one, and what random walks leave behind."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import replace
from random import Random
from typing import Any

from conformance.in_process import InProcess
from conformance.replayer import replay
from holdfast.coordinator.model.commands import Heartbeat
from holdfast.coordinator.model.consumer_events import (
    AssignmentRequested,
    EpochRaised,
    MemberAdvanced,
    MemberSubscribed,
    MemberTarget,
    RegexResolved,
    TargetStored,
)
from holdfast.coordinator.model.events import (
    GroupCreated,
    InstanceReleased,
    LevelRaised,
    MembersLeft,
    Record,
    SettingChange,
)
from holdfast.coordinator.model.ids import TopicPartitions
from holdfast.coordinator.model.member_profile import ClientAssignor, ConsumerProfile
from property.consumer_walk import ConsumerWalk
from spark.event_logs import EventLog, committed, formed, released, swapped
from unit.coordinator.people import GROUP, Classic, Consumer, World
from unit.coordinator.test_mixed_walks import act

BORN = GroupCreated("consumer")


def subscribed(
    member: str, instance: str | None = None, *, regex: str = "", joined: bool = True
) -> MemberSubscribed:
    topics = () if regex else ("t",)
    profile = ConsumerProfile("client", "host", None, 15_000, topics, regex)
    return MemberSubscribed(member, instance, profile, joined)


def some(partitions: Iterable[int]) -> tuple[TopicPartitions, ...]:
    """Partitions of topic `t`."""
    numbers = tuple(partitions)
    return (TopicPartitions("t", numbers),) if numbers else ()


def raised(epoch: int, cause: str = "joined") -> EpochRaised:
    return EpochRaised(epoch, cause, b"digest")


def aimed(epoch: int, **partitions: Iterable[int]) -> TargetStored:
    """A target of topic `t`; members by name."""
    targets = (MemberTarget(member, some(numbers)) for member, numbers in partitions.items())
    return TargetStored(epoch, "uniform", tuple(targets))


def advanced(
    member: str,
    epoch: int,
    *,
    asked_back: Iterable[int] = (),
    freed: Iterable[int] = (),
    granted: Iterable[int] = (),
    waiting: bool = False,
) -> MemberAdvanced:
    return MemberAdvanced(member, epoch, some(asked_back), some(freed), some(granted), waiting)


def assigning_log() -> EventLog:
    """Members that can run assignors, number their heartbeats, and tell where they run (S26)."""
    log = formed()
    log.entry("", LevelRaised(2))
    own = (ClientAssignor("own", 0, 1, 2, 1, b"said"), ClientAssignor("other", 0, 9, 0, 0, b""))
    profile = ConsumerProfile("client", "host", "rack", 15_000, ("t",), "", "uniform", own)
    first = MemberSubscribed("a1", "a", profile, joined=True, life="1", beat=3)
    log.entry("g", BORN, first, raised(2), aimed(2, a1=(0,)))
    log.entry("g", replace(advanced("a1", 2, granted=(0,)), beat=4))
    hasty = replace(first, profile=profile._replace(rebalance_timeout_ms=5_000), joined=False)
    log.entry("g", replace(hasty, beat=5, session_timeout_ms=9_000))
    log.entry("g", replace(hasty, life="2", beat=1, profile=profile._replace(rack_id=None)))
    log.entry("g", replace(advanced("a1", 2), beat=2))
    log.entry("g", InstanceReleased("a", "a1", beat=3, absence_ms=7_000))
    log.entry("g", swapped("a", "a1", "a2", 400))
    log.entry("g", raised(3), aimed(3, a2=(0, 1)), advanced("a2", 3, granted=(1,)))
    log.entry("g", replace(raised(4), predecessor_ms=900))
    log.entry("g", aimed(4, a2=(0, 1, 2)), advanced("a2", 4, granted=(2,)))
    log.entry("g", MembersLeft(("a2",), ""))
    return log


def reconciling_log() -> EventLog:
    """At 600 ms static a1 has all of t; then b1 comes, which is to have 2 and 3.

    At 900 ms a1 is asked for them; it gives them up at 1000, and b1 gets them at 1100.
    """
    log = formed()
    log.entry("", LevelRaised(2))
    log.entry("g", BORN, subscribed("a1", "a"), raised(2), aimed(2, a1=range(4)))
    log.entry("g", subscribed("a1", "a", joined=False))
    log.entry("g", committed(0, 1))
    log.entry("g", advanced("a1", 2, granted=range(4)))
    log.entry("g", subscribed("b1", "b"), raised(3), aimed(3, a1=(0, 1), b1=(2, 3)))
    log.entry("g", advanced("b1", 3, waiting=True))
    log.entry("g", advanced("a1", 2, asked_back=(2, 3)))
    log.entry("g", advanced("a1", 3, freed=(2, 3)))
    log.entry("g", advanced("b1", 3, granted=(2, 3)))
    return log


def eventful_consumer_log() -> EventLog:
    """Every way for a member, an instance, a target, a grant or an expression to come and go."""
    log = reconciling_log()
    _restarts(log)
    _expressions(log)
    _a_second_life(log)
    _computed_by_a_member(log)
    _choices(log)
    _deaths_of_computing(log)
    return log


def _restarts(log: EventLog) -> None:
    """A planned one keeps tokens; one while partitions are asked back frees these (K-N23)."""
    log.entry("g", released("a", "a1"))
    log.entry("g", swapped("a", "a1", "a2"))
    log.entry("g", advanced("a2", 3))
    log.entry("g", subscribed("x"), raised(4), aimed(4, a2=(0,), x=(1,)))
    log.entry("g", advanced("a2", 3, asked_back=(1,)))
    log.entry("g", released("a", "a2"))
    log.entry("g", advanced("x", 4, granted=(1,)))
    log.entry("g", swapped("a", "a2", "a3"))
    log.entry("g", swapped("a", "a3", "a4", 5_000))  # the holder had not released it
    log.entry("g", raised(5, "asked"), aimed(5, a4=(), b1=(0,), x=(1, 2, 3)))
    log.entry("g", advanced("b1", 3, asked_back=(2, 3)))
    log.entry("g", advanced("x", 5, waiting=True))


def _expressions(log: EventLog) -> None:
    """K-P7: an expression is forgotten with its last member, and not known when it returns."""
    found = (("ta", "tb"), 7)
    log.entry("r", BORN, subscribed("m", regex="t.*"), subscribed("n", regex="t.*"), raised(2))
    log.entry("r", RegexResolved("t.*", *found))
    log.entry("r", MembersLeft(("m",), ""), raised(3, "left"))
    log.entry("r", subscribed("n", regex="u.*", joined=False), raised(4, "subscription"))
    log.entry("r", RegexResolved("u.*", *found))
    log.entry("r", subscribed("o", regex="t.*"), raised(5))


def _computed_by_a_member(log: EventLog) -> None:
    """KIP-848: a choice changes nothing of who owns what; a target may have metadata alone."""
    log.entry("own", BORN, subscribed("m"), raised(2), AssignmentRequested("m", 2, "own"))
    log.entry("own", subscribed("n"), raised(3), AssignmentRequested("n", 3, "own", late="m"))
    said = (MemberTarget("m", some((0,)), 1, b"m"), MemberTarget("n", (), 1, b"n"))
    log.entry("own", TargetStored(3, "own", said, installed_by="n"))
    log.entry("own", advanced("m", 3, granted=(0,)))
    log.entry("own", advanced("n", 3))


def _choices(log: EventLog) -> None:
    """KIP-848: who is asked in turn, who was late, and by what a choice ends or is overtaken."""
    people = (subscribed("m1", "m"), subscribed("n"), subscribed("o"))
    log.entry("choice", BORN, *people, raised(2), asked("m1", 2))
    log.entry("choice", asked("n", 2, late="m1"), asked("o", 2, late="n"))
    log.entry("choice", asked("m1", 2, late="o"))
    log.entry("choice", asked("n", 2, late="m1"), asked("o", 2, late="n"))
    log.entry("choice", released("m", "m1"))  # its process is gone
    log.entry("choice", swapped("m", "m1", "m2"))
    log.entry("choice", asked("n", 2, late="nobody"))
    said = (MemberTarget("n", some((0,)), 1, b"n"),)
    log.entry("choice", TargetStored(2, "own", said, installed_by="n"))
    log.entry("choice", raised(3, "asked"), asked("o", 3))
    log.entry("choice", MembersLeft(("o",), ""), raised(4, "left"), asked("m2", 4))
    log.entry("choice", subscribed("p", regex="t.*"), raised(5))
    log.entry("choice", RegexResolved("t.*", ("ta",), 7))
    log.entry("choice", asked("n", 5, late="m2"), aimed(5, n=(0, 1)))


def _deaths_of_computing(log: EventLog) -> None:
    """INV-16: who comes in the place of one that was asked, or late, is late; unless that stopped.

    Behind each entry stands who is late then.
    """
    people = (subscribed("m1", "m"), subscribed("k1", "k"), subscribed("n"))
    log.entry("death", BORN, *people, raised(2), asked("m1", 2))
    log.entry("death", swapped("m", "m1", "m2", 500))  # m2
    log.entry("death", swapped("m", "m2", "m3", 500))  # m3
    log.entry("death", asked("k1", 2), asked("n", 2, late="k1"))  # m3, k1
    log.entry("death", swapped("m", "m3", "m4", 500))  # k1, m4
    log.entry("death", swapped("k", "k1", "k2", 500))  # m4, k2
    log.entry("death", released("m", "m4"), swapped("m", "m4", "m5"))  # k2
    log.entry("death", asked("m5", 2, late="n"))  # k2, n
    log.entry("death", asked("k2", 2, late="m4"))  # k2, n; m4 is not there any more
    log.entry("death", swapped("m", "m5", "m6", 500))  # k2, n; another was asked
    log.entry("death", asked("m6", 2), released("m", "m6"), swapped("m", "m6", "m7"))  # k2, n
    log.entry("death", asked("k2", 2, late="k2"), swapped("k", "k2", "k3", 500))  # n, k3
    log.entry("death", TargetStored(2, "own", (), installed_by="k2"))  # n, k3; k2 is not there
    log.entry("death", swapped("m", "m7", "m8", 500))  # n, k3
    log.entry("death", raised(3, "asked"), asked("k3", 3))
    log.entry("death", TargetStored(3, "own", (), installed_by="k3"))  # n
    log.entry("death", swapped("k", "k3", "k4", 500))  # n; there is a target
    log.entry("death", raised(4, "asked"), asked("k4", 4), swapped("k", "k4", "k5", 500))  # n, k5
    log.entry("death", MembersLeft(("k5",), ""), subscribed("k6", "k"), raised(5, "left"))  # n
    log.entry("death", asked("n", 5), MembersLeft(("n",), ""), subscribed("n", "i"), raised(6))
    log.entry("death", swapped("i", "n", "n2", 500))  # nobody; n was asked in another place


def asked(member: str, epoch: int, late: str = "") -> AssignmentRequested:
    return AssignmentRequested(member, epoch, "own", late)


def _a_second_life(log: EventLog) -> None:
    """A member id that comes back, with another instance."""
    log.entry("again", BORN, subscribed("m"), raised(2), aimed(2, m=(0, 1)))
    log.entry("again", advanced("m", 2, granted=(0, 1)))
    log.entry("again", MembersLeft(("m",), ""), raised(3, "left"))
    log.entry("again", subscribed("m", "i"), raised(4), aimed(4, m=(0,)))
    log.entry("again", advanced("m", 4, granted=(0,)))


def walk(seed: int, steps: int) -> Iterator[tuple[tuple[Record, ...], Any]]:
    """Yield the entries of a random walk, each with the state that it led to.

    What is answered is judged elsewhere: here only the log counts.
    """
    transcript = ConsumerWalk(seed).transcript(steps)
    session = InProcess(transcript["config"], transcript["topics"])
    asyncio.run(replay(transcript, session))
    for applied in session.core.log:
        yield applied.records, applied.after


def mixed_walk(seed: int, steps: int) -> list[tuple[tuple[Record, ...], Any]]:
    """Entries of a random walk of members of both protocols in a group that never changes its own.

    Now and then one goes over to the classic protocol under its own id.
    """
    random = Random(seed)
    world = World(count=5, settings=(SettingChange("group.consumer_migration_policy", "disabled"),))
    stays = Consumer(world, "stays")
    everyone: list[Classic | Consumer] = [
        *(Classic(world, f"x{n}", f"i-{n}" if n else None) for n in range(3)),
        *(Consumer(world, f"a{n}", f"i-{n}" if n == 1 else None) for n in range(3)),
        stays,
    ]
    stays.beat()
    for _ in range(steps):
        one = random.choice(everyone)
        if isinstance(one, Consumer) and one is not stays and one.epoch and random.random() < 0.1:
            everyone.append(_gone_over(world, one))
            one.epoch = 0
        elif isinstance(one, Classic) and one.id and one.instance and random.random() < 0.1:
            _stopped(world, one)
        elif one is not stays:
            act(random, one)
        stays.beat()
        for each in everyone:
            if isinstance(each, Classic):
                each.look()
    return [(applied.records, applied.after) for applied in world.core.log]


def _stopped(world: World, one: Classic) -> None:
    """The process of a static member is restarted: it says so, and joins later (S12)."""
    world.ask(Heartbeat(world.caller(), GROUP, one.generation, one.id, one.instance, release=True))
    one.id, one.generation = "", -1


def _gone_over(world: World, one: Consumer) -> Classic:
    """The process goes on as one of the classic protocol, and keeps what it owns."""
    numbers = tuple(sorted(one.owned))
    made = Classic(world, one.id, one.instance, id=one.id)
    made.join(owned=(TopicPartitions("t", numbers),) if numbers else ())
    one.owned = frozenset()
    return made

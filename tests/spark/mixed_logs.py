"""Logs of groups with members of both protocols, and of groups that change their protocol (K-Q)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from conformance.in_process import InProcess
from holdfast.coordinator.model.consumer_events import (
    ConvertedMember,
    GroupConverted,
    MemberSubscribed,
)
from holdfast.coordinator.model.events import (
    GroupCreated,
    GroupEmptied,
    LevelRaised,
    MembersLeft,
    Record,
    StaticMemberReplaced,
)
from holdfast.coordinator.model.levels import LEVEL_MAX
from holdfast.coordinator.model.member_profile import (
    ClassicProfile,
    ConsumerProfile,
    MemberProfile,
    Protocol,
)
from property.mixed_crowd import Crowd
from spark.consumer_logs import BORN, advanced, aimed, raised, some, subscribed
from spark.event_logs import (
    EventLog,
    assigned,
    formed,
    generation,
    joined,
    rebalance_started,
    released,
    swapped,
    two_static_members,
)

PROTOCOLS = (Protocol("range", b"", ("t",)),)


def mixed_log() -> EventLog:
    """Every way for members of both protocols to be in one group, and for it to change its own."""
    log = formed()
    log.entry("", LevelRaised(LEVEL_MAX))
    _both(log)
    _instances_that_turn(log)
    _there_and_back(log)
    _twice_at_once(log)
    _without_members(log)
    return log


def came(member: str, instance: str | None = None, *, known: bool = False) -> MemberSubscribed:
    """A member of the classic protocol in a group of the other one."""
    profile = ConsumerProfile("client", "host", None, 15_000, ("t",))
    classic = ClassicProfile(10_000, PROTOCOLS, f"req-{member}")
    return MemberSubscribed(member, instance, profile, not known, classic)


def taken(instance: str, old: str, new: str, predecessor_ms: int = 0) -> StaticMemberReplaced:
    """A process of the classic protocol takes an instance over."""
    profile = MemberProfile("client", "host", 10_000, 15_000, PROTOCOLS)
    return StaticMemberReplaced(instance, old, new, profile, f"req-{new}", predecessor_ms)


def up(epoch: int, **partitions: Iterable[int]) -> GroupConverted:
    """The group becomes one of the heartbeat protocol."""
    members = (ConvertedMember(name, ("t",), some(some_)) for name, some_ in partitions.items())
    return GroupConverted("consumer", epoch, tuple(members))


def down(epoch: int, **partitions: Iterable[int]) -> GroupConverted:
    """The group becomes a classic one."""
    members = tuple(ConvertedMember(name, (), some(some_)) for name, some_ in partitions.items())
    leader = members[0].member_id if members else ""
    return GroupConverted("classic", epoch, members, "range" if members else "", leader)


def _both(log: EventLog) -> None:
    """S13: a grant to a classic member renews all that it owns, and not what it gives up."""
    log.entry("mixed", BORN, subscribed("a1", "a"), raised(2), aimed(2, a1=range(4)))
    log.entry("mixed", advanced("a1", 2, granted=range(4)))
    log.entry("mixed", came("x"), raised(3), aimed(3, a1=(0, 1), x=(2, 3)))
    log.entry("mixed", advanced("x", 3, waiting=True), advanced("a1", 2, asked_back=(2, 3)))
    log.entry("mixed", advanced("a1", 3, freed=(2, 3)))
    log.entry("mixed", advanced("x", 3, granted=(2,), waiting=True))
    log.entry("mixed", advanced("x", 3, granted=(3,)))
    log.entry("mixed", raised(4, "asked"), aimed(4, a1=(0, 1, 2), x=(3, 4)))
    log.entry("mixed", advanced("x", 3, asked_back=(2,)))
    log.entry("mixed", advanced("x", 3, granted=(4,)))
    log.entry("mixed", advanced("x", 4, freed=(2,)))


def _instances_that_turn(log: EventLog) -> None:
    """K-Q7, K-N13: a process of the other protocol takes an instance, released or not."""
    log.entry("mixed", advanced("a1", 4, granted=(2,)))
    log.entry("mixed", taken("a", "a1", "a2", 500))
    log.entry("mixed", advanced("a2", 4))
    log.entry("mixed", released("a", "a2"))
    log.entry("mixed", taken("a", "a2", "a3"))
    log.entry("mixed", advanced("a3", 4))
    log.entry("mixed", released("a", "a3"))
    log.entry("mixed", swapped("a", "a3", "a4"))
    log.entry("mixed", advanced("a4", 4))
    log.entry("mixed", came("a4", "a", known=True))
    log.entry("mixed", came("x", known=True))
    log.entry("mixed", MembersLeft(("x",), ""), raised(5, "left"))


def _there_and_back(log: EventLog) -> None:
    """K-Q2, K-Q12: who was swapped, stopped, or not granted anything yet comes along."""
    two_static_members(log, "back")
    log.entry("back", swapped("a", "a1", "a2"), released("b", "b1"))
    log.entry("back", rebalance_started("new member"), joined("d1"))
    began = (subscribed("n"), raised(2), aimed(2, a2=(0,), n=(1,)))
    log.entry("back", up(1, a2=(0, 1), b1=(2, 3), d1=()), *began)
    log.entry("back", advanced("a2", 1, asked_back=(1,)))
    log.entry("back", advanced("a2", 2, freed=(1,)), advanced("n", 2, granted=(1,)))
    log.entry("back", swapped("b", "b1", "b2"))
    log.entry("back", advanced("b2", 2))
    log.entry("back", MembersLeft(("n", "b2"), ""))
    log.entry("back", down(2, a2=(0,), d1=()), rebalance_started("the last one is gone"))
    log.entry("back", generation(3, "a2", "d1"))
    log.entry("back", released("a", "a2"), taken("a", "a2", "a3"))
    log.entry("back", assigned(3, a3=(0, 1), d1=(300,)))
    log.entry("back", rebalance_started("once more"), generation(4, "a3", "d1"))
    log.entry("back", rebalance_started("and again"))  # K-D10: nothing is assigned


def _twice_at_once(log: EventLog) -> None:
    """S13: a token goes over several conversions, if nothing is granted in between."""
    two_static_members(log, "twice")
    log.entry("twice", up(1, a1=(0, 1), b1=(2, 3)), subscribed("n"), raised(2))
    log.entry("twice", aimed(2, a1=(0,), b1=(2, 200, 70_000), n=(1,)))
    log.entry("twice", advanced("b1", 1, granted=(200, 70_000)))  # its 2 and 3 get this token, too
    log.entry("twice", advanced("b1", 1, asked_back=(2, 3)))
    log.entry("twice", MembersLeft(("n",), ""))
    log.entry("twice", down(2, a1=(0, 1), b1=(2, 3, 200, 70_000)), rebalance_started("gone"))
    log.entry("twice", up(2, a1=(0, 1), b1=(2, 3, 200, 70_000)), subscribed("o"), raised(3))
    log.entry("twice", aimed(3, a1=(1,), b1=(2,), o=(0,)))
    log.entry("twice", advanced("b1", 2, asked_back=(3, 200, 70_000)))
    log.entry("twice", released("a", "a1"))
    log.entry("twice", MembersLeft(("o",), ""))
    log.entry("twice", down(3, a1=(0, 1), b1=(2, 3, 200, 70_000)), rebalance_started("gone"))
    log.entry("twice", up(3, a1=(0, 1), b1=(2, 3, 200, 70_000)), subscribed("p"), raised(4))
    log.entry("twice", aimed(4, p=(0,)), MembersLeft(("b1", "p"), ""))


def _without_members(log: EventLog) -> None:
    """K-Q1, K-Q14: an empty group changes its protocol, and keeps its offsets."""
    two_static_members(log, "empty")
    log.entry("empty", rebalance_started("all go"), MembersLeft(("a1", "b1"), ""), GroupEmptied(2))
    log.entry("empty", up(1), subscribed("a1", "a"), raised(2), aimed(2, a1=range(4)))
    log.entry("empty", advanced("a1", 2, granted=range(4)))
    log.entry("empty", MembersLeft(("a1",), ""), raised(3, "left"))
    log.entry("empty", down(3), rebalance_started("first join"), joined("a1", "a"))
    log.entry("empty", generation(4, "a1"))
    log.entry("new", GroupCreated(), up(1), subscribed("a"), raised(2))


def crowd(seed: int, steps: int) -> Iterator[tuple[tuple[Record, ...], Any]]:
    """Yield the entries that clients of both protocols make, each with the state it led to."""
    session = InProcess({}, {"t": 6})
    clients = Crowd(seed, session, 6)
    for _ in range(steps):
        clients.step()
    for each in session.core.log:
        yield each.records, each.after

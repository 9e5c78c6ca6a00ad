"""Random histories of who is to compute a target, and who is late (KIP-848, INV-16).

They hold what the rules of `evolve` allow, also what the service would not decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from holdfast.coordinator.consumer.state import ConsumerBody
from holdfast.coordinator.model.consumer_events import RegexResolved, TargetStored
from holdfast.coordinator.model.events import Event, MembersLeft, Record
from spark.consumer_logs import BORN, asked, raised, subscribed
from spark.event_logs import EventLog, formed, released, swapped

_INSTANCES = ("a", "b", "c", None)
_GROUP = "choices"


def choice_walk(seed: int, steps: int) -> Iterator[tuple[tuple[Record, ...], Any]]:
    """Yield the entries of a random history, each with the state that it led to."""
    random, log = Random(seed), formed()
    log.entry(_GROUP, BORN, subscribed("stays", regex="t.*"), raised(2))
    for nth in range(steps):
        known = len(log.records)
        log.entry(_GROUP, *random.choice(_DEEDS)(random, log, f"m{nth}"))
        yield tuple(log.records[known if nth else 0 :]), log.state


def _body(log: EventLog) -> ConsumerBody:
    body: ConsumerBody = log.state.groups[_GROUP].body
    return body


def _asks(random: Random, log: EventLog, _name: str) -> list[Event]:
    """Somebody is to compute; late is a member, the one that was asked, or nobody that is there."""
    members, epoch = list(_body(log).members), log.state.groups[_GROUP].generation
    due: list[Event] = []
    if _body(log).assignment_epoch == epoch:
        due, epoch = [raised(epoch + 1, "asked")], epoch + 1
    was = _body(log).asked
    late = random.choice(["", "nobody", random.choice(members), was.member_id if was else ""])
    return [*due, asked(random.choice(members), epoch, late)]


def _installs(random: Random, log: EventLog, _name: str) -> list[Event]:
    """A target is stored, by a member or by the service."""
    epoch = log.state.groups[_GROUP].generation + 1
    by = random.choice(["", "nobody", random.choice(list(_body(log).members))])
    return [raised(epoch, "asked"), TargetStored(epoch, "own" if by else "uniform", (), by)]


def _comes(random: Random, log: EventLog, name: str) -> list[Event]:
    """A process comes; in the place of another, if its instance is there, which may have stopped.

    Dynamic members have few ids, so that some come back.
    """
    instance = random.choice(_INSTANCES)
    if instance is None:
        name = random.choice(("x", "y"))
    holder = _body(log).instances.get(instance or "")
    if holder is not None:
        stops = [released(str(instance), holder)] if random.random() < 0.3 else []
        return [*stops, swapped(str(instance), holder, name, 500)]
    return [subscribed(name, instance, joined=name not in _body(log).members)]


def _goes(random: Random, log: EventLog, _name: str) -> list[Event]:
    """A member leaves, or says that it stops."""
    others = [each for each in _body(log).members.values() if each.member_id != "stays"]
    if not others:
        return [RegexResolved("t.*", ("ta",), 7)]
    one = random.choice(others)
    if one.instance_id and not one.released and random.random() < 0.5:
        return [released(one.instance_id, one.member_id)]
    return [MembersLeft((one.member_id,), "")]


_DEEDS: tuple[Callable[[Random, EventLog, str], list[Event]], ...] = (
    _asks,
    _asks,
    _asks,
    _comes,
    _comes,
    _comes,
    _installs,
    _goes,
)

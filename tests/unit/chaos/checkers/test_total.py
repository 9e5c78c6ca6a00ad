"""A checker never fails on a history, however much of it is missing or said twice."""

from __future__ import annotations

from random import Random

import pytest

from holdfast.chaos.checkers import ALL, judge
from holdfast.chaos.history import happenings as h
from holdfast.coordinator.model.events import (
    ClusterFormed,
    GroupDeleted,
    GroupEmptied,
    InstanceReleased,
    MemberExpired,
    MembersLeft,
    MembersRemoved,
    PartitionsAdded,
    TopicsDeleted,
    TopicSize,
)
from unit.chaos.scribe import (
    SESSION_MS,
    Scribe,
    assigned,
    joined,
    opened,
    owning,
    replaced,
    started,
    topic,
)

SEEDS = 150


def eventful() -> list[h.Happening]:
    """A bit of everything."""
    s = Scribe()
    s.say(h.Began(0, h.FORMAT, "simulation", ("n1",), 0.1, {}))
    s.lead()
    s.entry(ClusterFormed("c", ()), group="")
    s.entry(topic(4), group="")
    s.create()
    s.entry(opened(), joined("a.1", owning([])), joined("b", owning([])))
    s.entry(started(1, "a.1", "b", protocol="sticky"))
    token = s.entry(assigned(1, {"a.1": [0, 1], "b": [2, 3]}))
    s.grant("w1", "a.1", [0, 1], token, until_ms=SESSION_MS)
    s.grant("w2", "b", [2, 3], token)
    s.call("Heartbeat", "w1", member_id="a.1", generation=1)
    s.call("SyncGroup", "w2", member_id="b", generation=1, result={"partitions": [["t", 2]]})
    s.commit(5, request_id="r1", member_id="a.1")
    s.fetch(5)
    s.renew("w1", "a.1", SESSION_MS)
    s.write("w1", token, accepted=True)
    s.say(h.Applied(s.now_us, "n1", s.index, "ab"))
    s.say(h.Applied(s.now_us, "n2", s.index, "ab"))
    s.say(h.WatchOpened(s.now_us, "x", "", 0, 0))
    s.say(h.Watched(s.now_us, "x", 1, 0, 1, "", "ClusterFormed"))
    s.say(h.WatchGap(s.now_us, "x"))
    s.fault("pause")
    s.entry(PartitionsAdded((TopicSize("t", 5),)), group="")
    s.lead("n2")
    s.fault("pause", phase="end")
    s.entry(InstanceReleased("a", "a.1"))
    s.entry(replaced("a.1", "a.2", owning([])))
    s.surrender("w1", "a.1")
    s.entry(opened(), MemberExpired("b", "session"), joined("c", owning([0])))
    s.entry(started(2, "a.2", "c", protocol="sticky"))
    s.entry(assigned(2, {"a.2": [0, 1, 4], "c": [2, 3]}))
    members = [["a.2", "a"], ["c", ""]]
    told = {"state": "Stable", "generation": 2, "members": members}
    s.call("DescribeGroups", result=told)
    s.entry(opened(), MembersLeft(("c",), ""), MembersRemoved(("a.2",), ""), GroupEmptied(3))
    s.entry(TopicsDeleted(("t",)), group="")
    s.entry(GroupDeleted())
    s.call("DeleteGroups", request_id="r2", outcome="unknown")
    s.say(h.Phase(s.now_us, "healing"))
    s.say(h.Phase(s.now_us, "end"))
    return s.history


def damaged(random: Random, history: list[h.Happening]) -> list[h.Happening]:
    """Some happenings are gone, some come twice; calls stay whole, or it would be refused."""
    found: list[h.Happening] = []
    begin = random.randrange(len(history)) if random.random() < 0.3 else 0
    for number, each in enumerate(history):
        whole = isinstance(each, h.Invoked | h.Returned)
        kept = whole or (number >= begin and random.random() < 0.8)
        found += [each] * (kept + (kept and not whole and random.random() < 0.1))
    return found


@pytest.mark.parametrize("invariant", ALL)
def test_every_checker_has_something_to_look_at(invariant: str) -> None:
    """Else what follows would say nothing."""
    assert not judge(eventful(), [invariant]).verdicts[invariant].empty


def test_no_checker_fails_whatever_is_missing() -> None:
    history = eventful()
    for seed in range(SEEDS):
        found = damaged(Random(seed), history)
        try:
            judge(found).table()
        except Exception as error:
            raise AssertionError(f"replay: damaged(Random({seed}), eventful())") from error

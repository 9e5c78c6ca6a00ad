"""A checker never fails on a history, however much of it is missing or said twice."""

from __future__ import annotations

from random import Random

import pytest

from holdfast.chaos.checkers import ALL, judge
from holdfast.chaos.history import happenings as h
from holdfast.coordinator.model.consumer_events import (
    ConvertedMember,
    GroupConverted,
    RegexResolved,
)
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
    advanced,
    assigned,
    joined,
    of_t,
    opened,
    owning,
    raised,
    replaced,
    returned,
    started,
    subscribed,
    target,
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
    _beat(s)
    s.say(h.Phase(s.now_us, "healing"))
    s.say(h.Phase(s.now_us, "end"))
    return s.history


def _beat(s: Scribe) -> None:
    """A group of the heartbeat protocol that has been classic before, and is classic at the end."""
    s.entry(topic(4), group="")
    s.create()
    token = s.stable({"d": [0, 1], "e.1": [2, 3]}, generation=4)
    owns = [
        ConvertedMember("d", ("t",), of_t([0, 1])),
        ConvertedMember("e.1", ("t",), of_t([2, 3])),
    ]
    s.entry(GroupConverted("consumer", 4, tuple(owns)), subscribed("f"), raised(5))
    s.entry(target(5, {"d": [0, 1], "e.1": [2], "f": [3]}), advanced("f", 5, waiting=True))
    s.grant("w3", "d", [0, 1], token)
    s.beat("w4", "f", 0, told=5, grants=[])
    s.entry(advanced("e.1", 4, asked_back=(3,)))
    s.entry(advanced("e.1", 5, freed=(3,)), advanced("d", 5))
    s.entry(advanced("f", 5, (3,)))
    s.beat("w4", "f", 5, grants=[["t", 3, s.index]])
    s.call("ConsumerGroupDescribe", result={"state": "Stable", "generation": 5, "members": []})
    s.entry(InstanceReleased("e", "e.1"))
    s.entry(returned("e.1", "e.2"))
    s.entry(RegexResolved("t.*", ("t",), 1), raised(6, "topics", b"other"))
    s.entry(MembersLeft(("f",), ""), raised(7, "left"))
    owns = [ConvertedMember("d", (), of_t([0, 1])), ConvertedMember("e.2", (), of_t([2]))]
    s.entry(GroupConverted("classic", 7, tuple(owns), "range", "d"), opened())


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

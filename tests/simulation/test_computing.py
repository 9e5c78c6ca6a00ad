"""Members of the simulator that compute: what they say, and that what is a lie is one."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from holdfast.v1 import group_pb2 as g
from simulation import computing
from simulation.computing import LYING, MOODS, NEVER, STALE, Assigner
from simulation.outcome import run_seed

FOUND = g.PrepareAssignmentResponse(
    group_epoch=7,
    members=[g.PrepareAssignmentResponseMember(member_id=each) for each in ("a", "b")],
    topics=[g.PrepareAssignmentResponseTopic(name="t", num_partitions=3)],
    topic_lists=[g.PrepareAssignmentResponseTopicList(topics=[0])],
)


def given(request: g.InstallAssignmentRequest) -> Counter[tuple[str, int]]:
    return Counter(
        (topic.topic, number)
        for member in request.members
        for topic in member.topic_partitions
        for number in topic.partitions
    )


def test_each_partition_goes_to_one_member() -> None:
    shared = g.InstallAssignmentRequest(members=computing._shared_out(FOUND))

    assert given(shared) == Counter({("t", number): 1 for number in range(3)})
    assert {len(each.topic_partitions) for each in shared.members} == {1}


@pytest.mark.parametrize("lie", computing._LIES)
def test_each_lie_is_one(lie: Any) -> None:  # noqa: ANN401 - one of the lies
    """A stranger, a partition twice, a strange topic, or a partition that is not there."""
    told = g.InstallAssignmentRequest(members=computing._shared_out(FOUND))
    lie(told, FOUND)
    strangers = {each.member_id for each in told.members} - {"a", "b"}
    beyond = given(told).keys() - {("t", number) for number in range(3)}
    doubled = [each for each, count in given(told).items() if count > 1]

    assert strangers or beyond or doubled


def test_every_mood_comes_up_in_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else what is refused would never have been tried; and all is well in the end."""
    seen: Counter[str] = Counter()

    class Watching(Random):
        def choice(self, some: Any) -> Any:  # noqa: ANN401 - of any kind
            mood = super().choice(some)
            if some is MOODS:
                seen[mood] += 1
            return mood

    begin = Assigner.__init__

    def watched(self: Assigner, process: Any, group: str, *rest: Any) -> None:  # noqa: ANN401 - passed on
        instance_id, rebalance_s, random, is_calm = rest
        begin(self, process, group, instance_id, rebalance_s, Watching(random.random()), is_calm)

    monkeypatch.setattr(Assigner, "__init__", watched)
    outcome = run_seed(2)

    assert outcome.violations == ()
    assert min(seen[mood] for mood in {*MOODS} - {NEVER, STALE, LYING}) >= 1
    assert sum(seen[mood] for mood in (NEVER, STALE, LYING)) >= 2

"""The transcripts of a real Kafka coordinator, replayed against the core: Kafka decides."""

import asyncio
import json
from pathlib import Path

import pytest

from conformance.in_process import InProcess
from conformance.replayer import (
    TRANSCRIPTS,
    classic_transcripts,
    deviations,
    heartbeat_transcripts,
    left_out,
    load,
    replay,
    transcripts,
)

CLASSIC_MIN = 94
HEARTBEAT_MIN = 32
TRANSCRIPTS_MIN = CLASSIC_MIN + HEARTBEAT_MIN


def test_all_transcripts_are_there() -> None:
    """A run that finds fewer than it should has tested nothing."""
    assert len(classic_transcripts()) >= CLASSIC_MIN
    assert len(heartbeat_transcripts()) >= HEARTBEAT_MIN
    assert len({path.stem for path in transcripts()}) == len(transcripts())


@pytest.mark.parametrize("path", transcripts(), ids=lambda path: path.stem)
def test_answers_are_kafkas(path: Path) -> None:
    """Same request, same state: same code, generation and who moves, but for listed deviations.

    The log that the replay leaves is replayed, from scratch and from cuts, to the same state.
    """
    why = left_out(path)
    if why is not None:
        pytest.skip(why)
    transcript = load(path)
    session = InProcess(transcript["config"], transcript["topics"])
    differing = deviations().get(transcript["name"])

    assert asyncio.run(replay(transcript, session, differing)) is None
    if differing is None:
        assert session.unanswered == set(transcript["parked_at_end"])
    session.core.check_replays()


def test_each_deviation_is_a_difference() -> None:
    """A deviation that Kafka's own answer would pass as well does not belong into the list."""
    for name, steps in deviations().items():
        (path,) = TRANSCRIPTS.rglob(f"{name}.json")
        recorded = load(path)["steps"]
        for step, deviation in steps.items():
            kafka = sorted(
                json.dumps(each, sort_keys=True) for each in recorded[step]["completions"]
            )
            ours = sorted(json.dumps(each, sort_keys=True) for each in deviation.ours)
            assert kafka != ours, f"{name} step {step}"


def test_unreadable_subscriptions_are_refused_and_wedge_nothing() -> None:
    """K-J25 bettered: INCONSISTENT_GROUP_PROTOCOL, and a healthy member joins the same group."""
    transcript = load(TRANSCRIPTS / "unparsable_consumer_subscription.json")
    first = transcript["steps"][0]["do"]
    session = InProcess(transcript["config"], transcript["topics"])

    async def run() -> list[str]:
        await session.call(0, "a", "JoinGroup", first["request"])
        healthy = [{"name": "p", "metadata": {"topics": ["t"]}}]
        static = {**first["request"], "group_instance_id": "i1", "protocols": healthy}
        await session.call(1, "b", "JoinGroup", static)
        return [each.response["error_code"] for each in await session.settle(frozenset())]

    assert asyncio.run(run()) == ["INCONSISTENT_GROUP_PROTOCOL", "NONE"]

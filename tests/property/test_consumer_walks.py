"""The core against the second coordinator of consumer groups: random calls, the same answers."""

import asyncio
import os
from collections import Counter
from typing import Any

import pytest

from conformance.in_process import InProcess
from conformance.replayer import replay
from property import consumer_clients
from property.consumer_walk import ConsumerWalk
from property.kafka_consumer_model import LATE_MS
from property.kafka_consumer_reads import ConsumerCoordinator

Json = Any
STEPS = 80
SEEDS = range(120)


def seeds() -> list[int]:
    chosen = os.environ.get("SEED")
    return [int(chosen)] if chosen else list(SEEDS)


def differs(transcript: Json) -> str | None:
    """The first answer that the core does not give as the rules say; its log must replay."""
    session = InProcess(transcript["config"], transcript["topics"])
    session.core.compute_ms = LATE_MS
    problem = asyncio.run(replay(transcript, session))
    session.core.check_replays()
    return problem


@pytest.mark.parametrize("seed", seeds())
def test_the_core_answers_as_the_rules_say(seed: int) -> None:
    print(f"again: SEED={seed} ./dev test property -- -k test_consumer_walks")
    problem = differs(ConsumerWalk(seed).transcript(STEPS))

    assert problem is None, problem


@pytest.mark.parametrize("seed", seeds())
def test_the_core_answers_as_the_rules_say_though_all_targets_come_late(seed: int) -> None:
    """K-M20, INV-16: what happens meanwhile is in the next target, and nobody waits for ever."""
    print(f"again: SEED={seed} ./dev test property -- -k test_consumer_walks")
    problem = differs(ConsumerWalk(seed, late=True).transcript(STEPS))

    assert problem is None, problem


def test_late_targets_are_stored_overtaken_and_computed_at_once_in_the_end() -> None:
    """K-M20: a crowd that never overtakes a target would show nothing."""
    seen: Counter[str] = Counter()

    class Watched(ConsumerCoordinator):
        def _computed(self, name: str, epoch: int, target: Json) -> None:
            group = self.consumers.get(name)
            super()._computed(name, epoch, target)
            if group is not None and group.members:
                seen["stored" if group.target is target else "overtaken"] += 1
                seen["at once"] += group.target_epoch == group.epoch and group.target is not target

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(consumer_clients, "ConsumerCoordinator", Watched)
        for seed in SEEDS:
            ConsumerWalk(seed, late=True).transcript(STEPS)

    assert min(seen[each] for each in ("stored", "overtaken", "at once")) >= 5, seen


def test_walks_come_to_every_state_and_every_error() -> None:
    """A crowd that never gets anywhere, or never errs, would show nothing."""
    seen: Counter[str] = Counter()
    for seed in SEEDS:
        for step in ConsumerWalk(seed).transcript(STEPS)["steps"]:
            for each in step["completions"]:
                seen.update(_told(each["api"], each["response"]))

    assert {word for word, times in seen.items() if times >= 5} >= {
        *("Empty", "Assigning", "Reconciling", "Stable"),
        *("NONE", "GROUP_ID_NOT_FOUND", "UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH"),
        *("UNRELEASED_INSTANCE_ID", "FENCED_INSTANCE_ID", "GROUP_MAX_SIZE_REACHED"),
        *("INVALID_REQUEST", "UNSUPPORTED_ASSIGNOR", "INVALID_REGULAR_EXPRESSION"),
        *("commit NONE", "commit STALE_MEMBER_EPOCH", "commit UNKNOWN_MEMBER_ID"),
    }


def _told(api: str, response: Json) -> list[str]:
    if api == "ConsumerGroupHeartbeat":
        return [response["error_code"]]
    if api == "ConsumerGroupDescribe":
        return [each["group_state"] for each in response["groups"]]
    if api == "OffsetCommit":
        lines = [line for topic in response["topics"] for line in topic["partitions"]]
        return [f"commit {line['error_code']}" for line in lines]
    return []

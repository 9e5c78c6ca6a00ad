"""The second coordinator of consumer groups must answer the recorded transcripts as Kafka did."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from conformance.replayer import PLAYED, heartbeat_transcripts, load, replay
from property.kafka_consumer_reads import ConsumerCoordinator
from property.test_kafka_model import Playing

Json = Any
MIXED = {"c_upgrade_of_stable_classic_group"}
"""A group with members of both protocols, which the model does not have."""


class PlayingConsumers(Playing):
    """The model behind the interface of the replayer."""

    def __init__(self, transcript: Json, *, ours: bool = False) -> None:
        self.model = ConsumerCoordinator(transcript["config"], transcript["topics"], ours=ours)


def playable() -> list[Path]:
    """Transcripts that need no old version of a call and no members of both protocols."""
    return [
        path
        for path in heartbeat_transcripts()
        if set(load(path)["requires"]) <= PLAYED and path.stem not in MIXED
    ]


@pytest.mark.parametrize("path", playable(), ids=lambda path: path.stem)
def test_the_model_answers_as_kafka_did(path: Path) -> None:
    transcript = load(path)

    assert asyncio.run(replay(transcript, PlayingConsumers(transcript))) is None

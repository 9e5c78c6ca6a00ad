"""The second coordinator against the recorded one: it must answer the transcripts as Kafka did.

Only then is a difference between it and the core, in `test_random_walks`, worth a look.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from conformance.replayer import Completion, classic_transcripts, left_out, load, replay
from property.kafka_parts import STEP_MS
from property.kafka_reads import Coordinator

Json = Any


class Playing:
    """The model behind the interface of the replayer."""

    def __init__(self, transcript: Json) -> None:
        self.model = Coordinator(transcript["config"], transcript["topics"], ours=False)

    async def call(self, of: int, client: str, api: str, request: Json) -> None:
        self.model.call(of, client, api, request)

    async def settle(self, wanted: frozenset[int]) -> list[Completion]:
        del wanted
        self.model.advance(STEP_MS)
        done, self.model.done = self.model.done, []
        return [Completion(*each) for each in done]

    async def wait(self, ms: int) -> None:
        self.model.advance(ms)

    async def admin(self, action: Mapping[str, Json]) -> None:
        self.model.admin(action)


def playable() -> list[Path]:
    """All but those of a Kafka bug, and those with a failover, which the model has in our form."""
    return [
        path
        for path in classic_transcripts()
        if not left_out(path)
        and not any("restart" in step.get("admin", {}) for step in load(path)["steps"])
    ]


@pytest.mark.parametrize("path", playable(), ids=lambda path: path.stem)
def test_the_model_answers_as_kafka_did(path: Path) -> None:
    transcript = load(path)

    assert asyncio.run(replay(transcript, Playing(transcript))) is None

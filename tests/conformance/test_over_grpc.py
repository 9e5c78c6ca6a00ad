"""The transcripts of a real Kafka coordinator, replayed over gRPC against one node and against three.

Those that were selected run together before the first is judged: a timed transcript waits in real
time. What restarts the coordinator runs alone, after the others.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from cluster.processes import running
from conformance.over_grpc import GrpcSession, Service, overrides
from conformance.replayer import deviations, load, replay, transcripts
from conformance.test_transcripts import LEFT_OUT, TRANSCRIPTS_MIN

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from cluster.processes import RunningCluster

Json = Any
Outcomes = dict[str, str | None]
pytestmark = pytest.mark.cluster

AT_ONCE = 12
"""Transcripts under way; more would stretch the steps of the timed ones on two cores."""


def parked(transcript: Json, session: GrpcSession) -> str | None:
    """None if exactly those calls wait at the end that waited with Kafka."""
    expected = set(transcript["parked_at_end"])
    if session.unanswered == expected:
        return None
    return f"at the end {expected} were to be parked, {session.unanswered} are"


async def replay_one(transcript: Json, service: Service) -> str | None:
    session = GrpcSession(service, transcript["name"])
    try:
        await session.start(transcript["topics"])
        differing = deviations().get(transcript["name"])
        problem = await replay(transcript, session, differing)
        if problem is None and differing is None:
            return parked(transcript, session)
        return problem
    finally:
        await session.close()


async def replay_all(wanted: Iterable[Json], cluster: RunningCluster) -> Outcomes:
    """The longest waits begin first; one by one what cannot bear company."""
    gate, outcomes = asyncio.Semaphore(AT_ONCE), Outcomes()

    async def one(transcript: Json, service: Service) -> None:
        async with gate:
            outcomes[transcript["name"]] = await replay_one(transcript, service)

    queue = sorted(wanted, key=lambda each: -sum(s.get("wait_ms", 0) for s in each["steps"]))
    service = Service(cluster)
    try:
        async with asyncio.TaskGroup() as group:
            for transcript in queue:
                if not transcript["exclusive"]:
                    group.create_task(one(transcript, service))
        for transcript in queue:
            if transcript["exclusive"]:
                await one(transcript, service)
    finally:
        await service.close()
    return outcomes


def chosen(session: pytest.Session) -> list[Path]:
    """The transcripts that this run of pytest asks for."""
    functions = [item for item in session.items if isinstance(item, pytest.Function)]
    ours = [f for f in functions if f.originalname == test_answers_over_grpc_are_kafkas.__name__]
    return sorted({function.callspec.params["path"] for function in ours})


def by_configuration(paths: Iterable[Path]) -> Mapping[str, list[Json]]:
    found: dict[str, list[Json]] = {}
    for path in paths:
        if path.stem not in LEFT_OUT:
            transcript = load(path)
            found.setdefault(json.dumps(transcript["config"], sort_keys=True), []).append(transcript)
    return found


@pytest.fixture(scope="module", params=[1, 3], ids=["one-node", "three-nodes"])
def outcomes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """What came of each transcript; a cluster for each configuration."""
    found = Outcomes()
    for config, wanted in by_configuration(chosen(request.session)).items():
        directory = tmp_path_factory.mktemp("conformance") / "c"
        settings = overrides(json.loads(config))
        with running(directory, request.param, "--insecure-loopback", *settings) as cluster:
            found |= asyncio.run(replay_all(wanted, cluster))
    return found


def test_every_transcript_is_asked_for() -> None:
    """A run that finds fewer than it should has tested nothing."""
    planned = [each for group in by_configuration(transcripts()).values() for each in group]

    assert len(planned) >= TRANSCRIPTS_MIN - len(LEFT_OUT)
    assert len(planned) == len({each["name"] for each in planned})


@pytest.mark.parametrize("path", transcripts(), ids=lambda path: path.stem)
def test_answers_over_grpc_are_kafkas(path: Path, outcomes: Outcomes) -> None:
    """Same request, same state: same answer through translate, actor, log and leader."""
    if path.stem in LEFT_OUT:
        pytest.skip("shows a defect of Kafka; deviations.toml says what we do instead")
    assert outcomes[path.stem] is None

"""The transcripts of a real Kafka coordinator, replayed against one node and three, over gRPC.

One node gets unary calls, and of every other client heartbeats in batches; three get the calls of
members on Session streams.
What was selected runs together before the first is judged: a timed transcript waits in real time.
What restarts the coordinator runs by itself, on a cluster of its own beside the others.
"""

from __future__ import annotations

import asyncio
import json
import random
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from cluster.processes import running
from conformance.over_grpc import GrpcSession, Service, overrides
from conformance.replayer import deviations, left_out, load, replay, transcripts
from conformance.test_strictness import SEED, WITHOUT_DEVIATION, falsify
from conformance.test_transcripts import TRANSCRIPTS_MIN

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Sequence

Json = Any
Outcomes = dict[str, str | None]
pytestmark = pytest.mark.cluster

AT_ONCE: Final = 10
"""Transcripts under way; more would stretch the steps of the timed ones on two cores."""
FALSIFIED: Final = 10


# --- which transcripts ---


def wanted(path: Path) -> list[Json]:
    """The transcript, unless it is left out."""
    return [] if left_out(path) else [load(path)]


def falsified() -> list[Json]:
    """Copies with one wrong answer each, under names of their own."""
    rng = random.Random(SEED)
    timeless = [each for each in map(load, WITHOUT_DEVIATION) if not each["timed"]]
    plain = [each for each in timeless if not each["config"] and not each["exclusive"]]
    copies = [falsify(each, rng) for each in rng.sample(plain, FALSIFIED)]
    return [{**each, "name": f"false-{each['name']}"} for each in copies]


def chosen(session: pytest.Session) -> list[Json]:
    """What this run of pytest asks for."""
    functions = [item for item in session.items if isinstance(item, pytest.Function)]
    ours = [f for f in functions if f.originalname == test_answers_over_grpc_are_kafkas.__name__]
    false = any(f.originalname == test_a_false_answer_is_seen.__name__ for f in functions)
    paths = {path for f in ours if isinstance(path := f.callspec.params["path"], Path)}
    plan = [each for path in sorted(paths) for each in wanted(path)]
    return plan + falsified() if false else plan


def by_cluster(plan: Iterable[Json]) -> list[tuple[str, list[Json]]]:
    """One cluster serves those that agree in their configuration, and in whether they bear company.

    Each with its configuration.
    """
    found: dict[tuple[str, bool], list[Json]] = {}
    for transcript in plan:
        config = json.dumps(transcript["config"], sort_keys=True)
        found.setdefault((config, transcript["exclusive"]), []).append(transcript)
    return [(config, group) for (config, _), group in found.items()]


# --- running them ---


@asynccontextmanager
async def service_on(
    directory: Path, nodes: int, config: str, *, on_streams: bool
) -> AsyncIterator[Service]:
    """A cluster, started and ended beside others; no node of it may have raised an alarm."""
    settings = overrides(json.loads(config))
    cluster = running(directory, nodes, "--insecure-loopback", *settings)
    service = Service(await asyncio.to_thread(cluster.__enter__), on_streams=on_streams)
    try:
        yield service
        assert not service.alarms()
        assert not service.refused_streams()
    finally:
        await service.close()
        await asyncio.to_thread(cluster.__exit__, None, None, None)


async def replay_one(transcript: Json, service: Service) -> str | None:
    session = GrpcSession(service, transcript["name"])
    differing = deviations().get(transcript["name"])
    try:
        await session.start(transcript["topics"])
        problem = await replay(transcript, session, differing)
        if not problem and not differing:
            problem = parked(transcript, session)
        return problem and f"{problem}\nasked again before: {service.refusals}"
    finally:
        await session.close()


def parked(transcript: Json, session: GrpcSession) -> str | None:
    """None if exactly those calls wait at the end that waited with Kafka."""
    expected = set(transcript["parked_at_end"])
    if session.unanswered == expected:
        return None
    return f"at the end {expected} were to be parked, {session.unanswered} are"


async def replay_group(plan: Sequence[Json], service: Service) -> Outcomes:
    """The longest waits begin first; one by one what cannot bear company."""
    alone = any(transcript["exclusive"] for transcript in plan)
    gate, found = asyncio.Semaphore(1 if alone else AT_ONCE), Outcomes()

    async def one(transcript: Json) -> None:
        async with gate:
            found[transcript["name"]] = await replay_one(transcript, service)

    queue = sorted(plan, key=lambda each: -sum(s.get("wait_ms", 0) for s in each["steps"]))
    async with asyncio.TaskGroup() as group:
        for transcript in queue:
            group.create_task(one(transcript))
    return found


async def replay_all(
    plan: Iterable[Json], place: Path, nodes: int, *, on_streams: bool = False
) -> Outcomes:
    """All clusters at once. `on_streams`: as of `Stubs`."""
    found = Outcomes()

    async def one(number: int, config: str, group: list[Json]) -> None:
        at = place / f"c{number}"
        async with service_on(at, nodes, config, on_streams=on_streams) as service:
            found.update(await replay_group(group, service))

    async with asyncio.TaskGroup() as tasks:
        for number, (config, group) in enumerate(by_cluster(plan)):
            tasks.create_task(one(number, config, group))
    return found


@pytest.fixture(scope="module", params=[1, 3], ids=["one-node", "three-nodes"])
def outcomes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """What came of each transcript: None, or the first difference."""
    place = tmp_path_factory.mktemp("conformance")
    plan, nodes = chosen(request.session), request.param
    return asyncio.run(replay_all(plan, place, nodes, on_streams=nodes > 1))


def test_every_transcript_is_asked_for() -> None:
    """A run that finds fewer than it should has tested nothing."""
    names = [each["name"] for path in transcripts() for each in wanted(path)]

    assert len(names) >= TRANSCRIPTS_MIN - sum(map(bool, map(left_out, transcripts())))
    assert len(names) == len(set(names))


@pytest.mark.parametrize("path", transcripts(), ids=lambda path: path.stem)
def test_answers_over_grpc_are_kafkas(path: Path, outcomes: Outcomes) -> None:
    """Same request, same state: same answer through translate, actor, log and leader."""
    why = left_out(path)
    if why is not None:
        pytest.skip(why)
    problem = outcomes[path.stem]
    assert problem is None, problem


def test_a_false_answer_is_seen(outcomes: Outcomes) -> None:
    """Without this, an adapter that swallows answers would pass every transcript."""
    false = {name: problem for name, problem in outcomes.items() if name.startswith("false-")}

    assert len(false) == FALSIFIED
    assert all(false.values()), f"seed {SEED}: {false}"

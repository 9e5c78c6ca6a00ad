"""Says at the end of a run how many transcripts went as with Kafka, and how many as listed.

And which files begin first where processes share this folder.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

import pytest

from conformance.in_process import InProcess
from conformance.replayer import deviations, heartbeat_transcripts
from conformance.talk import Talk
from harness.file_order import longest_first
from property.test_kafka_consumer_model import PlayingConsumers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

REPLAYS = ("test_answers_are_kafkas[", "test_answers_over_grpc_are_kafkas[")
WHERE = ("one-node-", "three-nodes-")
IN_PROCESS = "in process"
HERE = Path(__file__).parent
LONGEST = ("test_over_grpc.py", "test_walks_over_grpc.py")


FOUR = MappingProxyType({"t": 4})
"""The topics of most tests: one, with four partitions."""


class Start(Protocol):
    """Begins a talk with a fresh service."""

    def __call__(
        self, topics: Mapping[str, int] = FOUR, config: Mapping[str, str] = MappingProxyType({})
    ) -> Talk: ...


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first if this folder runs by itself."""
    longest_first(items, HERE, LONGEST)


@pytest.fixture
def start_core() -> Iterator[Start]:
    """Begin a talk with the core, whose log must replay in the end."""
    cores: list[InProcess] = []

    def begin(
        topics: Mapping[str, int] = FOUR, config: Mapping[str, str] = MappingProxyType({})
    ) -> Talk:
        cores.append(InProcess(config, topics))
        return Talk(cores[-1])

    yield begin
    for each in cores:
        each.core.check_replays()


def start_model(
    topics: Mapping[str, int] = FOUR, config: Mapping[str, str] = MappingProxyType({})
) -> Talk:
    """Begin a talk with the second coordinator."""
    return Talk(PlayingConsumers({"config": config, "topics": topics}, ours=True))


@pytest.fixture(params=["core", "model"])
def start(request: pytest.FixtureRequest) -> Start:
    """Begin a talk with the core, or with the second coordinator."""
    if request.param == "model":
        return start_model
    begin: Start = request.getfixturevalue("start_core")
    return begin


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Two lines for each way of replaying: the classic protocol, and the heartbeat protocol."""
    outcomes = list(_outcomes(terminalreporter))
    heartbeat = {path.stem for path in heartbeat_transcripts()}
    for place in sorted({place for place, _, _ in outcomes}):
        here = [(name, went) for at, name, went in outcomes if at == place]
        classic = Counter(went for name, went in here if name not in heartbeat)
        new = Counter(went for name, went in here if name in heartbeat)
        terminalreporter.write_line(f"{place}, classic: {_counted(classic, 'left out')}")
        terminalreporter.write_line(f"{place}, heartbeat: {_counted(new, 'of old versions')}")


def _counted(counts: Counter[str], skipped: str) -> str:
    passed = counts["as Kafka"] + counts["deviated"]
    listed = counts["deviated"]
    told = [f"{passed} passed", f"{counts['left out']} {skipped}"]
    told += [f"{counts['failed']} failed"] * bool(counts["failed"])
    told += [f"{listed} of those that passed have steps listed in deviations.toml"] * bool(listed)
    return ", ".join(told)


def _outcomes(reporter: pytest.TerminalReporter) -> Iterator[tuple[str, str, str]]:
    """Where each transcript was replayed, which it was, and what came of it."""
    for outcome in ("passed", "failed", "skipped"):
        for report in reporter.getreports(outcome):
            _, _, test = report.nodeid.rpartition("::")
            if test.startswith(REPLAYS):
                place, name = _replayed(test.partition("[")[2].removesuffix("]"))
                went = "deviated" if name in deviations() else "as Kafka"
                told = {"passed": went, "skipped": "left out"}
                yield place, name, told.get(outcome, outcome)


def _replayed(parameters: str) -> tuple[str, str]:
    """Where, and which transcript."""
    for place in WHERE:
        if parameters.startswith(place):
            return place.removesuffix("-").replace("-", " "), parameters.removeprefix(place)
    return IN_PROCESS, parameters

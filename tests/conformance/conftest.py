"""Says at the end of a run how many transcripts went as with Kafka, and how many as listed."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from conformance.replayer import deviations

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

REPLAYS = ("test_answers_are_kafkas[", "test_answers_over_grpc_are_kafkas[")
WHERE = ("one-node-", "three-nodes-")
IN_PROCESS = "in process"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line for each way of replaying."""
    counts = Counter(_outcomes(terminalreporter))
    for place in sorted({place for place, _ in counts}):
        as_kafka, deviated = counts[place, "as Kafka"], counts[place, "deviated"]
        terminalreporter.write_line(
            f"transcripts, {place}: {as_kafka + deviated} passed, {deviated} of them with steps "
            f"listed in deviations.toml; {counts[place, 'failed']} failed, "
            f"{counts[place, 'left out']} left out"
        )


def _outcomes(reporter: pytest.TerminalReporter) -> Iterator[tuple[str, str]]:
    """Where each transcript was replayed, and what came of it."""
    for outcome in ("passed", "failed", "skipped"):
        for report in reporter.getreports(outcome):
            _, _, test = report.nodeid.rpartition("::")
            if test.startswith(REPLAYS):
                place, name = _replayed(test.partition("[")[2].removesuffix("]"))
                went = "deviated" if name in deviations() else "as Kafka"
                told = {"passed": went, "skipped": "left out"}
                yield place, told.get(outcome, outcome)


def _replayed(parameters: str) -> tuple[str, str]:
    """Where, and which transcript."""
    for place in WHERE:
        if parameters.startswith(place):
            return place.removesuffix("-").replace("-", " "), parameters.removeprefix(place)
    return IN_PROCESS, parameters

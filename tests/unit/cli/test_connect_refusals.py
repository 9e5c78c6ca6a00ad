"""What a node itself answered is not reported as "no node answered" (exit codes of the command)."""

from __future__ import annotations

from functools import partial

import grpc
import pytest
from click.testing import CliRunner

from holdfast.cli import connect
from holdfast.cli.main import main
from unit.cli.test_connect import (
    COMMIT,
    NOT_APPLIED,
    TRANSFER,
    UNKNOWN,
    Ending,
    ended,
    time_is_over_when_asked_twice,
)

EXHAUSTED = (grpc.StatusCode.RESOURCE_EXHAUSTED, NOT_APPLIED)
FAILED_INSIDE = (grpc.StatusCode.INTERNAL, UNKNOWN)
MANY = 400
"""More endings than a command has time for: each of its calls ends so."""


def test_s5_a_node_without_room_has_answered() -> None:
    """Disk low, entry too large, too many watches: exit 1 in the service's words, and soon."""
    result, requests = ended(COMMIT, "OffsetCommit", *[EXHAUSTED] * MANY)

    assert (result.exit_code, result.stderr) == (1, "holdfast: as the test wants\n")
    assert 1 < len(requests) < 5


def test_s20_an_overload_that_passes_is_waited_for() -> None:
    result, requests = ended(COMMIT, "OffsetCommit", EXHAUSTED, EXHAUSTED)

    assert (result.exit_code, len(requests)) == (0, 3), result.output


@pytest.mark.parametrize(
    "failure",
    [
        FAILED_INSIDE,
        (grpc.StatusCode.UNKNOWN, UNKNOWN),
        (grpc.StatusCode.INTERNAL, NOT_APPLIED),
    ],
)
def test_a_node_that_fails_inside_has_answered(failure: Ending) -> None:
    """A read has no outcome that could be unknown."""
    result, requests = ended(("topic", "list"), "ListTopics", *[failure] * MANY)

    assert (result.exit_code, result.stderr) == (1, "holdfast: as the test wants\n")
    assert len(requests) < 5


def test_s5_a_change_that_failed_inside_a_node_may_have_happened() -> None:
    result, requests = ended(COMMIT, "OffsetCommit", *[FAILED_INSIDE] * MANY)

    assert result.exit_code == 4
    assert len(requests) < 5


def test_s5_a_refusal_does_not_hide_an_earlier_attempt_that_may_have_happened() -> None:
    lost = (grpc.StatusCode.UNAVAILABLE, UNKNOWN)
    result, _ = ended(COMMIT, "OffsetCommit", lost, *[EXHAUSTED] * MANY)

    assert result.exit_code == 4


def test_s5_an_unknown_outcome_is_told_in_the_service_s_words() -> None:
    result, _ = ended(TRANSFER, "TransferLeadership", FAILED_INSIDE)

    assert result.exit_code == 4
    assert result.stderr == (
        "holdfast: as the test wants. Whether it happened is unknown: look, then repeat\n"
    )


def test_a_silent_cluster_is_reported_with_the_limit_that_it_exceeded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The time that was measured is shorter by the last pause, and looks like no limit of ours."""
    monkeypatch.setattr(connect, "UNCONNECTED_MS", 1_500)
    result = CliRunner().invoke(main, ["topic", "list", "--address", "127.0.0.1:1"])

    assert result.exit_code == 3
    assert result.stderr.startswith(
        "holdfast: no node served the call within 1.5 s; last: Could not"
    )


def test_a_cluster_that_serves_nothing_is_reported_with_the_limit_that_it_exceeded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its nodes accept connections, so the longer limit holds."""
    stopping = (grpc.StatusCode.UNAVAILABLE, NOT_APPLIED)
    over = partial(time_is_over_when_asked_twice, monkeypatch)
    result, _ = ended(("topic", "list"), "ListTopics", *[stopping] * MANY, before=over)

    assert result.exit_code == 3
    assert result.stderr.startswith("holdfast: no node served the call within 15 s; last: ")

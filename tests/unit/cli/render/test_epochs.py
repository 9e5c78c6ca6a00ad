"""Epochs on the terminal: when, why, by whom, what moved, and how far each has got."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.cli.render import epochs
from holdfast.cli.render.times import Now
from holdfast.v1 import admin_pb2 as a

NOW = Now(log_ms=60_000, wall_ms=60_000)


def epoch(**told: Any) -> a.DescribedRebalance:  # noqa: ANN401 - its fields
    """Epoch 3, raised ten seconds ago."""
    fields = {"generation_id": 3, "log_time_ms": 50_000, "partitions_compared": True}
    return a.DescribedRebalance(**{**fields, **told})


def lines(told: a.DescribedRebalance, newest: int = 3) -> list[str]:
    return list(epochs.lines(told, newest, NOW))


def test_an_epoch_says_who_joined_what_moved_and_how_long_it_took() -> None:
    told = epoch(
        reason="joined",
        group_instance_id="i2",
        principal="svc",
        members=1,
        joined=1,
        changes=[a.RebalanceChange(name="i2", how="joined")],
        moved=1,
        moves=[a.RebalanceMove(topic="t", partition=3, before="i1", after="i2")],
        join_phase_ms=0,
        assigned_after_ms=250,
    )

    assert lines(told) == [
        "10 s ago: epoch 3, everybody owns its part after 250 ms",
        "  why: i2 (principal svc) joined the group",
        "  members: 1 before; joined i2",
        "  moved: 1 partition to another owner",
        "    i1 -> i2: t 3",
    ]


@pytest.mark.parametrize(
    ("reason", "why"),
    [
        ("subscription", "m (principal svc) wants other topics"),
        ("assignor", "m (principal svc) wants another assignor, or tells one something new"),
        ("topics", "topics of the group were created, grew, or were deleted"),
        ("regex", "a regular expression of its members matches other topics"),
        ("left", "i1, i2 left"),
        ("removed", "i1, i2 removed by operator svc"),
        ("expired", "the session of i1, i2 ended: it was not heard in time"),
        ("asked", "operator svc asked for it"),
        ("something newer", "something newer"),
    ],
)
def test_each_cause_has_words(reason: str, why: str) -> None:
    """Of `EpochRaised`; a newer node may know others."""
    gone = [a.RebalanceChange(name=name, how="left") for name in ("i1", "i2")]
    told = epoch(reason=reason, member_id="m", principal="svc", gone=2, changes=gone)

    assert epochs.why(told) == why


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ("M24", "the session of i1 ended: it was not heard in time"),
        ("M25", "i1 did not give up in time what it was asked for, though it was heard"),
        ("Q10", "i1, of the classic protocol, did not join again or sync in time"),
    ],
)
def test_who_is_expelled_is_told_for_what(rule: str, why: str) -> None:
    """K-M25 and K-Q10 have a cause of their own: the member was heard all the time."""
    gone = [a.RebalanceChange(name="i1", how="expired")]

    assert epochs.why(epoch(reason="expired", rule=rule, gone=1, changes=gone)) == why


@pytest.mark.parametrize(
    ("reached", "newest", "words"),
    [
        ({}, 3, "without a target yet"),
        ({}, 4, "overtaken before it had a target"),
        ({"join_phase_ms": 20}, 3, "target after 20 ms, members are on the way"),
        ({"join_phase_ms": 20}, 4, "target after 20 ms, overtaken on the way"),
    ],
)
def test_an_epoch_that_has_not_converged_says_how_far_it_got(
    reached: dict[str, int], newest: int, words: str
) -> None:
    head, *_ = lines(epoch(reason="topics", **reached), newest)

    assert head == f"10 s ago: epoch 3, {words}"


def test_they_are_told_in_their_order() -> None:
    """The service gives the newest first."""
    told = list(epochs.all_of([epoch(), epoch(generation_id=2)], 3, NOW))

    assert [line.split(",")[0][-7:] for line in told if "ago" in line] == ["epoch 2", "epoch 3"]


@pytest.mark.parametrize(
    ("relieved", "problem", "line"),
    [
        (1, "m: KeyError\x1b", "  target: asked for in vain once; m: KeyError\\x1b"),
        (3, "", "  target: asked for in vain 3 times; the last one did not answer in time"),
    ],
)
def test_adr58_who_made_no_target_is_told_with_what_it_says(
    relieved: int, problem: str, line: str
) -> None:
    """An error may hold anything, and a terminal obeys some of that."""
    assert lines(epoch(reason="joined", relieved=relieved, problem=problem))[3] == line


def test_adr58_a_group_that_outgrew_its_assignor_is_not_told_as_a_members_wish() -> None:
    told = epochs.why(epoch(reason="assignor", rule="KIP-848", member_id="m"))
    assert told.startswith("the group became too large for its assignor")

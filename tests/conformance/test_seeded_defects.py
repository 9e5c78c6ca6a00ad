"""Teeth: each defect that is put into the core is seen by a transcript or by a story."""

import asyncio
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from conformance.in_process import InProcess
from conformance.replayer import deviations, left_out, load, replay, transcripts
from harness.stories import differences
from holdfast.coordinator.classic import (
    deadlines,
    heartbeat,
    identity,
    join,
    leave,
    parked_calls,
    protocol_votes,
    rebalance,
    rejoin,
    sync,
)
from holdfast.coordinator.groups.draft import Draft
from holdfast.coordinator.model.rejections import FencedInstanceId
from stories.language import Teller

STORIES = sorted((Path(__file__).parents[1] / "stories").glob("*.txt"))


def never_fence(original: Callable[..., Any]) -> Callable[..., Any]:
    def check(*arguments: object) -> object:
        error = original(*arguments)
        return None if isinstance(error, FencedInstanceId) else error

    return check


def nothing(*_: object, **__: object) -> None:
    """What should be done is not done."""


def no(*_: object) -> bool:
    return False


def yes(*_: object) -> bool:
    return True


DEFECTS = [
    ("fences nobody (C4, C5)", identity, "check", never_fence(identity.check)),
    ("a heartbeat does not renew (F7)", Draft, "renew", nothing),
    ("a swap leaves old calls parked (B11)", parked_calls, "refuse", nothing),
    ("a changed vote goes unnoticed (B8)", rejoin, "_vote", lambda group: group.body.protocol_name),
    ("other topics go unnoticed (B6)", rejoin, "_topics", nothing),
    ("a retry is taken for a twin (S14)", rejoin, "_is_retry", no),
    ("everything is a retry (S14)", rejoin, "_is_retry", yes),
    ("a full group takes more (I11)", join, "_has_room", yes),
    ("anything is in common (I1)", protocol_votes, "in_common", yes),
    ("no round closes early (D4)", rebalance, "close_if_complete", nothing),
    ("the initial delay is not waited for (D1)", rebalance, "_delay", nothing),
    ("a late sync is no matter (E10)", leave, "sync_overdue", nothing),
    ("sessions never end (F9)", deadlines, "_session_over", nothing),
    ("a sync is still owed (E13)", sync, "_synced", nothing),
    ("any protocol will do in a sync (E9)", sync, "_agrees", yes),
    ("a lowered limit is no matter (I13)", rebalance, "too_large", no),
    ("a release is only a heartbeat (S12)", heartbeat, "_release", nothing),
    ("a broken call stays parked (S17)", parked_calls, "break_call", nothing),
]


@cache
def recorded(paths: tuple[Path, ...]) -> list[tuple[str, Any]]:
    """Those of these transcripts that are not left out, by name; read once for all defects."""
    return [(path.stem, load(path)) for path in paths if not left_out(path)]


def seen_by() -> Iterator[str]:
    """Whatever tells something else than it should, by name."""
    for path in STORIES:
        try:
            if differences(path.read_text(encoding="utf-8"), Teller().interpret):
                yield path.stem
        except Exception as broken:  # noqa: BLE001 - a defect may break anything
            yield f"{path.stem}: {broken!r}"
    for name, transcript in recorded(tuple(transcripts())):
        try:
            session = InProcess(transcript["config"], transcript["topics"])
            if asyncio.run(replay(transcript, session, deviations().get(name))):
                yield name
        except Exception as broken:  # noqa: BLE001 - a defect may break anything
            yield f"{name}: {broken!r}"


@pytest.mark.source("it puts a defect in the place of a function")
@pytest.mark.parametrize(
    ("where", "name", "defect"), [each[1:] for each in DEFECTS], ids=[each[0] for each in DEFECTS]
)
def test_the_defect_is_seen(
    where: object, name: str, defect: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(where, name, defect)

    assert next(seen_by(), None) is not None


@pytest.mark.slow
def test_without_a_defect_nothing_is_seen() -> None:
    """Else the tests above would prove nothing."""
    assert list(seen_by()) == []

"""Random walks over Session streams (FAULT-25): no list of calls breaks a rule of any call.

Longer runs: HOLDFAST_FUZZ_SEEDS=1000:400 (first seed : how many), HOLDFAST_FUZZ_STEPS=400.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest

from fuzz.session_walk import Violation, Walk
from holdfast.runtime.groups.actor import Actor
from holdfast.runtime.groups.actors import Actors
from holdfast.server.rpc.session import answering, open_calls
from holdfast.server.rpc.session.open_calls import LongMessage, OpenCall, OpenCalls
from holdfast.server.rpc.session.stream import Stream
from holdfast.server.translate import session_answers

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from holdfast.server.rpc.errors import Ended
    from holdfast.v1 import group_pb2 as g

FIRST, COUNT = map(int, os.environ.get("HOLDFAST_FUZZ_SEEDS", "1:30").split(":"))
STEPS = int(os.environ.get("HOLDFAST_FUZZ_STEPS", "120"))
BOUNDS = ((4_096, 1 << 20), (3, 1 << 20), (4_096, 3_000))
"""Open calls and bytes that a stream may have; by the seed."""
WITHIN_S = 60


def walk(seed: int, defect: AbstractContextManager[Any] | None = None) -> Counter[str]:
    """Walk as far as a seed goes; what it met. Raises Violation."""
    calls, size = BOUNDS[seed % len(BOUNDS)]
    made: list[Walk] = []

    async def limited() -> None:
        made.append(Walk(seed, size))
        async with asyncio.timeout(WITHIN_S):
            await made[0].run(STEPS)

    with mock.patch.object(open_calls, "OPEN_MAX", calls), defect or nullcontext():
        asyncio.run(limited())
    return made[0].counts


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_no_walk_breaks_a_rule(seed: int) -> None:
    """Each call has one answer, of its kind, and true; a stream that is over leaves nothing."""
    print(
        f"again: HOLDFAST_FUZZ_SEEDS={seed}:1 HOLDFAST_FUZZ_STEPS={STEPS} "
        "python -m pytest tests/fuzz/test_session.py -k no_walk"
    )
    walk(seed)


def test_walks_meet_every_end() -> None:
    """A walk that met none of these would prove nothing about them."""
    met = sum((walk(seed) for seed in range(1, 13)), Counter[str]())
    answers = {f"answer: {kind}" for kind in ("join", "sync", "heartbeat", "leave", "commit")}
    refused = {"status: 3", "status: 8", "status: 12", "status: 14"}
    ends = {"end: None, None", "end: None, not-applied"}
    spoilt = {f"end: StatusCode.INVALID_ARGUMENT, {how}" for how in ("unknown", "not-applied")}

    assert answers | refused | ends | spoilt <= met.keys()


# --- a walk that cannot fail proves nothing ---


def _nothing(*_: object) -> None:
    """Stand in for what a defect leaves out."""


def _only_closed(one: OpenCall) -> None:
    one.close()


def _all_but_some(stream: Stream, one: OpenCall) -> None:
    if one.number % 7:
        stream._done.append(one)
        stream._news.set()


def _never_applied(ended: Ended) -> g.SessionStatus:
    status = TRUE_STATUS(ended)
    status.not_applied = True
    return status


TRUE_STATUS = session_answers.status_of
DEFECTS: dict[str, tuple[object, str, object]] = {
    "parked calls count as open": (OpenCalls, "park", _nothing),
    "bytes are never given back": (LongMessage, "answered", _nothing),
    "calls overtake those that wait for a barrier": (Actors, "overtakes", lambda _: False),
    "a call that is given up stays parked": (OpenCall, "give_up", _only_closed),
    "some answers are lost": (Stream, "_finish", _all_but_some),
    "an unknown outcome is called not applied": (answering, "status_of", _never_applied),
    "what cannot be parked is not answered": (Actor, "_fail", _nothing),
    "a stream goes on at a node that leads no more": (Stream, "end", _nothing),
}


@pytest.mark.parametrize("name", DEFECTS)
def test_the_walks_catch_a_defect(name: str) -> None:
    """Within twenty seeds; which of them is chance."""
    owner, attribute, by = DEFECTS[name]
    for seed in range(1, 21):
        try:
            walk(seed, mock.patch.object(owner, attribute, by))
        except Violation:
            return
    pytest.fail(f"{name}: no walk noticed")

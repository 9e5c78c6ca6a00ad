"""Replays one transcript against a service, step by step, and tells the first difference.

The service is reached through `Service` and `Session`, which the in-process core, one node, and
three nodes implement. What crosses them is neutral JSON; README.md beside this file describes it.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from conformance.matching import Difference, Symbols, is_symbol, match

Json = Any
HERE = Path(__file__).parent
TRANSCRIPTS = HERE / "transcripts"
HEARTBEAT = TRANSCRIPTS / "heartbeat"
"""Those of the heartbeat protocol (KIP-848), recorded from Kafka 4.3.1."""
PLAYED = {"kafka_4_3"}
"""What a transcript may require and we have."""


class Completion(NamedTuple):
    """A call that was answered: the step that sent it, who, which API, and the answer."""

    of: int
    client: str
    api: str
    response: Json


class Session(Protocol):
    """One transcript's corner of a service: own group ids, own topics."""

    async def call(self, of: int, client: str, api: str, request: Json) -> None:
        """Send a request; it need not be answered when this returns."""

    async def settle(self, wanted: frozenset[int]) -> list[Completion]:
        """All answers that have come since the last time, once nothing more will come."""

    async def wait(self, ms: int) -> None:
        """Let time pass."""

    async def admin(self, action: Mapping[str, Json]) -> None:
        """Create, grow or delete a topic, or make the coordinator forget what is not on its log."""


class Deviation(NamedTuple):
    """A step at which we differ from Kafka on purpose, by which rule and why.

    `ours`: the completions of the step as they are with us, in the form of the transcript; None for
    a step that is not asked at all.
    """

    step: int
    kafka: str
    ours: list[Json]
    rule: str
    reason: str


def load(path: Path) -> Json:
    return json.loads(path.read_text(encoding="utf-8"))


def transcripts() -> list[Path]:
    return [*classic_transcripts(), *heartbeat_transcripts()]


def classic_transcripts() -> list[Path]:
    return sorted(TRANSCRIPTS.glob("*.json"))


def heartbeat_transcripts() -> list[Path]:
    return sorted(HEARTBEAT.glob("*.json"))


@cache
def _listed() -> Json:
    """What deviations.toml says; read once, for it is asked at every transcript."""
    return tomllib.loads((HERE / "deviations.toml").read_text(encoding="utf-8"))


@cache
def deviations() -> Mapping[str, Mapping[int, Deviation]]:
    """The deliberate differences by transcript and step."""
    found: dict[str, dict[int, Deviation]] = {}
    for entry in _listed()["deviation"]:
        deviation = Deviation(
            entry["step"],
            entry["kafka"],
            [json.loads(line) for line in entry["ours"]],
            entry["rule"],
            entry["reason"],
        )
        found.setdefault(entry["transcript"], {})[deviation.step] = deviation
    return found


def left_out(path: Path) -> str | None:
    """Why a transcript is not replayed; None if it is."""
    reasons = {entry["transcript"]: str(entry["reason"]) for entry in _listed()["left_out"]}
    requires = [each for each in load(path)["requires"] if each not in PLAYED]
    lacking = f"it requires what does not exist here: {', '.join(requires)}" if requires else None
    return reasons.get(path.stem, lacking)


async def replay(
    transcript: Json, session: Session, differing: Mapping[int, Deviation] | None = None
) -> str | None:
    """None if the service did what the transcript says, else the first difference."""
    symbols = Symbols()
    for index, step in enumerate(transcript["steps"]):
        expected = step.get("completions", [])
        if differing and index in differing:
            expected = differing[index].ours
        try:
            await _take(index, step, session, symbols)
            actual = await session.settle(frozenset(each["of"] for each in expected))
            symbols = match_step(expected, actual, symbols)
        except Difference as problem:
            sent = {key: step[key] for key in ("do", "wait_ms", "admin") if key in step}
            return f"step {index} {json.dumps(sent)}: {problem}"
    return None


async def _take(index: int, step: Json, session: Session, symbols: Symbols) -> None:
    if "do" in step:
        do = step["do"]
        await session.call(index, do["client"], do["api"], symbols.resolved(do["request"]))
    elif "wait_ms" in step:
        await session.wait(step["wait_ms"])
    else:
        await session.admin(step["admin"])


def match_step(expected: list[Json], actual: list[Completion], symbols: Symbols) -> Symbols:
    """Compare what a step completed; raise Difference, else give the symbols bound by then."""
    want, got = {each["of"]: each for each in expected}, {each.of: each for each in actual}
    if want.keys() != got.keys() or len(got) != len(actual):
        shown = {of: symbols.shown(each.response) for of, each in got.items()}
        raise Difference(f"calls {sorted(want)} were to be answered, these were: {shown}")
    for of, each in want.items():  # a member's own join names its id: bound before lists are tried
        mine = each["response"].get("member_id")
        if each["api"] == "JoinGroup" and is_symbol(mine):
            symbols = symbols.bound(mine, got[of].response.get("member_id"))
    for of, each in sorted(want.items()):
        in_order = each["api"] == "LeaveGroup"
        try:
            symbols = match(each["response"], got[of].response, symbols, ordered=in_order)
        except Difference as problem:
            raise Difference(f"{each['client']}.{each['api']} of step {of}: {problem}") from None
    _check_one_leader(expected, got)
    return symbols


def _check_one_leader(expected: list[Json], got: Mapping[int, Completion]) -> None:
    """Where the transcript leaves open who leads, all members must still be told the same."""
    free = [
        each["of"]
        for each in expected
        if each["api"] == "JoinGroup" and isinstance(each["response"].get("leader"), dict)
    ]
    leaders = {got[of].response["leader"] for of in free}
    if len(leaders) > 1:
        raise Difference(f"members were told different leaders: {sorted(leaders)}")

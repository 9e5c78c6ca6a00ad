"""The replayer has teeth: a transcript with one falsified answer is refused, each and every one."""

import asyncio
import copy
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.in_process import InProcess
from conformance.matching import UNORDERED, Difference, Symbols, is_symbol, match
from conformance.replayer import deviations, left_out, load, replay, transcripts

Json = Any
Falsify = Callable[[], None]
SEED = 20260923
FALSE_ANSWERS_EACH = 4

WITHOUT_DEVIATION = [
    path
    for path in transcripts()
    if path.stem not in deviations() and not left_out(path) and len(load(path)["steps"]) < 60
]


def places(value: Json, at: tuple[Json, ...] = ()) -> Iterator[tuple[tuple[Json, ...], Json]]:
    """Every leaf of an answer, and every list, with the way to it."""
    if isinstance(value, dict):
        for key, each in value.items():
            if key != "client_id":  # not compared (bettered K-B10)
                yield from places(each, (*at, key))
    elif isinstance(value, list):
        yield at, value
        for index, each in enumerate(value):
            yield from places(each, (*at, index))
    else:
        yield at, value


def falsified(value: Json) -> Json:
    """Another value of the same kind, that no correct answer has in this place."""
    match value:
        case bool():
            return not value
        case int():
            return value + 1
        case list():
            return value[:-1] if value else [{"surplus": 1}]
        case "NONE":
            return "UNKNOWN_MEMBER_ID"
        case str() if is_symbol(value):
            return "a-literal-id"
        case str():
            return value + "~"
        case _:
            return "not null"


def falsify(transcript: Json, rng: random.Random) -> Json:
    """A copy with one place of one recorded answer changed, or one answer left out or invented."""
    false = copy.deepcopy(transcript)
    answers = [each for step in false["steps"] for each in step["completions"]]
    answer = rng.choice(answers)
    if rng.random() < 0.15:
        step = next(step for step in false["steps"] if answer in step["completions"])
        step["completions"].remove(answer)
        return false
    at, value = rng.choice([each for each in places(answer["response"]) if each[1] != "*"])
    inner = answer["response"]
    for key in at[:-1]:
        inner = inner[key]
    inner[at[-1]] = falsified(value)
    return false


@pytest.mark.parametrize("path", WITHOUT_DEVIATION, ids=lambda path: path.stem)
def test_a_falsified_transcript_is_refused(path: Path) -> None:
    """Without this a replayer that compares nothing would pass every transcript."""
    rng = random.Random(f"{SEED} {path.stem}")
    transcript = load(path)
    for _ in range(FALSE_ANSWERS_EACH):
        false = falsify(transcript, rng)
        session = InProcess(false["config"], false["topics"])

        assert asyncio.run(replay(false, session)) is not None, f"seed {SEED} {path.stem}"


def refused(expected: Json, actual: Json, symbols: Symbols | None = None) -> bool:
    try:
        match(expected, actual, symbols or Symbols())
    except Difference:
        return True
    return False


def test_one_symbol_is_one_id_and_one_id_one_symbol() -> None:
    assert refused(["$a.1", "$a.1"], ["x", "y"])
    assert refused(["$a.1", "$a.2"], ["x", "x"])
    assert not refused(["$a.1", "$a.2", "$a.1"], ["x", "y", "x"])


def test_a_bag_is_tried_in_every_order() -> None:
    """The first element fits both; only one way round lets the second one fit, too."""
    bag = {"members": [{"member_id": "$a.1", "of": "*"}, {"member_id": "$b.1", "of": "b"}]}
    got = {"members": [{"member_id": "y", "of": "b"}, {"member_id": "x", "of": "a"}]}

    symbols = match(bag, got, Symbols())

    assert symbols.resolved(["$a.1", "$b.1"]) == ["x", "y"]


def test_types_and_missing_fields_count() -> None:
    assert refused({"generation_id": 1}, {"generation_id": True})
    assert refused({"a": None}, {})
    assert refused({"a": ""}, {"a": None})


def test_the_members_of_a_leave_answer_are_in_order() -> None:
    assert "members" in UNORDERED
    two = {"members": [{"e": 1}, {"e": 2}]}
    swapped = {"members": [{"e": 2}, {"e": 1}]}

    assert not refused(two, swapped)
    with pytest.raises(Difference):
        match(two, swapped, Symbols(), ordered=True)


def test_if_leader_looks_at_the_answer_itself() -> None:
    form = {"leader": "*", "member_id": "*", "members": {"if_leader": [{"m": 1}]}}

    assert not refused(form, {"leader": "x", "member_id": "x", "members": [{"m": 1}]})
    assert refused(form, {"leader": "y", "member_id": "x", "members": [{"m": 1}]})
    assert not refused(form, {"leader": "y", "member_id": "x", "members": []})

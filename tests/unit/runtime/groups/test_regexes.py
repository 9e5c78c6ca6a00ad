"""Regular expressions: RE2's syntax, whole names, and never the loop for long (K-P1)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from holdfast.coordinator.model.consumer_events import ResolvedRegex
from holdfast.runtime.groups import regexes
from holdfast.runtime.groups.regexes import problem_of, resolve

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.runtime.groups.regexes import Counts


def every(_regex: str, _topic: str) -> bool:
    """All topics count."""
    return True


def found(wanted: Iterable[str], topics: Iterable[str], counts: Counts = every) -> dict[str, str]:
    """What each regular expression matches, as one text."""
    resolved = asyncio.run(resolve(wanted, topics, counts))
    assert [each.regex for each in resolved] == sorted(set(wanted))
    return {each.regex: " ".join(each.topics) for each in resolved}


@pytest.mark.parametrize(
    ("regex", "topics"),
    [
        ("orders", "orders"),
        ("orders.*", "orders orders-7 orders.eu"),
        (".*", "Orders a.b orders orders-7 orders.eu"),
        ("(?i)ORDERS", "Orders orders"),
        ("a.b|orders-[0-9]+", "a.b orders-7"),
        ("^orders$", "orders"),
        ("rders", ""),
        ("orders-", ""),
        ("[^ж]+", "Orders a.b orders orders-7 orders.eu"),
        ("ж?orders", "orders"),
        ("[a-ж-]{6}", "orders"),
    ],
)
def test_p1_an_expression_matches_whole_names(regex: str, topics: str) -> None:
    """K-P1: as RE2J's `matches`; letters that no topic's name has are letters all the same."""
    names = ["orders-7", "orders.eu", "a.b", "Orders", "orders"]

    assert found([regex], names) == {regex: topics}


@pytest.mark.parametrize(
    ("regex", "says"),
    [
        ("(", "missing )"),
        ("[a-", "missing ]"),
        ("a**", "bad repetition"),
        ("(?=a)b", "perl operator"),
        (r"(a)\1", "escape sequence"),
        ("a{2000}", "repetition size"),
        (".{900}" * 3, "too large"),
        ("[^b]{900}", "steps"),
        (r"(?i)\pL", "Unicode"),
        (r"[\P{Greek}]", "Unicode"),
    ],
)
def test_p1_what_cannot_be_used_is_told_why(regex: str, says: str) -> None:
    """K-P1: RE2 has no look-around and no references, with which a match takes any time."""
    assert says in problem_of(regex)


@pytest.mark.parametrize(
    "regex", ["", "a", "a{1000}", "(?P<name>a)", "ж", "\ud800", "x" * regexes.LENGTH_MAX]
)
def test_what_can_be_used_has_no_problem(regex: str) -> None:
    assert problem_of(regex) == ""


def test_one_that_cannot_be_used_matches_nothing_and_the_others_go_on() -> None:
    """It stands on the log, and another node has another version of RE2."""
    assert found(["(", "a"], ["a"]) == {"(": "", "a": "a"}


def test_p9_a_topic_that_does_not_count_is_not_in_the_result() -> None:
    """K-P9, for each expression by itself: its members may be others."""

    def counts(regex: str, topic: str) -> bool:
        return (regex, topic) != ("a.*", "ab")

    assert found(["a.*", ".b"], ["aa", "ab"], counts) == {".b": "ab", "a.*": "aa"}


def test_a_long_lookup_yields_to_the_loop_after_each_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slice holds as many topics as the steps of all its expressions allow, and at least one."""
    turns: list[int] = []

    async def give_way(done: int) -> None:
        turns.append(done)

    monkeypatch.setattr(regexes, "give_way", give_way)
    names = [f"t{number}" for number in range(1_000)]
    at_once = regexes.STEPS_AT_ONCE // regexes.compiled("t1.*").programsize

    assert len(asyncio.run(resolve(["t1.*"], names, every))[0].topics) == 111
    few = turns.copy()
    turns.clear()
    asyncio.run(resolve(["[^b]{600}", "[^c]{600}"], names, every))

    assert few == [at_once] * (1_000 // at_once)
    assert turns == [1] * 1_000


def test_a_result_is_sorted_whatever_the_order_of_the_topics() -> None:
    """Else two leaders would put different results on the log."""
    assert asyncio.run(resolve(["."], ["b", "c", "a"], every)) == (
        ResolvedRegex(".", ("a", "b", "c")),
    )

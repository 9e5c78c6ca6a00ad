"""Two checkouts side by side, from turns with known figures."""

import json
from pathlib import Path

import pytest

from bench import sides
from bench.comparison import (
    BARE,
    A,
    B,
    Comparison,
    Line,
    Seen,
    Turn,
    compare,
    name_of,
    plan,
    seen,
    seen_in,
)
from bench.figures import REST, Cost, Figure
from bench.shapes import Shape
from bench.table import plain

UNARY = "unary, 64 callers"


def turn(pair: int, side: str, *figures: Seen, row: str = "commit", **more: object) -> Turn:
    return Turn(row, pair, side, {figure.what: figure for figure in figures}, **more)  # type: ignore[arg-type]  # fields of Turn


def rates(a: list[float], b: list[float]) -> list[Turn]:
    """Turns of one figure whose rates are these, pair by pair."""
    return [
        turn(pair, side, Seen(UNARY, "changes/s", value))
        for pair, both in enumerate(zip(a, b, strict=True))
        for side, value in zip((A, B), both, strict=True)
    ]


def line_of(found: Comparison, measure: str) -> Line:
    return next(line for line in found.lines if line.measure == measure)


def test_the_sides_take_turns_within_every_pair() -> None:
    """A B A B of one row: a mood of the machine meets both, and so does what ran before.

    `bare` is nobody's and runs once a pair.
    """
    assert list(plan(["bare", "commit"], 2)) == [
        (0, "bare", BARE),
        (1, "bare", BARE),
        (0, "commit", A),
        (0, "commit", B),
        (1, "commit", A),
        (1, "commit", B),
    ]


def test_the_ratio_is_of_medians_and_its_range_of_pairs() -> None:
    """Medians 200 and 300; the pairs' own ratios are 3, 1 and 1.5."""
    line = line_of(compare(rates([100, 300, 200], [300, 300, 300])), "changes/s")
    assert (line.a, line.b, line.pairs) == (200, 300, 3)
    assert (line.ratio, line.low, line.high) == (1.5, 1.0, 3.0)


def test_the_median_of_an_even_number_is_between_the_middle_two() -> None:
    """Four pairs are the default: neither the third nor the second alone is their middle."""
    line = line_of(compare(rates([1, 2, 4, 8], [8, 4, 2, 1])), "changes/s")
    assert (line.a, line.b, line.ratio) == (3, 3, 1)


def test_all_measures_that_both_have_are_compared() -> None:
    whole = Seen(UNARY, "changes/s", 1_000, 40.0, 80.0, 900.0, 14.0)
    half = Seen(UNARY, "changes/s", 2_000, 20.0, 40.0, 450.0, 7.0)
    found = compare([turn(0, A, whole), turn(0, B, half)])
    assert {line.measure: line.ratio for line in found.lines} == {
        "changes/s": 2.0,
        "p50 ms": 0.5,
        "p99 ms": 0.5,
        "us/op": 0.5,
        "leader's switches/op": 0.5,
    }


def test_a_checkout_that_tells_no_costs_is_compared_by_the_rest() -> None:
    found = compare([
        turn(0, A, Seen(UNARY, "changes/s", 1_000)),
        turn(0, B, Seen(UNARY, "changes/s", 2_000, sum_us=450.0)),
    ])  # fmt: skip
    assert [line.measure for line in found.lines] == ["changes/s"]


def test_a_zero_has_no_ratio() -> None:
    line = compare(rates([0, 0], [0, 2])).lines[0]
    assert (line.a, line.b) == (0, 1)
    assert (line.ratio, line.low, line.high) == (None, None, None)


def test_only_whole_pairs_count() -> None:
    """A turn that failed, or that an interrupt left out, takes the other one of its pair along."""
    turns = rates([100, 100, 100], [200, 400, 900])
    without_a = turn(1, A, failed="it broke")
    found = compare([turns[0], turns[1], without_a, turns[3], turns[4]])
    line = line_of(found, "changes/s")
    assert (line.b, line.pairs) == (200, 1)


def test_a_row_without_a_pair_says_why() -> None:
    found = compare([turn(0, A, failed="it broke"), *rates([1], [1])[1:]])
    assert found == Comparison([], {"commit": "A: it broke"})


def test_figures_before_a_failure_count() -> None:
    lists = Seen("lists", "changes/s", 3_000)
    unary = Seen(UNARY, "changes/s", 1_000)
    found = compare([turn(0, A, unary, failed="it broke"), turn(0, B, unary, lists)])
    assert [line.what for line in found.lines] == [UNARY]
    assert found.left_out == {"commit: lists": "A: it broke"}


def test_what_the_other_cannot_do_is_set_against_its_nearest() -> None:
    """An operation is the same one, however it is carried: so the ratio says what the way saves."""
    stream = Seen("one stream, 64 in flight", "changes/s", 1_500, sum_us=800.0)
    lists = Seen("lists of 16", "changes/s", 4_500, sum_us=400.0, instead=stream.what)
    found = compare([
        turn(0, A, stream, lacking={lists.what: "the nodes do not have the call"}),
        turn(0, B, stream, lists),
    ])  # fmt: skip
    nearest = [line for line in found.lines if line.what.startswith("lists")]
    assert {line.what for line in nearest} == {"lists of 16 (A: one stream, 64 in flight)"}
    assert [line.ratio for line in nearest] == [3.0, 0.5]
    assert found.left_out == {}


def test_what_both_can_do_is_never_set_against_the_nearest() -> None:
    stream = Seen("stream", "changes/s", 1_500)
    lists = Seen("lists", "changes/s", 4_500, instead="stream")
    found = compare([turn(0, A, stream, lists), turn(0, B, stream, lists)])
    assert [(line.what, line.ratio) for line in found.lines] == [("stream", 1.0), ("lists", 1.0)]


def test_what_has_no_nearest_is_named() -> None:
    unary, lists = Seen(UNARY, "changes/s", 1), Seen("lists", "changes/s", 1)
    told = {"lists": "the nodes do not have the call"}
    found = compare([turn(0, A, unary, lacking=told), turn(0, B, unary, lists)])
    assert found.left_out == {"commit: lists": "A: the nodes do not have the call"}


def test_what_only_the_other_has_is_named() -> None:
    unary, old = Seen(UNARY, "changes/s", 1), Seen("an old way", "changes/s", 1)
    found = compare([turn(0, A, unary, old), turn(0, B, unary)])
    assert found.left_out == {"commit: an old way": "B: gives no such figure"}


def test_a_row_that_the_other_does_not_have_is_named() -> None:
    lacking = {REST: "its ./dev bench has no such row"}
    found = compare([turn(0, A, lacking=lacking), *rates([1], [1])[1:]])
    assert found.left_out == {"commit": "A: its ./dev bench has no such row"}


def test_sums_stand_beside_the_bare_server_of_the_same_run() -> None:
    """Its median over the pairs, 400, is the floor of both sides."""
    floors = [
        turn(pair, BARE, Seen("x", "calls/s", 1, sum_us=us, shape=Shape.COMMITS), row="bare")
        for pair, us in enumerate((300.0, 400.0, 900.0))
    ]
    a, b = (Seen(UNARY, "changes/s", 1, sum_us=us, shape=Shape.COMMITS) for us in (1_000.0, 500.0))
    found = compare([*floors, turn(0, A, a), turn(0, B, b)])
    line = line_of(found, "us/op")
    assert (line.a_to_bare, line.b_to_bare) == (2.5, 1.25)
    assert line_of(found, "changes/s").a_to_bare is None
    assert found.left_out == {}


def test_an_amount_in_a_name_does_not_keep_figures_apart() -> None:
    was = "from 100,000 events, 2,300 of them replayed, until it serves"
    assert name_of(was) == name_of("from 100,000 events, until it serves")
    assert name_of("commits of 50 partitions") == "commits of 50 partitions"


def test_a_figure_is_the_same_one_from_this_process_and_from_json() -> None:
    """Pure rows come from another process; what they tell must not depend on that."""
    cost = Cost(600, (90, 110), 200, 14, (3.5, 0.25))
    figure = Figure("commit", UNARY, 1_500, "changes/s", None, 40.2, 83.0, cost)
    assert seen_in(json.loads(json.dumps(plain(figure, {})))) == seen(figure)


def test_the_json_of_a_version_without_costs_is_read() -> None:
    old = {"row": "start", "what": "fold, one core", "value": 2.5, "unit": "events/s"}
    assert seen_in(old) == Seen("fold, one core", "events/s", 2.5)


def test_the_table_names_a_figure_once() -> None:
    whole = Seen(UNARY, "changes/s", 1_000, p50_ms=40.0)
    found = compare([turn(0, A, whole), turn(0, B, whole)])
    head, rate, p50 = sides.render(found.lines).splitlines()
    assert head.split() == [
        "row",
        "what",
        "A",
        "B",
        "B/A",
        "of",
        "a",
        "pair",
        "pairs",
        "A",
        "x",
        "bare",
        "B",
        "x",
        "bare",
    ]
    assert rate.split()[:4] == ["commit", "unary,", "64", "callers"]
    assert p50.split() == ["p50", "ms", "40", "40", "1.00", "1.00–1.00", "1"]


class Named:
    """A checkout as the text shows it."""

    def __init__(self, name: str, packages: dict[str, str]) -> None:
        self.name, self.about = name, {"python": "3.11.7", "packages": packages}

    def __str__(self) -> str:
        return self.name


def text(found: Comparison, turns: list[Turn], packages: dict[str, str]) -> str:
    before = Named("before at 1", {"grpcio": "1.76", "lmdb": "2"})
    checkouts = {A: before, B: Named("now at 2", packages)}
    return sides.text(checkouts, turns, found)


def test_the_text_says_who_is_who_what_was_left_out_and_what_failed() -> None:
    turns = [turn(0, A, failed="it broke")]
    said = text(compare(turns), turns, {"grpcio": "1.76", "lmdb": "2"})
    assert said.startswith("A: before at 1\nB: now at 2\n")
    assert "not compared: commit: A: it broke" in said
    assert "failed: commit, pair 1, A: it broke" in said
    assert "differ" not in said


def test_other_versions_of_a_library_are_named() -> None:
    """Each side runs in its own environment, so a ratio may be a library's."""
    said = text(Comparison([], {}), [], {"grpcio": "1.81", "lmdb": "2"})
    assert "the environments differ: grpcio 1.76 / 1.81" in said


def test_json_has_every_turn(tmp_path: Path) -> None:
    turns = rates([100, 300], [300, 300])
    sides.write(tmp_path / "x.json", {"quick": True}, turns, compare(turns))
    found = json.loads((tmp_path / "x.json").read_text())
    assert found["conditions"] == {"quick": True}
    assert [one["figures"][0]["value"] for one in found["turns"]] == [100, 300, 300, 300]
    assert found["compared"][0]["ratio"] == pytest.approx(1.5)

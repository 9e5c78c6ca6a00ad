"""S3: SQL, fold and live state are one at random places of a log, and a difference is named."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

from agreement.agreeing import Point, compare
from agreement.folding import entries, folded_at
from agreement.places import Place, chosen
from agreement.views import Difference, Views
from holdfast.replay.generate.plan import Plan
from holdfast.replay.generate.write import ANCHORS, write_history
from holdfast.replay.read.anchor_files import read_anchors
from holdfast.replay.read.node_logs import node_log

EVENTS, PLACES, SEED = 8_000, 10, 18
AGAIN = f"./dev agree --events {EVENTS} --seed {SEED}"


def made(folder: Path, events: int) -> Path:
    """Make up a log in several segments, whose leader tells of its state at some places."""
    plan = Plan(
        events,
        groups=events // 100,
        seed=SEED,
        nodes=1,
        segment_events=events // 3,
        witness=False,
        anchors=PLACES,
    )
    return write_history(plan, folder / "made").folder


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of few records, which tests only read."""
    return made(tmp_path_factory.mktemp("history"), 600)


def test_sql_fold_and_live_state_are_one_at_ten_places(tmp_path: Path) -> None:
    """`AGAIN` compares a log of this kind."""
    folder = made(tmp_path, EVENTS)
    log, anchors = node_log(folder / "node-1"), read_anchors([folder / ANCHORS])
    points: list[Point] = []

    assert compare(log, chosen(log, anchors, PLACES, SEED), tmp_path, points.append) == [], AGAIN
    assert [len(point.place.told) for point in points] == [1] * PLACES
    assert len({next(iter(point.reached.values())).digest for point in points}) == PLACES


def test_the_first_key_that_differs_is_named_with_both_values(small: Path, tmp_path: Path) -> None:
    """The comparison can fail: one value that evolve did not compute."""
    log = node_log(small / "node-1")
    (fold,) = folded_at(log, [log.last.index])
    told = entries(fold.state).to_pylist()
    changed = next(row for row in told if row["kind"] == "offset")
    by_sql, changed["value"] = changed["value"], "planted"

    with closing(Views(log, tmp_path)) as views:
        assert views.compute(log.last.index) == len(told)
        found = views.differing(pa.Table.from_pylist(told), 5)

    group, key = changed["grp"], changed["key"]
    assert found == (1, [Difference(group, "offset", key, by_sql, "planted")])
    assert str(found[1][0]) == (
        f"group {group!r}, offset {key!r}: {by_sql!r} by SQL, 'planted' by evolve"
    )


def test_records_of_which_sql_knows_too_many_are_a_difference(small: Path, tmp_path: Path) -> None:
    """What is compared ends at the same place: one entry more leads to another state."""
    log = node_log(small / "node-1")
    (fold,) = folded_at(log, [log.last.index - 1])

    with closing(Views(log, tmp_path)) as views:
        views.compute(log.last.index)
        count, _ = views.differing(entries(fold.state), 0)

    assert count


@pytest.mark.parametrize(("what", "wrong"), [("digest", 1), ("chain", b"\1" * 32)])
def test_what_a_node_told_otherwise_is_named_with_its_index(
    what: str, wrong: object, small: Path, tmp_path: Path
) -> None:
    """The comparison can fail: a live state, or a log, that is not the one in the files (S3)."""
    log, (told, *_) = node_log(small / "node-1"), read_anchors([small / ANCHORS])
    place = Place(told.index, (told, told._replace(**{what: wrong})))  # type: ignore[arg-type]  # of its type

    (found,) = compare(log, [place], tmp_path, lambda _: None)

    assert f"at index {told.index} " in found
    assert f"tells the {what} " in found


def test_places_are_chosen_by_the_seed_from_what_was_told_within_the_log(small: Path) -> None:
    """Equal seeds choose equal places; behind the last record, records may be missing."""
    log, anchors = node_log(small / "node-1"), read_anchors([small / ANCHORS])
    beyond = anchors[0]._replace(index=log.last.index + 1)

    places = chosen(log, [*anchors, beyond], 5, 1)

    assert places == chosen(log, [beyond, *anchors], 5, 1)
    assert places == sorted(places)
    assert {told for place in places for told in place.told} < set(anchors)
    assert len(places) == 5


def test_where_nothing_was_told_any_place_is_chosen(small: Path) -> None:
    log = node_log(small / "node-1")
    places = chosen(log, [], 5, 1)

    assert len(places) == 5
    assert all(1 <= place.index <= log.last.index and not place.told for place in places)

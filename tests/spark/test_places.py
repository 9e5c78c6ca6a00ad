"""What a past state and a difference tell, and which places are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession

from holdfast.cli.main import main
from holdfast.coordinator.model.ids import Position
from holdfast.coordinator.model.state import State
from holdfast.replay import app
from holdfast.replay.app import Cut
from holdfast.replay.read.node_logs import node_log
from holdfast.replay.read.places import refuse_outside
from holdfast.replay.report.plain_state import compare_states, differences, plain_state
from spark.anchored import led_to
from spark.cut_logs import write_cut_node
from spark.event_logs import START_MS, busy_log, write_node

LOG = busy_log(groups=2, commits=6)
Command = Callable[..., Result]
SWAP = next(r for r in LOG.records if r.request_id == "swap-g0").position.index


def test_a_state_tells_groups_members_assignments_and_offsets() -> None:
    told = plain_state(LOG.state, "g1")

    assert told["applied_index"] == LOG.index
    assert list(told["groups"]) == ["g1"]
    group = told["groups"]["g1"]
    assert (group["state"], group["generation"], group["leader"]) == ("Stable", 1, "a2")
    assert group["members"] == {
        "a2": {"instance_id": "a", "assignment": {"t": [0, 1]}},
        "b1": {"instance_id": "b", "assignment": {"t": [2, 3]}},
    }
    commit = next(r for r in LOG.records if r.request_id == "c5")  # the last one of g1: 1 and 3
    assert group["offsets"]["t"]["3"] == {
        "offset": 5,
        "leader_epoch": -1,
        "metadata": "",
        "committed_ms": commit.log_time_ms,
    }
    assert sorted(group["offsets"]["t"]) == ["1", "3"]


def test_a_group_that_is_not_there_is_refused_with_the_place() -> None:
    with pytest.raises(ValueError, match=f"no group 'x' at index {LOG.index}"):
        plain_state(LOG.state, "x")


def test_a_difference_is_what_a_swap_changed_and_nothing_else() -> None:
    before, after = (led_to(LOG, index)[0] for index in (SWAP - 1, SWAP))

    found = compare_states(before, after, "g0")

    assert (found.before["applied_index"], found.after["applied_index"]) == (SWAP - 1, SWAP)
    old = {"instance_id": "a", "assignment": {"t": [0, 1]}}
    members = [each for each in found.differing if "/members" in each["path"]]
    assert members == [
        {"path": "/groups/g0/members/a1", "from": old, "to": None},
        {"path": "/groups/g0/members/a2", "from": None, "to": old},
    ]
    assert {each["path"] for each in found.differing if each not in members} <= {
        "/groups/g0/leader"
    }
    assert compare_states(before, after, "g1").differing == []


def test_a_group_that_comes_into_being_is_a_difference_and_one_in_neither_is_refused() -> None:
    found = compare_states(State(), LOG.state, "g0")

    assert [(each["path"], each["from"]) for each in found.differing] == [("/groups/g0", None)]
    with pytest.raises(ValueError, match="no group 'x'"):
        compare_states(State(), LOG.state, "x")


def test_names_with_slashes_stay_one_part_of_a_path() -> None:
    """RFC 6901: else `a/b` could not be told from `b` within `a`."""
    assert list(differences({"a/b~": 1}, {})) == [{"path": "/a~1b~0", "from": 1, "to": None}]


@pytest.mark.parametrize(
    ("cut", "told"),
    [
        (Cut(Position(LOG.index + 1, 0)), f"no record at {LOG.index + 1} yet: .* ends at"),
        (
            Cut(log_time_ms=START_MS),
            r"begins at log time \S+T22:13:20\.\d+Z, and 2023-11-14T22:13:20\.000Z is before",
        ),
    ],
)
def test_places_outside_of_the_log_are_refused(cut: Cut, told: str, tmp_path: Path) -> None:
    log = node_log(write_node(tmp_path, "n1", LOG.rows, (9,)))

    with pytest.raises(ValueError, match=told):
        refuse_outside(log, cut)


def test_places_within_the_log_are_not_refused(tmp_path: Path) -> None:
    log = node_log(write_node(tmp_path / "whole", "n1", LOG.rows, (9,)))
    cut_log = node_log(write_cut_node(tmp_path / "cut", "n1", LOG, 10))
    begins_ms = LOG.records[9].log_time_ms

    refuse_outside(log, Cut(Position(LOG.index, 0)))
    refuse_outside(log, Cut(log_time_ms=LOG.records[0].log_time_ms))
    refuse_outside(cut_log, Cut(log_time_ms=begins_ms))


def test_the_states_that_are_compared_are_those_of_the_fold(
    spark: SparkSession, tmp_path: Path
) -> None:
    """By index and by log time; each is what was live there."""
    folder = write_node(tmp_path, "n1", LOG.rows, (9,))
    after_ms = next(r for r in LOG.records if r.position.index == SWAP).log_time_ms

    found = app.difference(
        [folder], Cut(Position(SWAP - 1, 0)), Cut(log_time_ms=after_ms), group="g0", spark=spark
    )

    assert found == compare_states(led_to(LOG, SWAP - 1)[0], led_to(LOG, SWAP)[0], "g0")


# --- the commands, on states that the fold is not asked for ---


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """Run a command on a log whose state at a place is made without Spark."""
    folder = str(write_node(tmp_path, "n1", LOG.rows))

    def at_place(
        _: object, *, at: Position | None = None, log_time_ms: int | None = None, **__: object
    ) -> State:
        if log_time_ms is not None:
            last = max(r.position.index for r in LOG.records if r.log_time_ms <= log_time_ms)
            return led_to(LOG, last)[0]
        return led_to(LOG, at.index if at else LOG.index)[0]

    monkeypatch.setattr(app, "state", at_place)
    monkeypatch.setattr(app, "opened", _no_session)
    monkeypatch.setattr(app, "running_here", lambda _: nullcontext())
    return lambda *given: CliRunner().invoke(main, ["replay", *given, "--node-dir", folder])


class _no_session:  # noqa: N801 - it stands for a function
    def __init__(self, *_options: object, **_size: object) -> None:
        """It is asked for in the size that the log needs."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None


def test_replay_state_takes_an_index_or_a_time(command: Command) -> None:
    """2023-11-14T22:13:20Z is START_MS; entries are 100 ms apart."""
    by_index = command("state", "--at", "4", "--group", "g0", "--json")
    by_time = command("state", "--at", "2023-11-14T22:13:20.400Z", "--group", "g0")

    assert by_index.exit_code == by_time.exit_code == 0
    assert json.loads(by_index.output) == plain_state(led_to(LOG, 4)[0], "g0")
    assert json.loads(by_index.output) == json.loads(by_time.output)


@pytest.mark.parametrize("place", ["soon", "4.x", "-1", "4.5.6", "99999999999999999999"])
def test_what_is_no_place_is_wrong_usage(place: str, command: Command) -> None:
    ended = command("state", "--at", place)

    assert ended.exit_code == 2
    assert "is no place: write INDEX, INDEX.ORDINAL, or a time" in ended.output


def test_replay_state_names_a_group_that_is_not_there(command: Command) -> None:
    ended = command("state", "--group", "x")

    assert ended.exit_code == 1
    assert "there is no group 'x'" in ended.stderr


def test_replay_diff_tells_each_difference_in_a_line_or_as_json(command: Command) -> None:
    places = ("--from", str(SWAP - 1), "--to", str(SWAP), "--group", "g0")
    people = command("diff", *places)
    programs = command("diff", *places, "--json")

    found = compare_states(led_to(LOG, SWAP - 1)[0], led_to(LOG, SWAP)[0], "g0")
    told = json.loads(programs.output)
    assert [told["from"], told["to"], told["differences"]] == list(found)
    assert f"{len(found.differing)} differences" in people.output.splitlines()[0]
    assert any(line.startswith("/groups/g0/members/a1: {") for line in people.output.splitlines())

"""`holdfast replay why` tells of any generation what `group explain` told when it was new."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from holdfast.cli.main import main
from holdfast.replay import app
from spark.consumer_logs import reconciling_log
from spark.cut_logs import write_cut_node
from spark.event_logs import (
    EventLog,
    assigned,
    busy_log,
    formed,
    generation,
    rebalance_started,
    two_static_members,
    write_node,
)

LOG = busy_log(groups=2, commits=4)


def asked(folder: Path, group: str, number: int, *more: str) -> Result:
    command = ["replay", "why", "--node-dir", str(folder), "--group", group]
    return CliRunner().invoke(main, [*command, "--generation", str(number), *more])


def test_cause_actor_and_moves_of_a_generation_are_told(tmp_path: Path) -> None:
    """Of four partitions d1, who is new, got one, and one of a's went to b."""
    folder = write_node(tmp_path, "n1", LOG.rows, (9,))

    found = app.why([folder], "g0", 2).rebalance

    assert (found.from_generation, found.generation) == (1, 2)
    assert (found.reason, found.rule, found.principal) == ("new member", "A1", "p")
    assert [(c.name, c.how) for c in found.changes] == [("d1", "joined")]
    assert sorted((m.partition, m.before, m.after) for m in found.moves) == [
        (1, "a", "b"),
        (3, "b", "d1"),
    ]


def test_people_are_told_in_the_words_of_group_explain_and_programs_by_its_fields(
    tmp_path: Path,
) -> None:
    folder = write_node(tmp_path, "n1", LOG.rows)

    people, programs = asked(folder, "g0", 2), asked(folder, "g0", 2, "--json")

    assert people.exit_code == programs.exit_code == 0
    assert "generation 1 -> 2 in 200 ms" in people.output
    assert "moved: 2 partitions" in people.output
    told = json.loads(programs.output)
    assert (told["generation_id"], told["moved"], told["reason"]) == (2, 2, "new member")


def many_generations(count: int) -> EventLog:
    """More rebalances than a node remembers of a group."""
    log = formed()
    two_static_members(log)
    for number in range(2, count + 1):
        log.entry("g", rebalance_started(f"round {number}"))
        log.entry("g", generation(number, "a1", "b1"))
        log.entry("g", assigned(number, a1=(0, 1), b1=(2, 3)))
    return log


def test_generations_that_no_node_remembers_any_more_are_told_too(tmp_path: Path) -> None:
    folder = write_node(tmp_path, "n1", many_generations(30).rows)

    assert app.why([folder], "g", 2).rebalance.reason == "round 2"
    assert app.why([folder], "g", 30).rebalance.reason == "round 30"


def test_an_epoch_of_the_heartbeat_protocol_is_told_as_one(tmp_path: Path) -> None:
    log = reconciling_log()
    group = next(r.group_id for r in log.records if r.group_id)
    folder = write_node(tmp_path, "n1", log.rows)
    newest = log.state.groups[group].generation

    found, told = app.why([folder], group, newest), asked(folder, group, newest)

    assert (found.is_epoch, found.newest) == (True, newest)
    assert f"epoch {newest}" in told.output.splitlines()[0]


@pytest.mark.parametrize(
    ("group", "number", "told"),
    [
        ("g0", 9, "no generation or epoch 9 .* it tells of 1 to 2"),
        ("x", 1, "there is no group 'x'"),
    ],
)
def test_what_the_log_does_not_tell_is_refused(
    group: str, number: int, told: str, tmp_path: Path
) -> None:
    folder = write_node(tmp_path, "n1", LOG.rows)

    with pytest.raises(ValueError, match=told):
        app.why([folder], group, number)


def test_s24_behind_a_checkpoint_the_later_generations_are_told(tmp_path: Path) -> None:
    count = next(n for n, r in enumerate(LOG.records) if r.request_id == "c0")
    folder = write_cut_node(tmp_path, "n1", LOG, count)

    assert app.why([folder], "g0", 2).rebalance.reason == "new member"
    with pytest.raises(ValueError, match=r"from the checkpoint at .* on, .* it tells of 2 to 2"):
        app.why([folder], "g0", 1)

"""`why --partition` tells who owned a partition at any place of the log: owner, token, by what."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner, Result

from holdfast.cli.main import main
from holdfast.coordinator.consumer.state import CONSUMER
from holdfast.coordinator.model.events import (
    GroupDeleted,
    GroupEmptied,
    LevelRaised,
    MembersLeft,
    Record,
    RecoveryNumberRaised,
)
from holdfast.coordinator.model.ids import Position, TopicPartition, fencing_token
from holdfast.coordinator.model.state import STABLE, Group, State
from holdfast.replay import app
from holdfast.replay.analyse.owner import Owned
from holdfast.replay.app import Cut
from holdfast.storage.codec.event_codec import (
    CHAIN_START,
    append_chain,
    chain_hash,
    decode_assignment,
    encode_record,
)
from holdfast.storage.segments.segments import Row
from spark.consumer_logs import mixed_walk, reconciling_log, walk
from spark.cut_logs import write_cut_node
from spark.event_logs import (
    START_MS,
    EventLog,
    formed,
    joined,
    rebalance_started,
    released,
    swapped,
    two_static_members,
    write_node,
)


def restarted() -> EventLog:
    """Group g, stable at 500 ms by entry 5; a's process stops at 600, and is back at 700 ms."""
    log = formed()
    two_static_members(log)
    log.entry("g", released("a", "a1"))
    log.entry("g", swapped("a", "a1", "a2"))
    return log


def owned(folder: Path, partition: int = 0, at: Cut | None = None, group: str = "") -> Owned:
    return app.owner([folder], "t", partition, at, group=group or None)


def asked(folder: Path, *more: str) -> Result:
    return CliRunner().invoke(main, ["replay", "why", "--node-dir", str(folder), *more])


def test_owner_token_and_event_are_told_by_position_and_by_time(tmp_path: Path) -> None:
    """The assignment of entry 5 granted it; its index is the token (S13)."""
    folder = write_node(tmp_path, "n1", restarted().rows, (4,))

    found = owned(folder, at=Cut(Position(5, 0)))

    (owner,) = found.owners
    assert (owner.instance_id, owner.member_id, owner.token) == ("a", "a1", 5)
    assert (owner.since_ms - START_MS, owner.until_ms) == (500, None)
    assert owner.begun is not None
    assert (owner.begun.position, owner.begun.event) == (Position(5, 0), "AssignmentStored")
    assert (owner.begun.generation, owner.begun.principal) == (1, "p")
    assert found.before == ()
    assert owned(folder, at=Cut(log_time_ms=START_MS + 599)) == found


def test_s12_between_a_release_and_the_swap_nobody_owns_it(tmp_path: Path) -> None:
    folder = write_node(tmp_path, "n1", restarted().rows)

    between, after = owned(folder, at=Cut(Position(6, 0))), owned(folder)

    assert between.owners == ()
    (last,) = between.before
    assert (last.instance_id, last.how, last.until_ms) == ("a", "released", START_MS + 600)
    assert last.ended is not None
    assert last.ended.event == "InstanceReleased"
    (owner,) = after.owners
    assert (owner.member_id, owner.token, owner.since_ms - START_MS) == ("a2", 7, 700)
    assert after.before == between.before


def test_k_o3_in_the_heartbeat_protocol_it_is_owned_until_it_is_given_up(tmp_path: Path) -> None:
    """a1 was granted 2 in entry 6, and gave it up in entry 10; b1 was granted it in 11."""
    folder = write_node(tmp_path, "n1", reconciling_log().rows)

    asked_back = owned(folder, 2, Cut(Position(9, 0)))
    freed = owned(folder, 2, Cut(Position(10, 0)))
    end = owned(folder, 2)

    assert [(each.instance_id, each.token) for each in asked_back.owners] == [("a", 6)]
    assert (freed.owners, [each.how for each in freed.before]) == ((), ["freed"])
    assert [(each.instance_id, each.token) for each in end.owners] == [("b", 11)]
    assert (end.is_heartbeat, [each.instance_id for each in end.before]) == (True, ["a"])


def test_s13_a_token_has_the_recovery_number_that_counted_then(tmp_path: Path) -> None:
    log = restarted()
    log.entry("", LevelRaised(2))
    log.entry("", RecoveryNumberRaised(3, 8))
    folder = write_node(tmp_path, "n1", log.rows)

    assert owned(folder).owners[0].token == fencing_token(3, 7)
    assert owned(folder, at=Cut(Position(7, 0))).owners[0].token == 7


def two_groups() -> EventLog:
    log = formed()
    two_static_members(log, "g")
    two_static_members(log, "h")
    log.entry("h", rebalance_started("all go"), MembersLeft(("a1", "b1"), "bye"))
    log.entry("h", GroupEmptied(2), GroupDeleted())
    return log


def test_a_group_is_needed_as_long_as_several_own_it(tmp_path: Path) -> None:
    folder = write_node(tmp_path, "n1", two_groups().rows)

    with pytest.raises(ValueError, match=r"2 groups own t/0 there: 'g', 'h'\. Name"):
        owned(folder, at=Cut(Position(9, 0)))
    assert owned(folder, at=Cut(Position(9, 0)), group="h").owners[0].token == 9
    assert owned(folder).group == "g"
    assert owned(folder, group="h").owners == ()


@pytest.mark.parametrize(
    ("topic", "partition", "at", "group", "told"),
    [
        ("x", 0, Cut(), None, "no partition of a topic 'x' was granted to any group"),
        ("t", 9, Cut(), None, "t/9 was not granted to any group up to there.* 0 to 3 were"),
        ("t", 0, Cut(Position(3, 0)), None, "no partition of a topic 't'"),
        ("t", 0, Cut(), "x", "there is no group 'x' up to there"),
        ("t", 0, Cut(log_time_ms=START_MS), None, "before that: ask for a later time"),
        ("t", 0, Cut(Position(99, 0)), None, "there is no record at 99 yet"),
    ],
)
def test_what_the_log_does_not_tell_is_refused(
    topic: str, partition: int, at: Cut, group: str | None, told: str, tmp_path: Path
) -> None:
    folder = write_node(tmp_path, "n1", restarted().rows)

    with pytest.raises(ValueError, match=told):
        app.owner([folder], topic, partition, at, group=group)


def test_s24_what_a_checkpoint_begins_with_is_owned_since_before_it(tmp_path: Path) -> None:
    log = restarted()
    log.entry("g", rebalance_started("new member"), joined("d1"))
    count = next(n for n, r in enumerate(log.records) if r.position.index == 7)
    folder = write_cut_node(tmp_path, "n1", log, count)

    (owner,) = owned(folder, 2).owners

    assert (owner.member_id, owner.token, owner.begun) == ("b1", 5, None)
    assert "where a checkpoint begins the log" in asked(folder, "--partition", "t/2").output
    with pytest.raises(ValueError, match=r"the log begins at the checkpoint at 6\.0"):
        owned(folder, at=Cut(Position(5, 0)))


def test_people_and_programs_are_told_the_same(tmp_path: Path) -> None:
    folder = write_node(tmp_path, "n1", restarted().rows)

    people = asked(folder, "--partition", "t/2")
    programs = asked(folder, "--partition", "t/0", "--at", "7", "--json")

    assert people.exit_code == programs.exit_code == 0
    told = json.loads(programs.output)
    owner, before = told["owners"][0], told["before"][0]
    assert (owner["instance_id"], owner["token"], owner["begun"]["position"]["index"]) == (
        *("a", 7, 7),
    )
    assert (before["how"], before["ended"]["event"]) == ("released", "InstanceReleased")
    owned_by, since = people.output.splitlines()[1:3]
    assert owned_by == "  owned by instance b (member b1), token 5"
    assert since == (
        "    since log time 2023-11-14T22:13:20.500Z: AssignmentStored of 1 at 5.0 "
        "(by JoinGroup, rule A1, principal p)"
    )


def owners_in(state: State, partition: int) -> set[tuple[str, int]]:
    """Return who owns a partition by the fold, with the tokens that the service would tell."""
    (group,) = state.groups.values()
    of_type = _heartbeat_owners if group.group_type == CONSUMER else _classic_owners
    return {
        (member_id, fencing_token(state.recovery_number, index))
        for member_id, place, index in of_type(group)
        if place == ("t", partition)
    }


def _heartbeat_owners(group: Group[Any]) -> Iterator[tuple[str, TopicPartition, int]]:
    for member in group.body.members.values():
        for each in () if member.released else (*member.owned, *member.revoking):
            for number, index in zip(each.partitions, each.granted, strict=True):
                yield member.member_id, TopicPartition(each.topic, number), index


def _classic_owners(group: Group[Any]) -> Iterator[tuple[str, TopicPartition, int]]:
    for member in group.body.members.values():
        for each in decode_assignment(member.assignment) if member.assignment else ():
            if group.state == STABLE and not member.released:
                yield member.member_id, each, member.granted_index


@pytest.mark.parametrize(("made", "seed"), [(walk, 0), (mixed_walk, 3)])
def test_owners_and_tokens_are_those_of_the_fold_at_any_entry(
    made: Callable[[int, int], Iterable[tuple[tuple[Record, ...], State]]],
    seed: int,
    tmp_path: Path,
) -> None:
    """S13: in random walks, what is told of an entry is what the service would have answered.

    In the mixed ones members go over to the classic protocol, where all has one token.
    """
    entries = [(records, after) for records, after in made(seed, 60) if records]
    folder = write_node(tmp_path, "n1", rows_of(r for records, _ in entries for r in records))

    for records, after in Random(seed).sample(entries, 8):
        for partition in (0, 1, 3, 4):
            told = owners_in(after, partition) if after.groups else set()
            assert owners_told(folder, partition, Cut(records[-1].position)) == told


def owners_told(folder: Path, partition: int, at: Cut) -> set[tuple[str, int]]:
    try:
        found = owned(folder, partition, at)
    except ValueError:  # nobody ever had it
        return set()
    return {(each.member_id, each.token) for each in found.owners}


def rows_of(records: Iterable[Record]) -> list[Row]:
    heads, rows = dict[str, bytes](), list[Row]()
    for record in records:
        content = encode_record(record)
        head = chain_hash(heads.get(record.group_id, CHAIN_START), content)
        heads[record.group_id] = head
        rows.append(Row(record.position, append_chain(content, head)))
    return rows


@pytest.mark.parametrize(
    "given",
    [
        ("--group", "g"),
        ("--generation", "1"),
        ("--partition", "t/0", "--generation", "1", "--group", "g"),
        ("--at", "7", "--group", "g", "--generation", "1"),
        ("--partition", "t"),
        ("--partition", "/3"),
        ("--partition", "t/99999999999"),
        ("--partition", "t/0", "--at", "yesterday"),
    ],
)
def test_one_of_the_two_questions_is_asked(given: tuple[str, ...], tmp_path: Path) -> None:
    assert asked(write_node(tmp_path, "n1", restarted().rows), *given).exit_code == 2

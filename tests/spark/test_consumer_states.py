"""The state of groups of the heartbeat protocol: by SQL the same as by `evolve`, in every form.

Many histories are in one table, each with a name of its own, since a run of Spark takes long.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import DataFrame, SparkSession

from holdfast.cli.main import main
from holdfast.coordinator.consumer import evolve, holdings
from holdfast.coordinator.consumer.state import ConsumerGroup, Member
from holdfast.coordinator.kernel.apply import replay
from holdfast.coordinator.model.consumer_events import (
    MemberAdvanced,
    MemberSubscribed,
    TargetStored,
)
from holdfast.coordinator.model.events import (
    InstanceReleased,
    Record,
    StaticMemberReplaced,
    TopicsCreated,
    TopicSize,
)
from holdfast.coordinator.model.ids import Position
from holdfast.coordinator.model.state import State
from holdfast.replay import app
from holdfast.replay.findings import Finding
from holdfast.replay.spark.log_tables import SQL_SCHEMA
from holdfast.replay.verify.checkpoint_consumer_rows import consumer_rows
from holdfast.replay.verify.compare import FINDINGS_MAX, sql_against_fold
from holdfast.replay.verify.group_fold import entries_of
from holdfast.replay.verify.sql_entries import converted_groups, state_entries
from holdfast.replay.verify.sql_state import living_rows
from spark.consumer_logs import eventful_consumer_log, mixed_walk, reconciling_log, walk
from spark.cut_logs import continued
from spark.rows import ENTRIES, columns_of, told
from unit.coordinator.people import Classic, Consumer, World

LOG = eventful_consumer_log()
WALKS = range(8)
MIXED_WALKS = range(8)
MIXED_STEPS = 60
STEPS = 120
CUTS = 6


class Tables:
    """Histories as rows, and the states that they lead to, as entries; a name for each."""

    def __init__(self) -> None:
        self.rows: list[tuple[Any, ...]] = []
        self._entries: list[tuple[str, ...]] = []

    def add(self, name: str, records: list[Record], state: State) -> None:
        mine = [record for record in records if record.group_id]
        self.rows += [told(name, each.group_id, columns_of(each)) for each in mine]
        self.expect(name, state)

    def expect(self, name: str, state: State) -> None:
        self._entries += [
            (f"{name} {group.group_id}", *entry[2:5])
            for group in state.groups.values()
            for entry in entries_of(group)
        ]

    def kinds(self) -> set[str]:
        return {kind for _, kind, *_ in self._entries}

    def findings(self, spark: SparkSession) -> list[Finding]:
        sql = state_entries(living_rows(spark.createDataFrame(self.rows, SQL_SCHEMA)).cache())
        evolved: DataFrame = spark.createDataFrame(self._entries, ENTRIES)
        return sql_against_fold(sql, evolved, set())


# --- defects of evolve, each told by the kind of entry that it makes wrong ---

Damage = Callable[[ConsumerGroup, ConsumerGroup], ConsumerGroup]
"""What a defect makes of the group before an event and the right one after it."""


def _each(change: Callable[[Member], Member]) -> Damage:
    def damaged(_before: ConsumerGroup, after: ConsumerGroup) -> ConsumerGroup:
        members = after.body.members
        for member_id, member in after.body.members.items():
            members = members.set(member_id, change(member))
        return after._replace(body=after.body._replace(members=members))

    return damaged


def _kept(field: str) -> Damage:
    def damaged(before: ConsumerGroup, after: ConsumerGroup) -> ConsumerGroup:
        kept = {field: getattr(before.body, field)}
        return after._replace(body=after.body._replace(**kept))

    return damaged


def _regranted(member: Member) -> Member:
    return member._replace(owned=holdings.regranted(member.owned, 1))


def _given_up(member: Member) -> Member:
    return member._replace(revoking=()) if member.member_id == "b1" else member


DEFECTS: dict[str, tuple[type, Damage, set[str]]] = {
    "waits for nobody": (
        MemberAdvanced,
        _each(lambda member: member._replace(waiting=False)),
        {"progress"},
    ),
    "forgets the epoch before": (
        MemberAdvanced,
        _each(lambda member: member._replace(previous_epoch=member.epoch)),
        {"progress"},
    ),
    "takes as given up what was asked for": (MemberAdvanced, _each(_given_up), {"owned"}),
    "old tokens for new": (StaticMemberReplaced, _each(_regranted), {"owned"}),
    "epochs stay at a release": (
        InstanceReleased,
        _each(lambda m: m._replace(owned=holdings.with_epoch(m.owned, 9))),
        {"owned"},
    ),
    "old target": (TargetStored, _kept("targets"), {"target"}),
    "old target's epoch": (TargetStored, _kept("assignment_epoch"), {"assignment epoch"}),
    "old instance": (StaticMemberReplaced, _kept("instances"), {"instance"}),
    "remembers expressions": (MemberSubscribed, _kept("regexes"), {"regex"}),
}


def with_defect(name: str, monkeypatch: pytest.MonkeyPatch) -> State:
    kind, damage, _ = DEFECTS[name]
    right = evolve.FOLDS[kind]

    def fold(group: ConsumerGroup, event: Any, record: Record) -> ConsumerGroup:  # noqa: ANN401 - of the class
        return damage(group, right(group, event, record))

    with monkeypatch.context() as patch:
        patch.setitem(evolve.FOLDS, kind, fold)
        return replay(State(), LOG.records)


@pytest.fixture(scope="module")
def findings(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[Finding]]:
    """What was found, by the first word of a history's name."""
    tables = Tables()
    _add_steps(tables)
    _add_walks(tables)
    _add_mixed_walks(tables)
    _add_cuts(tables, tmp_path_factory.mktemp("checkpoints"))
    with pytest.MonkeyPatch.context() as patch:
        for name in DEFECTS:
            tables.add(f"defect/{name}", LOG.records, State())
            tables.expect(f"defect/{name}", with_defect(name, patch))
        _add_older_tokens(tables, patch)
    found = tables.findings(spark)
    assert len(found) < FINDINGS_MAX
    sorted_by: dict[str, list[Finding]] = {}
    for each in found:
        sorted_by.setdefault(each.group.split("/")[0], []).append(each)
    return sorted_by


def _add_steps(tables: Tables) -> None:
    for count in range(1, len(LOG.records) + 1):
        records = LOG.records[:count]
        tables.add(f"step/{count}", records, replay(State(), records))


def _add_walks(tables: Tables) -> None:
    for seed in WALKS:
        entries, records = list(walk(seed, STEPS)), list[Record]()
        for nth, (more, state) in enumerate(entries, 1):
            records += more
            if nth % max(1, len(entries) // CUTS) == 0:
                tables.add(f"walk/{seed}.{nth}", records, state)


def _add_mixed_walks(tables: Tables) -> None:
    for seed in MIXED_WALKS:
        records = list[Record]()
        entries = mixed_walk(seed, MIXED_STEPS)
        for nth, (more, state) in enumerate(entries, 1):
            records += more
            if nth % max(1, len(entries) // CUTS) == 0:
                tables.add(f"mixed/{seed}.{nth}", records, state)


def _add_older_tokens(tables: Tables, patch: pytest.MonkeyPatch) -> None:
    """A mixed group as an `evolve` has it that forgets that a classic member has one token."""
    records = [each for more, _ in mixed_walk(5, MIXED_STEPS) for each in more]
    tables.add("older-tokens", records, State())
    patch.setattr(evolve, "_told_one_token", lambda member, _record: member)
    tables.expect("older-tokens", replay(State(), records))


def _add_cuts(tables: Tables, folder: Path) -> None:
    for count in range(3, len(LOG.records)):
        tables.rows += continued(folder, LOG, count, "cut/")
        tables.expect(f"cut/{count}", LOG.state)


def test_sql_comes_to_the_same_state_as_evolve_after_every_record(
    findings: dict[str, list[Finding]],
) -> None:
    assert "step" not in findings


def test_sql_comes_to_the_same_state_as_evolve_after_random_walks(
    findings: dict[str, list[Finding]],
) -> None:
    assert "walk" not in findings


def test_q5_sql_follows_members_of_the_classic_protocol(
    findings: dict[str, list[Finding]],
) -> None:
    """K-Q5, K-Q7, S13: tokens are renewed together, also as one goes over under its own id."""
    assert "mixed" not in findings


def test_s13_an_evolve_that_keeps_older_tokens_of_classic_members_is_found(
    findings: dict[str, list[Finding]],
) -> None:
    """S13, K-Q5: by what they own, and by nothing else."""
    mine = findings["older-tokens g"]

    assert mine
    assert all(each.text.startswith("owned") for each in mine)


def test_s24_sql_goes_on_from_a_checkpoint_at_any_record(
    findings: dict[str, list[Finding]],
) -> None:
    assert "cut" not in findings


@pytest.mark.parametrize("name", DEFECTS)
def test_a_defect_of_evolve_is_found(name: str, findings: dict[str, list[Finding]]) -> None:
    mine = [each for each in findings["defect"] if each.group.startswith(f"defect/{name} ")]

    assert mine, "SQL says the same as a wrong evolve"
    kinds = {kind for each in mine for kind in DEFECTS[name][2] if each.text.startswith(kind)}
    assert kinds == DEFECTS[name][2]


def test_every_kind_of_entry_is_there() -> None:
    """Else the comparison would say nothing of it."""
    tables = Tables()
    tables.add("all", LOG.records, LOG.state)

    assert tables.kinds() == {
        "generation",
        "assignment epoch",
        "member",
        "instance",
        "subscription",
        "progress",
        "target",
        "owned",
        "regex",
        "offset",
    }


def test_a_past_state_is_printed_with_epochs_owners_and_targets(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """K-K5: DescribeGroups, by which classic groups are printed, does not know these."""
    log = reconciling_log()
    log.entry("", TopicsCreated((TopicSize("t", 4),)))
    monkeypatch.setattr(app, "state", lambda _folders, **_place: log.state)

    ended = CliRunner().invoke(main, ["replay", "state", "--node-dir", str(tmp_path)])

    group = json.loads(ended.stdout)["groups"]["g"]
    assert (group["state"], group["group_epoch"], group["assignment_epoch"]) == ("Stable", 3, 3)
    assert group["members"]["b1"] == {
        "instance_id": "b",
        "member_epoch": 3,
        "assignment": {"t": [2, 3]},
        "target": {"t": [2, 3]},
    }


def _joined_by_both() -> World:
    """A group of the heartbeat protocol, in which a classic process takes an instance over."""
    world = World()
    Consumer(world, "a", "i-a").beat()
    Consumer(world, "b").beat()
    Classic(world, "x", "i-a").join()
    return world


def _converted() -> World:
    """A group whose members of the heartbeat protocol have all gone (K-Q12)."""
    world = World()
    a = Consumer(world, "a")
    a.beat()
    Classic(world, "x", "i-x").join()
    a.leave()
    assert world.core.state.groups["g"].group_type == "classic"
    return world


def test_groups_that_have_changed_their_protocol_are_left_out(spark: SparkSession) -> None:
    """K-Q12: what their members own then, no column tells."""
    records = {
        "converted": [each for applied in _converted().core.log for each in applied.records],
        "mixed": [each for applied in _joined_by_both().core.log for each in applied.records],
        "pure": LOG.records,
    }
    rows = [
        told(name, each.group_id, columns_of(each))
        for name, some in records.items()
        for each in some
        if each.group_id
    ]
    found = converted_groups(living_rows(spark.createDataFrame(rows, SQL_SCHEMA)))

    assert [row.grp for row in found.collect()] == ["converted g"]


def test_a_classic_member_of_a_checkpoint_is_told_as_one() -> None:
    """S24: what made its group a mixed one is cut off."""
    group = _joined_by_both().core.state.groups["g"]
    (member,) = group.body.classic_members
    rows = consumer_rows(group, Position(99, 0))

    assert [row["member_id"] for _, row in rows if row.get("command") == "JoinGroup"] == [member]

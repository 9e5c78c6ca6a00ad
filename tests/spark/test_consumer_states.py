"""The state of groups of the heartbeat protocol: by SQL the same as by `evolve`, in every form.

Many histories are in one table, each with a name of its own, since a run of Spark takes long.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from holdfast.cli.main import main
from holdfast.coordinator.kernel.apply import replay
from holdfast.coordinator.model.consumer_events import GroupConverted
from holdfast.coordinator.model.events import Record, TopicsCreated, TopicSize
from holdfast.coordinator.model.state import State
from holdfast.replay import app
from holdfast.replay.findings import Finding
from holdfast.replay.verify import compare
from spark.choice_walks import choice_walk
from spark.consumer_logs import (
    assigning_log,
    eventful_consumer_log,
    mixed_walk,
    reconciling_log,
    walk,
)
from spark.cut_logs import continued
from spark.event_logs import EventLog, eventful_log
from spark.evolve_defects import DEFECTS, shown_by
from spark.mixed_logs import crowd, mixed_log
from spark.tables import Tables

LOG = eventful_consumer_log()
MIXED = mixed_log()
CLASSIC = eventful_log()
LOGS = (("step", LOG), ("mixed", MIXED), ("classic", CLASSIC), ("assigning", assigning_log()))
WALKS = range(8)
MIXED_WALKS = range(4)
MIXED_STEPS = 60
CROWDS = range(6)
CHOICES = range(8)
CHOICE_STEPS = 40
STEPS = 120
CUTS = 6
FOUND_MAX = 1_000
"""More than all defects together show; a report lists fewer."""


@pytest.fixture(scope="module")
def findings(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[Finding]]:
    """What was found, by the first word of a history's name."""
    tables = Tables()
    for name, log in LOGS:
        _add_steps(tables, name, log)
        _add_cuts(tables, tmp_path_factory.mktemp(name), f"cut/{name}.", log)
    for seed in WALKS:
        _add_entries(tables, f"walk/{seed}", walk(seed, STEPS))
    for seed in MIXED_WALKS:
        _add_entries(tables, f"mixed-walk/{seed}", mixed_walk(seed, MIXED_STEPS))
    for seed in CROWDS:
        _add_entries(tables, f"crowd/{seed}", crowd(seed, STEPS))
    for seed in CHOICES:
        _add_entries(tables, f"choice/{seed}", choice_walk(seed, CHOICE_STEPS))
    with pytest.MonkeyPatch.context() as patch:
        for name, defect in DEFECTS.items():
            log = CLASSIC if defect.classic else MIXED if defect.mixed else LOG
            count, wrong = shown_by(defect, log.records, patch)
            tables.add(f"defect/{name}", log.records[:count], wrong)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compare, "FINDINGS_MAX", FOUND_MAX)
        found = tables.findings(spark)
    assert len(found) < FOUND_MAX
    sorted_by: dict[str, list[Finding]] = {}
    for each in found:
        sorted_by.setdefault(each.group.split("/")[0], []).append(each)
    return sorted_by


def _add_steps(tables: Tables, name: str, log: EventLog) -> None:
    for count in range(1, len(log.records) + 1):
        records = log.records[:count]
        tables.add(f"{name}/{count}", records, replay(State(), records))


def _add_entries(
    tables: Tables, name: str, told: Iterable[tuple[tuple[Record, ...], State]]
) -> None:
    entries, records = list(told), list[Record]()
    for nth, (more, state) in enumerate(entries, 1):
        records += more
        if nth % max(1, len(entries) // CUTS) == 0:
            tables.add(f"{name}.{nth}", records, state)


def _add_cuts(tables: Tables, folder: Path, name: str, log: EventLog) -> None:
    for count in range(3, len(log.records)):
        tables.rows += continued(folder, log, count, name)
        tables.expect(f"{name}{count}", log.state)


def test_sql_comes_to_the_same_state_as_evolve_after_every_record(
    findings: dict[str, list[Finding]],
) -> None:
    assert "step" not in findings


@pytest.mark.parametrize("log", ["classic", "assigning"])
def test_sql_tells_what_members_say_of_themselves_after_every_record(
    log: str, findings: dict[str, list[Finding]]
) -> None:
    """S11, S12, S14, S26: timeouts, tokens' waits, request ids, lives and beats, who leads."""
    assert log not in findings


def test_sql_follows_groups_of_both_protocols_and_conversions_after_every_record(
    findings: dict[str, list[Finding]],
) -> None:
    """K-Q2, K-Q7, K-Q12, S13: who owns what, with which token, is told by the events alone."""
    assert "mixed" not in findings


@pytest.mark.parametrize("history", ["walk", "mixed-walk", "crowd", "choice"])
def test_sql_comes_to_the_same_state_as_evolve_after_random_histories(
    history: str, findings: dict[str, list[Finding]]
) -> None:
    """What is decided for clients of one protocol, and of both in one group (K-Q); who computes."""
    assert history not in findings


def test_s24_sql_goes_on_from_a_checkpoint_at_any_record(
    findings: dict[str, list[Finding]],
) -> None:
    assert "cut" not in findings


@pytest.mark.parametrize("name", DEFECTS)
def test_a_defect_of_evolve_is_found(name: str, findings: dict[str, list[Finding]]) -> None:
    mine = [each for each in findings["defect"] if each.group.startswith(f"defect/{name} ")]

    assert mine, "SQL says the same as a wrong evolve"
    kind = DEFECTS[name].found_by
    assert [each for each in mine if each.text.startswith(f"{kind} ")], mine


def test_random_histories_convert_groups_both_ways() -> None:
    """Else the comparison would say nothing of it."""
    records = [each for seed in CROWDS for some, _ in crowd(seed, STEPS) for each in some]
    types = [getattr(e.event, "group_type", "") for e in records if _converts(e)]

    assert {"consumer", "classic"} <= set(types)


def _converts(record: Record) -> bool:
    return isinstance(record.event, GroupConverted) and bool(record.event.members)


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

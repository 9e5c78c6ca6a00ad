"""`verify --lineage` writes run events that OpenLineage's published schema takes."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlparse
from uuid import UUID

import pytest

from holdfast.coordinator.model.ids import Position
from holdfast.replay.findings import CannotCheck, Check, Finding, Report
from holdfast.replay.lineage import lineage
from holdfast.replay.read.node_logs import node_logs
from spark.event_logs import busy_log, write_nodes

LOG = busy_log(groups=2, commits=4)
SOUND = Report((Check("fold", "all"),), LOG.records[-1].position, len(LOG.records), 0xABC)
LOST = Report(
    (Check("gaps", "all", (Finding("gap", "n1", "g0", Position(4, 0), "2 are missing"),)),),
    records=3,
)
RUN_EVENT = {"eventTime", "producer", "schemaURL", "run", "job"}
"""What the schema (2-0-2) requires of a run event; of a run, a job, a dataset and a facet below."""
KINDS = {"START", "RUNNING", "COMPLETE", "ABORT", "FAIL", "OTHER"}


def told(tmp_path: Path, ended: Report | BaseException) -> list[dict[str, Any]]:
    folders = [tmp_path / "n1", tmp_path / "n2"]
    if not folders[0].exists():
        write_nodes(tmp_path, LOG, nodes=2)
    path = tmp_path / "lineage.jsonl"
    try:
        with lineage(path, node_logs(folders), folders) as done:
            if isinstance(ended, BaseException):
                raise ended
            assert done(ended) is ended
    except (CannotCheck, KeyboardInterrupt):
        assert isinstance(ended, BaseException)
    return [json.loads(line) for line in path.read_text().splitlines()]


def assert_valid(event: dict[str, Any]) -> None:
    """Check what the published schema demands: required fields, and the formats of their values."""
    assert event.keys() >= RUN_EVENT
    assert event["eventType"] in KINDS
    assert datetime.fromisoformat(event["eventTime"]).tzinfo is not None
    assert UUID(event["run"]["runId"]).version in {4, 7}
    for dataset in (event["job"], *event["inputs"], *event["outputs"]):
        assert dataset["namespace"]
        assert dataset["name"]
    facets = [*event["run"]["facets"].values()]
    facets += [facet for each in event["inputs"] for facet in each["facets"].values()]
    for facet in facets:
        assert all(urlparse(facet[name]).scheme for name in ("_producer", "_schemaURL"))
    assert all(urlparse(event[name]).scheme for name in ("producer", "schemaURL"))


@pytest.mark.parametrize(
    ("ended", "kind"),
    [
        (SOUND, "COMPLETE"),
        (LOST, "FAIL"),
        (Report(()), "FAIL"),
        (CannotCheck("the disk is full"), "FAIL"),
        (KeyboardInterrupt(), "ABORT"),
    ],
)
def test_a_run_has_two_events_of_one_id_and_ends_as_the_verification_did(
    ended: Report | BaseException, kind: str, tmp_path: Path
) -> None:
    events = told(tmp_path, ended)

    assert [each["eventType"] for each in events] == ["START", kind]
    assert len({each["run"]["runId"] for each in events}) == 1
    for each in events:
        assert_valid(each)


def test_each_node_is_an_input_with_the_positions_of_its_log(tmp_path: Path) -> None:
    (start, _) = told(tmp_path, SOUND)

    last = LOG.records[-1].position._asdict()
    logs = [each["facets"]["holdfast_log"] for each in start["inputs"]]
    assert [(each["node"], each["first"], each["last"]) for each in logs] == [
        (name, {"index": 1, "ordinal": 0}, last) for name in ("n1", "n2")
    ]
    assert [each["name"] for each in start["inputs"]] == [str(tmp_path / n) for n in ("n1", "n2")]


def test_a_published_log_is_named_by_its_store_and_the_path_in_it(tmp_path: Path) -> None:
    """OpenLineage, "Naming": a bucket is the namespace."""
    write_nodes(tmp_path, LOG, nodes=1)
    path = tmp_path / "lineage.jsonl"
    with lineage(path, node_logs([tmp_path / "n1"]), ["s3://logs/cluster/n1"]) as done:
        done(SOUND)

    (named,) = json.loads(path.read_text().splitlines()[0])["inputs"]
    assert (named["namespace"], named["name"]) == ("s3://logs", "cluster/n1")


def test_the_end_tells_verdict_and_digest_or_what_is_wrong(tmp_path: Path) -> None:
    sound = told(tmp_path / "a", SOUND)[1]["run"]["facets"]
    lost = told(tmp_path / "b", LOST)[1]["run"]["facets"]
    full = told(tmp_path / "c", CannotCheck("the disk is full"))[1]["run"]["facets"]

    verdict = sound["holdfast_verification"]
    assert (verdict["passed"], verdict["digest"]) == (True, "0000000000000abc")
    assert (verdict["records"], "errorMessage" in sound) == (len(LOG.records), False)
    wrong = lost["holdfast_verification"]
    assert (wrong["passed"], wrong["findings"]) == (False, 1)
    assert "2 are missing" in lost["errorMessage"]["message"]
    assert full["errorMessage"]["message"] == "the disk is full"


def test_runs_are_appended_and_nothing_is_written_unasked(tmp_path: Path) -> None:
    told(tmp_path, SOUND)

    assert len(told(tmp_path, LOST)) == 4
    with lineage(None, [], []) as done:
        assert done(SOUND) is SOUND

"""Alerts and dashboard ask for metrics that a node shows, and each alert says what to do."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from holdfast.server.metrics.catalogue import BY_NAME

ROOT = Path(__file__).parents[3]
MONITORING = ROOT / "deploy" / "monitoring"
ALERTS = (MONITORING / "alerts.yml").read_text()
NAME = re.compile(r"\bholdfast_\w+")
PARTS = {"_bucket", "_sum", "_count"}


def unknown(text: str) -> set[str]:
    """The metrics in an expression that no node shows."""
    shown = {
        metric.name + part
        for metric in BY_NAME.values()
        for part in (PARTS if metric.kind == "histogram" else {""})
    }
    return set(NAME.findall(text)) - shown


def panels() -> list[dict[str, object]]:
    dashboard: dict[str, list[dict[str, object]]] = json.loads(
        (MONITORING / "dashboard.json").read_text()
    )
    return dashboard["panels"]


@pytest.mark.parametrize("name", ["alerts.yml", "alerts-test.yml", "dashboard.json"])
def test_only_metrics_that_a_node_shows_are_asked_for(name: str) -> None:
    assert unknown((MONITORING / name).read_text()) == set()


@pytest.mark.parametrize("name", ["holdfast_invented", "holdfast_commit_seconds"])
def test_a_name_that_no_node_shows_is_found(name: str) -> None:
    """A histogram's own name is none of what it shows."""
    assert unknown(f"rate({name}[5m])") == {name}


def test_each_alert_has_a_runbook_of_its_own_that_names_it() -> None:
    alerts = re.findall(r"- alert: (\w+)", ALERTS)
    runbooks = re.findall(r"runbook: (\S+)", ALERTS)
    there = {str(path.relative_to(ROOT)) for path in (ROOT / runbooks[0]).parent.glob("*.md")}

    assert len(alerts) == len(set(runbooks)) == len(runbooks)
    assert set(runbooks) == there
    for alert, runbook in zip(alerts, runbooks, strict=True):
        assert f"Alert: `{alert}`." in (ROOT / runbook).read_text()


def test_each_alert_is_tested_when_it_fires_and_when_it_does_not() -> None:
    tests = (MONITORING / "alerts-test.yml").read_text()
    fires = set(re.findall(r"alertname: (\w+)\n +exp_alerts:", tests))
    rests = set(re.findall(r"alertname: (\w+)}", tests))

    assert fires == rests == set(re.findall(r"- alert: (\w+)", ALERTS))


def test_every_panel_has_its_own_number_and_place() -> None:
    numbers = [panel["id"] for panel in panels()]
    places = [json.dumps(panel["gridPos"]) for panel in panels()]

    assert len(set(numbers)) == len(set(places)) == len(panels()) > 0


@pytest.mark.skipif(shutil.which("promtool") is None, reason="Prometheus' promtool is not here")
def test_prometheus_reads_the_alerts_and_they_fire_as_they_should() -> None:
    for arguments in (["check", "rules", "alerts.yml"], ["test", "rules", "alerts-test.yml"]):
        done = subprocess.run(
            ["promtool", *arguments], cwd=MONITORING, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr

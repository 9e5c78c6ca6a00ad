"""The chart: what can be read of it without Helm. tests/install/test_chart.py renders it."""

from __future__ import annotations

import copy
import json
from typing import Any

import jsonschema
import pytest
import yaml

from holdfast.server.config.keys import KEYS
from image.dockerfile import read
from tidy.repository import ROOT, pyproject

CHART = ROOT / "deploy" / "helm" / "holdfast"
SCHEMA = json.loads((CHART / "values.schema.json").read_text())
VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())


def problems(values: dict[str, Any]) -> list[str]:
    return [each.message for each in jsonschema.Draft7Validator(SCHEMA).iter_errors(values)]


def test_the_values_are_what_the_schema_allows_and_the_schema_knows_no_others() -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)

    assert problems(VALUES) == []
    assert set(SCHEMA["properties"]) - {"global"} == set(VALUES)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("nodes", 2),
        ("nodes", 0),
        ("replicas", 5),
        ("access.administrators", []),
        ("image.tag", "latest"),
        ("tls.source", "none"),
        ("terminationGracePeriodSeconds", 5),
        ("persistence.accessModes", ["ReadWriteMany"]),
        ("config", {"cluster.id": {"a": 1}}),
        ("config", {"notable": 1}),
        ("clusterId", "a/b"),
    ],
)
def test_values_that_make_no_safe_cluster_are_refused(path: str, value: object) -> None:
    """Even numbers, several nodes on a disk, nobody who could grant, an image that changes."""
    values = copy.deepcopy(VALUES)
    *inner, last = path.split(".")
    place = values
    for name in inner:
        place = place[name]
    place[last] = value

    assert problems(values)


def test_the_chart_and_the_package_have_one_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())

    assert chart["version"] == chart["appVersion"] == pyproject(ROOT)["project"]["version"]


def test_the_chart_is_about_what_the_image_is() -> None:
    """Its user, the folder that it writes, and the command that asks whether it lives."""
    image = read((ROOT / "deploy" / "docker" / "Dockerfile").read_text())[-1]
    text = (CHART / "templates" / "statefulset.yaml").read_text()
    user, group = image.told["USER"].split(":")

    assert f"runAsUser: {user}" in text
    assert f"fsGroup: {group}" in text
    assert f"mountPath: {image.told['VOLUME']}}}" in text
    assert f"command: [{image.words('HEALTHCHECK')[0]}, --held-lives]" in text
    for port in image.told["EXPOSE"].split():
        assert f"containerPort: {port}}}" in text


def test_alerts_and_dashboard_are_those_of_the_repository() -> None:
    """Links, so that there is one of each."""
    for name in ("alerts.yml", "dashboard.json"):
        link = CHART / "files" / name
        assert link.is_symlink()
        assert link.resolve() == ROOT / "deploy" / "monitoring" / name


def test_a_graceful_stop_fits_into_the_pods_grace_period() -> None:
    (shutdown_ms,) = (key.default for key in KEYS if key.dotted == "node.shutdown_ms")

    assert isinstance(shutdown_ms, int)
    assert VALUES["terminationGracePeriodSeconds"] * 1000 >= 2 * shutdown_ms
    assert (
        SCHEMA["properties"]["terminationGracePeriodSeconds"]["minimum"] * 1000 >= 2 * shutdown_ms
    )

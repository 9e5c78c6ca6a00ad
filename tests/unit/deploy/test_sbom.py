"""The bill of materials: every package of the image, once, with a version, a licence, a place."""

from __future__ import annotations

from typing import Any

import pytest
from packaging.requirements import Requirement

from image.pins import OURS, needed, pins
from image.sbom import WANTED, document

VERSIONS = {**pins(), OURS: "1.2.3"}


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    return document(needed(WANTED), VERSIONS)


def test_every_package_that_a_node_brings_is_listed_once(made: dict[str, Any]) -> None:
    names = [part["name"] for part in made["components"]]

    assert set(names) == needed(WANTED).keys() - {OURS}
    assert len(names) == len(set(names))
    assert {"grpcio", "lmdb", "pyarrow", "pysyncobj", "cryptography"} < set(names)
    assert made["metadata"]["component"]["version"] == "1.2.3"


def test_each_has_its_pinned_version_and_a_licence(made: dict[str, Any]) -> None:
    for part in made["components"]:
        assert part["version"] == VERSIONS[part["name"]]
        assert part["purl"] == f"pkg:pypi/{part['name']}@{part['version']}" == part["bom-ref"]
        assert part["licenses"], part["name"]


def test_whatever_is_listed_is_required_by_something_that_is_listed(made: dict[str, Any]) -> None:
    below = {part["ref"]: part["dependsOn"] for part in made["dependencies"]}
    reached, waiting = set[str](), [made["metadata"]["component"]["bom-ref"]]
    while waiting:
        ref = waiting.pop()
        if ref not in reached:
            reached.add(ref)
            waiting += below[ref]

    assert reached == set(below)


def test_the_same_packages_give_the_same_document(made: dict[str, Any]) -> None:
    assert document(needed(WANTED), VERSIONS) == made
    other = document(needed(WANTED), {**VERSIONS, "lmdb": "99"})
    assert other["serialNumber"] != made["serialNumber"]


def test_a_package_without_a_pinned_version_is_no_silent_gap() -> None:
    with pytest.raises(KeyError, match="click"):
        document({"click": [Requirement("click")]}, {})

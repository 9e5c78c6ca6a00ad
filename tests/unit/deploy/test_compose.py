"""deploy/compose: its files are there, its nodes would start, and no service may do much."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import Any

import pytest
import yaml

from holdfast.server.config.node_config import load
from image.composed import FOLDER, services
from tidy.repository import ROOT, pyproject

NODES = [name for name in services() if name.startswith("node-")]
OURS = [name for name, each in services().items() if "build" in each]


def mounted(service: dict[str, Any]) -> list[str]:
    """The files of the repository that a service sees."""
    return [each.split(":")[0] for each in service.get("volumes", []) if each.startswith(".")]


@pytest.mark.parametrize("name", NODES)
def test_each_node_is_configured_under_its_own_name(name: str) -> None:
    config = load(FOLDER / "node.toml", services()[name]["environment"], ())

    assert config.name == name
    assert [peer.name for peer in config.peers] == NODES
    assert str(config.peers[NODES.index(name)].client_address) == f"{name}:7400"
    assert config.administrators == ("holdfast://client/ops",)


def test_no_node_sees_the_authoritys_key_or_another_nodes() -> None:
    seen = {name: {v.split(":")[0] for v in services()[name]["volumes"]} for name in NODES}

    assert all("authority" not in volumes for volumes in seen.values())
    for one, other in zip(NODES, [*NODES[1:], NODES[0]], strict=True):
        assert seen[one] & seen[other] == {"./node.toml"}


@pytest.mark.parametrize("name", OURS)
def test_our_services_have_no_rights_and_a_read_only_root(name: str) -> None:
    """The one that makes certificates runs once, as root, to give them to their owners."""
    service = services()[name]

    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert ("user" in service) == ("cap_add" in service) == (name == "certificates")


def test_every_image_has_a_version_and_ours_is_the_packages() -> None:
    images = {name: each["image"] for name, each in services().items()}

    assert {images[name] for name in OURS} == {f"holdfast:{pyproject(ROOT)['project']['version']}"}
    assert all(re.search(r":v?\d+\.\d+\.\d+$", image) for image in images.values())


def test_a_stop_waits_for_longer_than_a_node_takes() -> None:
    for name in NODES:
        config = load(FOLDER / "node.toml", services()[name]["environment"], ())
        assert int(services()[name]["stop_grace_period"].removesuffix("s")) > (
            config.shutdown_ms / 1000
        )


@pytest.mark.parametrize("name", list(services()))
def test_every_file_that_is_mounted_is_there(name: str) -> None:
    assert [each for each in mounted(services()[name]) if not (FOLDER / each).exists()] == []


def test_prometheus_asks_every_node_under_the_job_of_the_alerts() -> None:
    (job,) = yaml.safe_load((FOLDER / "prometheus.yml").read_text())["scrape_configs"]

    assert job["job_name"] == "holdfast"
    assert job["static_configs"] == [{"targets": [f"{name}:7600" for name in NODES]}]


def has_compose() -> bool:
    if shutil.which("docker") is None:
        return False
    asked = subprocess.run(["docker", "compose", "version"], capture_output=True, check=False)
    return asked.returncode == 0


@pytest.mark.skipif(not has_compose(), reason="`docker compose` is not on this machine")
def test_compose_understands_its_file() -> None:
    done = subprocess.run(
        ["docker", "compose", "config", "--quiet"], cwd=FOLDER, capture_output=True, check=False
    )

    assert done.returncode == 0, done.stderr

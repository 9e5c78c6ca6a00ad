"""The image's content runs: as its own user, on a read-only root, the cluster of compose.yaml.

The Dockerfile's own steps make it, without Docker (`image.build`). Nothing here shows that Docker
understands the file, or what the base image holds.
"""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

import pytest

from harness.poll import until
from image.build import build, in_context, installed, size_of, why_not
from image.composed import addresses, container, services
from image.container import Container, stop
from image.run import DOCKERFILE
from tidy.repository import ROOT

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

    from image.build import Image

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(bool(why_not()), reason=f"no image can be built here: {why_not()}"),
]
NODES: Final = ("node-1", "node-2", "node-3")
NODE_USER: Final = 10001
PATIENCE_S: Final = 120.0
ADDED_MIB_MAX: Final = 190
"""What the image may add to its base; it was 176 when this was written, of which pyarrow 102."""


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    made = build(DOCKERFILE, ROOT, tmp_path_factory.mktemp("image"))
    net = random.randrange(1, 250)
    lines = [f"127.{net}.0.{number} {name}\n" for number, name in enumerate(NODES, start=1)]
    with (made.root / "etc" / "hosts").open("a") as hosts:
        hosts.writelines(lines)
    return made


class Composed:
    """The running services of compose.yaml."""

    def __init__(self, image: Image, folder: Path, stack: ExitStack) -> None:
        self.image, self.folder = image, folder
        self._stack = stack
        self.started: dict[str, subprocess.Popen[bytes]] = {}

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def container(self, name: str, *command: str, **environment: str) -> Container:
        given = {**(addresses(name) if name in NODES else {}), **environment}
        return container(name, self.image, self.folder / "volumes", *command, **given)

    def start(self, name: str) -> None:
        # The smallest segments, so that the nodes seal while a test looks.
        node = self.container(name, HOLDFAST_LOG_SEGMENT_EVENTS_MAX="5")
        self.started[name] = node.start(self.folder / f"{name}.log")
        self._stack.callback(stop, self.started[name], signal.SIGKILL)

    def run(self, name: str, *command: str) -> None:
        """Run a service to its end, which must be a good one."""
        code = self.container(name, *command).run(self.folder / f"{name}.log")
        assert code == 0, self.log(name)

    def health(self, name: str) -> int:
        """Ask what the image's HEALTHCHECK asks, in a container beside the node."""
        asked = self.image.stage.words("HEALTHCHECK")
        beside = self.container(name)
        return Container(
            self.image, tuple(asked), beside.environment, beside.volumes, entrypoint=()
        ).run(self.folder / f"{name}-health.log")


@pytest.fixture(scope="module")
def cluster(image: Image, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Composed]:
    with ExitStack() as stack:
        composed = Composed(image, tmp_path_factory.mktemp("compose"), stack)
        composed.run("certificates")
        for name in NODES:
            composed.start(name)
        composed.run("ops", "cluster", "wait")
        yield composed


def test_nothing_but_sources_is_given_to_the_build() -> None:
    """Neither keys and data of local clusters, nor what the checks leave behind."""
    given = set(in_context(ROOT))
    tops = {path.partition("/")[0] for path in given}

    assert tops - {"deploy"} == {
        *("pyproject.toml", "README.md", "LICENSE", "proto", "coordinator", "storage", "raft"),
        *("runtime", "server", "clients", "replay"),
    }
    deploy = {path.split("/")[1] for path in given if path.startswith("deploy/")}
    assert deploy == {"docker", "pypi"}, "what makes the image, and what describes the package"


def test_what_the_image_adds_is_bounded(image: Image) -> None:
    assert size_of([image.root / "opt"]) < ADDED_MIB_MAX << 20
    assert "pip" not in {path.name for path in installed(image)}


def test_the_cluster_of_compose_forms_and_each_node_is_healthy(cluster: Composed) -> None:
    """Certificates come from the service that makes them; nobody but a node reads its key."""
    assert [cluster.health(name) for name in NODES] == [0, 0, 0]
    keys = [*(cluster.folder / "volumes").glob("certificates-*/key.pem")]
    assert len(keys) == len(services()) - len(("certificates", "grafana"))
    for key in keys:
        assert (key.stat().st_uid, key.stat().st_mode & 0o777) == (NODE_USER, 0o600)


def test_a_node_runs_as_its_user_and_writes_nowhere_else(cluster: Composed) -> None:
    """The root is read-only, so that the nodes serve shows that they write to the volume alone."""
    written = [*(cluster.folder / "volumes" / "data-1").rglob("*")]

    assert {path.stat().st_uid for path in written} == {NODE_USER}
    assert "data.mdb" in {path.name for path in written}


def test_s22_what_is_left_of_arrow_seals_and_verifies_segments(cluster: Composed) -> None:
    for number in range(4):
        cluster.run("ops", "topic", "create", f"t{number}", "--partitions", "1")
    segments = cluster.folder / "volumes" / "data-1" / "segments"
    until(lambda: [*segments.glob("*/manifest.json")], "node-1 seals", within_s=PATIENCE_S)

    cluster.run("ops", "cluster", "status")
    code = stop(cluster.started["node-1"], signal.SIGTERM)
    assert code == 0, cluster.log("node-1")
    verify = ("log", "verify", "--node-dir", "/var/lib/holdfast")
    checked = cluster.container("node-1", *verify)
    assert checked.run(cluster.folder / "verify.log") == 0, cluster.log("verify")
    assert "(the whole log), 0 flaws" in cluster.log("verify")
    assert cluster.health("node-1") == 1, "nobody answers for a stopped node"
    cluster.start("node-1")
    cluster.run("ops", "cluster", "wait")


def test_a_stop_hands_the_leadership_over_and_ends_well(cluster: Composed) -> None:
    """Process 1 passes the signal on. Of three nodes stopped in turn, one leads at least."""
    for name in NODES:
        assert stop(cluster.started[name], signal.SIGTERM) == 0, cluster.log(name)
        cluster.start(name)
        cluster.run("ops", "cluster", "wait")
    told = "".join(cluster.log(name) for name in NODES)

    assert "handing the leadership to" in told

"""Compiled rules do what the source does: all of them are compiled, and nodes agree (S3).

Runs by `./dev test --compiled`, whose children import compiled rules first.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cluster import processes
from cluster.left import Left, read_left
from cluster.load import PARTITIONS, TOPIC, Load
from cluster.processes import RunningCluster, poll, running
from holdfast import coordinator
from tidy.repository import ROOT

if TYPE_CHECKING:
    from types import ModuleType

MORE = 200


def build() -> ModuleType:
    """The build hook, as a module."""
    spec = spec_from_file_location("compile_rules", ROOT / "coordinator" / "compile_rules.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compiled_modules() -> list[str]:
    files: list[str] = build().modules()
    return [file[file.index("/") + 1 : -len(".py")].replace("/", ".") for file in files]


@pytest.mark.parametrize("name", compiled_modules())
def test_each_of_the_rules_is_imported_compiled(name: str) -> None:
    assert str(import_module(name).__file__).endswith(tuple(EXTENSION_SUFFIXES))


def test_nothing_compiled_lies_in_the_tree() -> None:
    """There it would be imported in place of the source, unseen."""
    roots = [path for path in ROOT.iterdir() if path.name not in {"build", "dist"}]
    found = [
        lib
        for root in roots
        if root.is_dir() and not root.name.startswith(".")
        for lib in root.rglob("*.so")
    ]
    assert found == []


def source_environment() -> dict[str, str]:
    """What a child needs that imports the source: without the folder of compiled rules."""
    site = str(Path(str(coordinator.__file__)).parents[2])
    kept = [path for path in sys.path if path != site and path.startswith(str(ROOT / "tests"))]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(kept)}


def restart_from_source(cluster: RunningCluster, name: str, patch: pytest.MonkeyPatch) -> None:
    cluster.kill(name)
    with patch.context() as change:
        change.setattr(processes, "environment", source_environment)
        cluster.bring_back(name)
    poll(lambda: cluster.describe(name), f"{name} answers")


def forms(cluster: RunningCluster) -> dict[str, str]:
    """How each node said last that its rules run."""
    said = {name: cluster.words(name).rpartition("the rules run ")[2] for name in cluster.names}
    return {name: words.split("\n")[0].split('"')[0] for name, words in said.items()}


def test_compiled_nodes_and_one_of_source_end_with_equal_digests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S3: each leads for a while, so both decide what the others fold."""
    with running(tmp_path / "c", 3) as cluster:
        cluster.create_topic(TOPIC, PARTITIONS)
        with Load(cluster.addresses, cluster.tls) as load:
            load.await_crew()
            load.await_more(MORE, bounces=1)
            source = cluster.leader()
            restart_from_source(cluster, source, monkeypatch)
            assert forms(cluster) == {
                name: "as source" if name == source else "compiled" for name in cluster.names
            }
            load.await_more(MORE, bounces=1)
            moved = cluster.ask("cluster", "transfer-leadership", "--to", source)
            assert moved.returncode == 0, moved.stderr
            poll(lambda: cluster.ready(source), f"{source} leads")
            load.await_more(MORE, bounces=1)
        cluster.stop_at_one_index()
        left: list[Left] = [read_left(cluster.data(name)) for name in cluster.names]

    assert len({(each.last, each.chain, each.digest) for each in left}) == 1
    assert len(left[0].records) > 3 * MORE

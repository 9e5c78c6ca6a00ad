"""No pickle that the network or the disk could reach: not in messages, entries, nor modules."""

from __future__ import annotations

import ast
import importlib
import pickle
import pkgutil
from pathlib import Path

import pytest

import holdfast.raft
from harness.cluster import HEARTBEAT, Cluster


def test_no_pickle_is_reached_by_messages_or_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    """A whole life (elections, load, restart, snapshot) with a pickle that refuses to work."""

    def refuse(*_args: object) -> None:
        raise AssertionError("pickle was reached")

    for name in ("load", "loads", "dump", "dumps"):
        monkeypatch.setattr(f"pysyncobj.pickle.{name}", refuse)
        monkeypatch.setattr(pickle, name, refuse)
    c = Cluster()
    c.elect("A")
    c.crash("C")
    for i in range(20):
        c.put("A", f"v{i}")
    c.pump("AB", rounds=4, seconds=HEARTBEAT)
    c.consumer("A").snapshot()
    c.pump("AB", rounds=2)
    c.start("C")
    c.connect_all()
    c.pump(rounds=8, seconds=HEARTBEAT)
    assert c.consumer("C").values == [f"v{i}" for i in range(20)]


def test_no_module_of_the_raft_layer_imports_pickle() -> None:
    for module in pkgutil.walk_packages(holdfast.raft.__path__, "holdfast.raft."):
        spec = importlib.util.find_spec(module.name)
        assert spec is not None
        assert spec.origin is not None
        for node in ast.walk(ast.parse(Path(spec.origin).read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {"pickle", "marshal", "shelve"} & {n.split(".")[0] for n in names}
            assert "pysyncobj.pickle" not in names


def test_an_entry_of_an_unknown_kind_stops_the_node() -> None:
    """A pickled call, a membership change (E-8), a code version: none of these exist here."""
    c = Cluster("A")
    c.elect("A")
    c.engine("A").overlay.journal.append(b"\x02" + pickle.dumps(["add", "evil"]), 1)
    with pytest.raises(holdfast.raft.api.EngineStopped, match="kind 02"):
        c.pump(rounds=2)

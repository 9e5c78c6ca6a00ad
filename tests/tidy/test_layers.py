"""Imports go one way (CONTRIBUTING): judged module by module; import-linter judges whole chains."""

import ast
import sys
from collections.abc import Callable, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

from tidy.repository import ROOT, import_roots, module_name, nodes, plant, sources, where

# What a package may import of ours, as prefixes of dotted names.
ALLOWED = {
    "v1": ["v1"],
    "coordinator": ["coordinator"],
    "storage": ["storage", "coordinator"],
    "raft": ["raft", "storage"],
    "runtime": ["runtime", "raft.api", "raft.membership", "raft.open", "storage", "coordinator"],
    "server": ["server", "runtime", "raft", "storage", "coordinator", "v1"],
    "client": ["client", "v1", "coordinator.assignors"],
    "cli": [
        "cli",
        "client",
        "v1",
        "coordinator.model.text",
        "coordinator.cluster.settings_catalogue",
    ],
    "chaos": ["chaos", "client", "v1", "storage", "coordinator"],
    "replay": ["replay", "storage", "coordinator"],
}
# One part of a package that may import more than its package.
ALLOWED_MORE = {
    "storage.codec": ["v1"],
    "runtime.event_log.offline": ["raft.core.proposals"],
    "cli.target": ["server.config.cluster_file"],
    "cli.commands.audit": ["server.audit"],
    "cli.commands.certs": ["server.security", "raft.transport.peer_names"],
    "cli.commands.node_process": ["server", "raft.api"],
    "cli.commands.node_recover": ["server.config", "runtime.backup", "storage.errors"],
    "cli.commands.backup_files": ["runtime.backup"],
    "cli.offline.backup_restore": ["runtime.backup", "storage.errors"],
    "cli.offline.generated_history": ["replay.generate"],
    "cli.offline.publishing": ["replay.publish", "replay.findings"],
    "cli.offline.stopped_log": ["runtime.event_log.offline", "storage"],
    "cli.commands.replay": [
        "replay",
        "storage.codec.event_codec",
        "coordinator.model",
        "coordinator.kernel.queries",
    ],
    "replay.stream.served": ["client", "v1"],
    "cli.commands.chaos": ["chaos"],
    "cli.commands.doctor": ["server.config"],
    "cli.doctor.looking": [
        "server.config",
        "server.security",
        "server.metrics.machine",
        "raft.transport.peer_names",
    ],
    "cli.local_cluster": [
        "server.config",
        "server.security",
        "raft.transport.peer_names",
        "storage",
    ],
}
# Only inside a function, or for a type: a server without the [spark] extra must start, and no node
# needs either.
LAZY = ["replay", "chaos"]
# What of the command runs nodes, reads their disks or backups, or makes certificates; all else of
# it loads these, and what they need, only inside a function: who asks a cluster neither waits for
# that nor needs the [server] extra.
CLI_SERVING = ["cli.commands.node_process", "cli.commands.certs"]
CLI_SERVING += ["cli.commands.backup_files", "cli.commands.node_recover", "cli.offline"]
CLI_SERVING += ["cli.local_cluster", "cli.doctor.looking"]
CLI_LAZY = [*LAZY, *CLI_SERVING, "server", "runtime", "raft", "storage"]
CLI_LAZY += ["coordinator.kernel", "coordinator.model.ids", "coordinator.model.state"]

IMPURE = {
    *("asyncio", "concurrent", "ctypes", "datetime", "io", "logging", "multiprocessing", "os"),
    *("pathlib", "pickle", "random", "secrets", "select", "selectors", "signal", "socket", "ssl"),
    *("subprocess", "sys", "tempfile", "threading", "time", "uuid"),
}
CLIENT_NEEDS = {"grpc", "google", "holdfast"}

Check = Callable[[Path], list[str]]


class Import(NamedTuple):
    """One imported name, where it stands, and whether it is loaded by a call alone, or never."""

    name: str
    node: ast.stmt
    lazy: bool


def imports(path: Path, module: str) -> Iterator[Import]:
    """Go through a module's imports; `from a import b` is a.b."""
    inside = {id(node) for late in nodes(path) if _is_late(late) for node in ast.walk(late)}
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, node, id(node) in inside) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _base(node, package)
            names = (f"{base}.{alias.name}" for alias in node.names)
            yield from (Import(name, node, id(node) in inside) for name in names)


def _is_late(node: ast.AST) -> bool:
    """Whether what stands in it is not run when the module is loaded."""
    if isinstance(node, ast.If):
        return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def _base(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    above = package.split(".")[: len(package.split(".")) - node.level + 1]
    return ".".join([*above, *([node.module] if node.module else [])])


def under(name: str, prefixes: list[str]) -> bool:
    return any(name == prefix or name.startswith(prefix + ".") for prefix in prefixes)


def _lazy_for(short: str) -> list[str]:
    """What a module may import only inside a function."""
    if under(short, ["cli"]) and not under(short, CLI_SERVING):
        return CLI_LAZY
    return [] if under(short, LAZY) else LAZY


def check_directions(root: Path) -> list[str]:
    """Layers: a package imports only what stands below it."""
    found = []
    for path in sources(root):
        module = module_name(root, path)
        short = module.removeprefix("holdfast.")
        allowed = list(ALLOWED[short.partition(".")[0]])
        allowed += [m for part, more in ALLOWED_MORE.items() if under(short, [part]) for m in more]
        for name, node, lazy in imports(path, module):
            target = name.removeprefix("holdfast.")
            if target == name:
                continue
            late = under(target, _lazy_for(short)) and not lazy
            if late or not under(target, allowed):
                why = "only inside a function" if late else "against the layers"
                found.append(f"{where(root, path, node)}: {module} imports {name}: {why}")
    return found


def check_purity(root: Path) -> list[str]:
    """The core is pure: the standard library only, and of it nothing with a clock, chance or IO."""
    found = []
    for path in sources(root):
        module = module_name(root, path)
        if not under(module, ["holdfast.coordinator"]):
            continue
        for name, node, _ in imports(path, module):
            top = name.partition(".")[0]
            if top in IMPURE or top not in {*sys.stdlib_module_names, "holdfast"}:
                found.append(f"{where(root, path, node)}: the core imports {name}")
    return found


def check_grpc(root: Path) -> list[str]:
    """Nothing below the server speaks gRPC."""
    below = ["holdfast.coordinator", "holdfast.storage", "holdfast.raft", "holdfast.runtime"]
    below += ["holdfast.replay"]
    found = []
    for path in sources(root):
        module = module_name(root, path)
        if not under(module, below):
            continue
        for name, node, _ in imports(path, module):
            if name.partition(".")[0] in {"grpc", "grpc_health", "grpc_reflection"}:
                found.append(f"{where(root, path, node)}: {module} imports {name}")
    return found


def check_client(root: Path) -> list[str]:
    """The client needs grpcio and protobuf, nothing else: that is what the bare install brings."""
    found = []
    for path in sources(root):
        module = module_name(root, path)
        if not under(module, ["holdfast.client", "holdfast.coordinator.assignors"]):
            continue
        for name, node, _ in imports(path, module):
            top = name.partition(".")[0]
            if top not in CLIENT_NEEDS and top not in sys.stdlib_module_names:
                found.append(f"{where(root, path, node)}: {module} imports {name}")
    return found


def check_pickle(root: Path) -> list[str]:
    """No pickle: what comes from the network or the disk is never executed."""
    executing = {"pickle", "cPickle", "dill", "cloudpickle", "shelve", "marshal"}
    return [
        f"{where(root, path, node)}: imports {name}"
        for path in sources(root)
        for name, node, _ in imports(path, module_name(root, path))
        if name.partition(".")[0] in executing
    ]


def check_circles(root: Path) -> list[str]:
    """No file needs, by way of others, itself: also not for a type alone."""
    modules = {module_name(root, path): path for path in sources(root)}
    needs = {
        module: {home for each in imports(path, module) if (home := _home(each.name, modules))}
        for module, path in modules.items()
    }
    try:
        TopologicalSorter({m: homes - {m} for m, homes in needs.items()}).prepare()
    except CycleError as error:
        return [f"modules need each other in a circle: {' <- '.join(error.args[1])}"]
    return []


def _home(name: str, modules: dict[str, Path]) -> str:
    """The module that an imported name comes from, or nothing if it is none of ours."""
    while name and name not in modules:
        name = name.rpartition(".")[0]
    return name


CHECKS = [
    *(check_directions, check_purity, check_grpc, check_client, check_pickle, check_circles),
]
BAD = [
    (check_directions, "coordinator/holdfast/coordinator/x.py", "import holdfast.storage"),
    (
        check_directions,
        "storage/holdfast/storage/journal/journal.py",
        "from holdfast.v1 import log_pb2",
    ),
    (check_directions, "raft/holdfast/raft/x.py", "from holdfast.server import node"),
    (check_directions, "raft/holdfast/raft/x.py", "from holdfast.coordinator import ids"),
    (check_directions, "runtime/holdfast/runtime/x.py", "import holdfast.v1.group_pb2"),
    (check_directions, "runtime/holdfast/runtime/x.py", "import holdfast.raft.core.elections"),
    (check_directions, "server/holdfast/server/x.py", "from holdfast.client import Member"),
    (
        check_directions,
        "clients/python/holdfast/client/x.py",
        "from holdfast.coordinator import ids",
    ),
    (check_directions, "replay/holdfast/replay/x.py", "from holdfast import raft"),
    (check_directions, "clients/chaos/holdfast/chaos/x.py", "from holdfast.raft import replica"),
    (
        check_directions,
        "clients/chaos/holdfast/chaos/x.py",
        "import holdfast.server.config.node_config",
    ),
    (
        check_directions,
        "server/holdfast/server/process/node.py",
        "def f():\n    from holdfast.chaos import judge",
    ),
    (check_directions, "clients/python/holdfast/client/x.py", "import holdfast.chaos"),
    (check_directions, "raft/holdfast/raft/x/y.py", "from ... import server"),
    (check_purity, "coordinator/holdfast/coordinator/x.py", "def now():\n    import time"),
    (check_purity, "coordinator/holdfast/coordinator/x.py", "from os.path import join"),
    (check_purity, "coordinator/holdfast/coordinator/x.py", "import attrs"),
    (check_grpc, "storage/holdfast/storage/x.py", "import grpc"),
    (check_grpc, "runtime/holdfast/runtime/replica/replica.py", "from grpc import aio"),
    (check_grpc, "raft/holdfast/raft/transport/peer.py", "import grpc"),
    (check_client, "clients/python/holdfast/client/x.py", "import numpy"),
    (check_pickle, "raft/holdfast/raft/x.py", "from pickle import loads"),
]
CIRCLES = [
    ("import holdfast.raft.b", "from holdfast.raft import a"),
    ("from holdfast.raft.b import x", "if TYPE_CHECKING:\n    from .a import y"),
    ("def f():\n    from holdfast.raft import b", "from holdfast.raft.a import y"),
]
GOOD = [
    ("clients/chaos/holdfast/chaos/x.py", "from holdfast.client import Member"),
    (
        "clients/chaos/holdfast/chaos/x.py",
        "from holdfast.storage.codec.event_codec import decode_record",
    ),
    ("storage/holdfast/storage/codec/records.py", "from holdfast.v1 import events_pb2"),
    ("server/holdfast/server/rpc/x.py", "import grpc"),
    (
        "clients/python/holdfast/client/x.py",
        "from holdfast.coordinator.assignors import RangeAssignor",
    ),
    ("coordinator/holdfast/coordinator/x.py", "from dataclasses import dataclass"),
    ("raft/holdfast/raft/x.py", "from .y import z"),
]


@pytest.mark.parametrize("check", CHECKS)
def test_the_repository_keeps_the_layers(check: Check) -> None:
    assert import_roots(ROOT)

    assert check(ROOT) == []


@pytest.mark.parametrize(("check", "name", "text"), BAD)
def test_each_check_finds_what_it_forbids(
    check: Check, name: str, text: str, tmp_path: Path
) -> None:
    assert len(check(plant(tmp_path, {name: text}))) == 1


@pytest.mark.parametrize(("one", "other"), CIRCLES)
def test_two_files_that_need_each_other_are_found(one: str, other: str, tmp_path: Path) -> None:
    files = {"raft/holdfast/raft/a.py": one, "raft/holdfast/raft/b.py": other}

    assert len(check_circles(plant(tmp_path, files))) == 1


@pytest.mark.parametrize(("name", "text"), GOOD)
def test_what_is_allowed_passes_every_check(name: str, text: str, tmp_path: Path) -> None:
    root = plant(tmp_path, {name: text})

    assert [check(root) for check in CHECKS] == [[]] * len(CHECKS)

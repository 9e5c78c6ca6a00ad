"""Imports go one way (CONTRIBUTING): judged module by module; import-linter judges whole chains."""

import ast
import sys
from collections.abc import Callable, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

from tidy.repository import ROOT, import_roots, module_name, plant, sources, syntax, where

# What a package may import of ours, as prefixes of dotted names.
ALLOWED = {
    "v1": ["v1"],
    "coordinator": ["coordinator"],
    "storage": ["storage", "coordinator"],
    "raft": ["raft", "storage"],
    "runtime": ["runtime", "raft.api", "raft.open", "raft.messages", "storage", "coordinator"],
    "server": ["server", "runtime", "raft", "storage", "coordinator", "v1"],
    "client": ["client", "v1", "coordinator.assignors"],
    "cli": ["cli", "client", "server", "runtime", "raft", "storage", "coordinator", "v1"],
    "chaos": ["chaos", "client", "v1", "storage", "coordinator"],
    "replay": ["replay", "storage", "coordinator"],
}
# One part of a package that may import more than its package.
ALLOWED_MORE = {
    "storage.codec": ["v1"],
    "runtime.event_log.offline": ["raft.core.proposals"],
    "cli": ["replay"],
    "cli.commands.chaos": ["chaos"],
}
# Only inside a function: a server without the [spark] extra must start, and no node needs either.
LAZY = {"replay", "chaos"}

IMPURE = {
    *("asyncio", "concurrent", "ctypes", "datetime", "io", "logging", "multiprocessing", "os"),
    *("pathlib", "pickle", "random", "secrets", "select", "selectors", "signal", "socket", "ssl"),
    *("subprocess", "sys", "tempfile", "threading", "time", "uuid"),
}
CLIENT_NEEDS = {"grpc", "google", "holdfast"}
# A room or a module of the client, and what else of the client it may import.
CLIENT_ROOMS = {
    "_text": [],
    "errors": ["_text"],
    "_session": ["errors"],
    "_translate": ["_session", "errors", "_text"],
    "_rpc": ["_translate", "_session", "errors", "_text"],
    "aio": ["_rpc", "_translate", "_session", "errors", "_text"],
    "sync": ["aio", "_rpc", "_translate", "_session", "errors", "_text"],
}
CLIENT_PURE = ["holdfast.client._session", "holdfast.client._translate"]

Check = Callable[[Path], list[str]]


class Room(NamedTuple):
    """Modules, all but some of them, that never import certain names, and why not."""

    modules: list[str]
    but: list[str]
    never: list[str]
    why: str


SPARK = ["holdfast.replay.app", "holdfast.replay.spark", "holdfast.replay.analyse.queries"]
FOLDS = ["holdfast.replay.verify.group_fold", "holdfast.replay.verify.cluster_fold"]
JUDGES = ["holdfast.chaos.checkers", "holdfast.chaos.evidence"]
ACTORS = ["holdfast.chaos.collect", "holdfast.chaos.nemesis", "holdfast.chaos.workload"]
RUN = ["holdfast.chaos.clock", "holdfast.chaos.cluster", "holdfast.chaos.runner", *ACTORS]
ROOMS = [
    Room(
        ["holdfast.replay"],
        [*SPARK, "holdfast.replay.verify"],
        ["pyspark", "py4j", *SPARK, "holdfast.replay.verify"],
        "reading, following a group and showing a report need no Spark",
    ),
    Room(FOLDS, [], ["pyspark", "py4j", *SPARK], "it runs in Spark's workers, without Spark"),
    Room(
        ["holdfast.replay.verify.sql_state"],
        [],
        ["holdfast"],
        "it says the rules a second time, and shares nothing with the first",
    ),
    Room(
        JUDGES,
        [],
        ["holdfast.client", "grpc", *sorted(IMPURE), *RUN],
        "a judge sees a history and nothing else",
    ),
    Room(
        JUDGES,
        ["holdfast.chaos.checkers.replay_is_live"],
        ["holdfast.coordinator", "holdfast.storage"],
        "a judge that used the coordinator's rules would share its mistakes",
    ),
    Room(
        ["holdfast.chaos.evidence"],
        [],
        ["holdfast.chaos.checkers"],
        "what checkers share knows no invariant",
    ),
    Room(
        ["holdfast.chaos.history"],
        [],
        ["holdfast.client", "grpc", *JUDGES, *RUN],
        "a history is the same whoever writes or reads it",
    ),
    Room(
        ["holdfast.chaos.cluster"],
        [],
        ["holdfast.chaos.history", *JUDGES, *ACTORS, "holdfast.chaos.runner"],
        "a cluster is the same without a run",
    ),
    Room(ACTORS, [], [*JUDGES, "holdfast.chaos.runner"], "who acts in a run does not judge it"),
]


class Import(NamedTuple):
    """One imported name, where it stands, and whether only a call reaches it."""

    name: str
    node: ast.stmt
    lazy: bool


def imports(path: Path, module: str) -> Iterator[Import]:
    """Go through a module's imports; `from a import b` is a.b."""
    tree = syntax(path)
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    inside = {id(node) for function in functions for node in ast.walk(function)}
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, node, id(node) in inside) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _base(node, package)
            names = (f"{base}.{alias.name}" for alias in node.names)
            yield from (Import(name, node, id(node) in inside) for name in names)


def _base(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    above = package.split(".")[: len(package.split(".")) - node.level + 1]
    return ".".join([*above, *([node.module] if node.module else [])])


def under(name: str, prefixes: list[str]) -> bool:
    return any(name == prefix or name.startswith(prefix + ".") for prefix in prefixes)


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
            late = under(target, list(LAZY)) and not under(short, list(LAZY)) and not lazy
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


STORES = {
    "lmdb": ["storage.journal", "storage.state", "storage.disk", "storage.directory"],
    "pyarrow": ["storage.segments", "replay"],
    "pysyncobj": ["raft.pysyncobj"],
}
"""The rooms that alone know a package."""


def check_stores(root: Path) -> list[str]:
    """LMDB, Parquet and PySyncObj are known in their rooms alone."""
    return [
        f"{where(root, path, node)}: {module} imports {name}"
        for path in sources(root)
        for module in [module_name(root, path)]
        for name, node, _ in imports(path, module)
        if (rooms := STORES.get(name.partition(".")[0])) is not None
        and not under(module.removeprefix("holdfast."), rooms)
    ]


def check_grpc(root: Path) -> list[str]:
    """Below the server raft.transport alone speaks gRPC."""
    below = ["holdfast.coordinator", "holdfast.storage", "holdfast.raft", "holdfast.runtime"]
    below += ["holdfast.replay"]
    found = []
    for path in sources(root):
        module = module_name(root, path)
        if not under(module, below) or under(module, ["holdfast.raft.transport"]):
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


def check_client_rooms(root: Path) -> list[str]:
    """The client: the session knows no shell, and no shell the one that stands over it."""
    found = []
    for path in sources(root):
        module = module_name(root, path)
        room = module.removeprefix("holdfast.client.").partition(".")[0]
        if room == "holdfast":  # another package, or the client's own __init__
            continue
        allowed = [room, *CLIENT_ROOMS.get(room, [])]
        for name, node, _ in imports(path, module):
            target = name.removeprefix("holdfast.client.")
            if target != name and not under(target, allowed):
                found.append(f"{where(root, path, node)}: {module} imports {name}")
    return found


def check_client_purity(root: Path) -> list[str]:
    """The client's session and its messages: no clock, no IO, no loop, no thread, no gRPC."""
    found = []
    for path in sources(root):
        module = module_name(root, path)
        if not under(module, CLIENT_PURE):
            continue
        for name, node, _ in imports(path, module):
            top = name.partition(".")[0]
            if top in IMPURE | {"grpc"} or "_pb2_grpc" in name:
                found.append(f"{where(root, path, node)}: {module} imports {name}")
    return found


def check_rooms(root: Path) -> list[str]:
    """Within a package: rooms that never import what would make them depend on something."""
    return [
        f"{where(root, path, node)}: {module} imports {name}: {room.why}"
        for path in sources(root)
        for module in [module_name(root, path)]
        for room in ROOMS
        if under(module, room.modules) and not under(module, room.but)
        for name, node, _ in imports(path, module)
        if under(name, room.never)
    ]


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
    *(check_directions, check_purity, check_stores, check_grpc, check_client, check_pickle),
    *(check_client_rooms, check_client_purity, check_rooms, check_circles),
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
    (check_directions, "clients/cli/holdfast/cli/x.py", "import holdfast.replay"),
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
        "clients/cli/holdfast/cli/commands/chaos.py",
        "from holdfast.chaos import judge",
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
    (check_stores, "storage/holdfast/storage/segments/x.py", "import lmdb"),
    (check_stores, "storage/holdfast/storage/state/x.py", "from pyarrow import parquet"),
    (check_stores, "raft/holdfast/raft/core/x.py", "import pysyncobj.syncobj"),
    (check_grpc, "storage/holdfast/storage/x.py", "import grpc"),
    (check_grpc, "runtime/holdfast/runtime/replica/replica.py", "from grpc import aio"),
    (check_client, "clients/python/holdfast/client/x.py", "import numpy"),
    (
        check_client_rooms,
        "clients/python/holdfast/client/_session/x.py",
        "from holdfast.client._rpc.clock import boot_ms",
    ),
    (
        check_client_rooms,
        "clients/python/holdfast/client/_rpc/x.py",
        "if TYPE_CHECKING:\n    from holdfast.client.aio.member import Member",
    ),
    (
        check_client_rooms,
        "clients/python/holdfast/client/aio/x.py",
        "from holdfast.client import sync",
    ),
    (
        check_client_rooms,
        "clients/python/holdfast/client/sync/x.py",
        "from holdfast.client import Tls",
    ),
    (check_client_purity, "clients/python/holdfast/client/_session/x.py", "import asyncio"),
    (check_client_purity, "clients/python/holdfast/client/_session/x.py", "from time import time"),
    (check_client_purity, "clients/python/holdfast/client/_translate/x.py", "import grpc.aio"),
    (
        check_client_purity,
        "clients/python/holdfast/client/_translate/x.py",
        "from holdfast.v1.group_pb2_grpc import GroupServiceStub",
    ),
    (check_rooms, "replay/holdfast/replay/read/x.py", "from pyspark.sql import functions"),
    (
        check_rooms,
        "replay/holdfast/replay/report/x.py",
        "from holdfast.replay.analyse import queries",
    ),
    (check_rooms, "replay/holdfast/replay/analyse/x.py", "from holdfast.replay import spark"),
    (check_rooms, "replay/holdfast/replay/verify/group_fold.py", "import pyspark"),
    (
        check_rooms,
        "replay/holdfast/replay/verify/sql_state.py",
        "from holdfast.coordinator import evolve",
    ),
    (check_rooms, "clients/chaos/holdfast/chaos/checkers/x.py", "from time import monotonic"),
    (check_rooms, "clients/chaos/holdfast/chaos/checkers/x.py", "from holdfast.chaos import clock"),
    (
        check_rooms,
        "clients/chaos/holdfast/chaos/evidence/x.py",
        "from holdfast.client import Member",
    ),
    (check_rooms, "clients/chaos/holdfast/chaos/evidence/x.py", "def f():\n    import subprocess"),
    (
        check_rooms,
        "clients/chaos/holdfast/chaos/evidence/log_view.py",
        "from holdfast.coordinator.replay import replay",
    ),
    (
        check_rooms,
        "clients/chaos/holdfast/chaos/evidence/x.py",
        "from holdfast.chaos.checkers.verdict import Verdict",
    ),
    (
        check_rooms,
        "clients/chaos/holdfast/chaos/history/x.py",
        "from holdfast.client import Member",
    ),
    (
        check_rooms,
        "clients/chaos/holdfast/chaos/cluster/x.py",
        "from holdfast.chaos.history.happenings import Fault",
    ),
    (
        check_rooms,
        "clients/chaos/holdfast/chaos/nemesis/x.py",
        "from holdfast.chaos.checkers import judge",
    ),
    (
        check_rooms,
        "clients/chaos/holdfast/chaos/workload/x.py",
        "from holdfast.chaos.runner.plan import Plan",
    ),
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
    (
        "clients/cli/holdfast/cli/commands/chaos.py",
        "def chaos():\n    from holdfast.chaos import judge",
    ),
    ("storage/holdfast/storage/codec/records.py", "from holdfast.v1 import events_pb2"),
    ("raft/holdfast/raft/transport/peer.py", "import grpc"),
    ("clients/cli/holdfast/cli/x.py", "def replay():\n    from holdfast.replay import report"),
    (
        "clients/python/holdfast/client/x.py",
        "from holdfast.coordinator.assignors import RangeAssignor",
    ),
    (
        "clients/python/holdfast/client/_session/x.py",
        "from holdfast.client.errors import Fenced\nfrom holdfast.v1 import group_pb2",
    ),
    ("clients/python/holdfast/client/sync/x.py", "from holdfast.client import aio"),
    ("coordinator/holdfast/coordinator/x.py", "from dataclasses import dataclass"),
    ("raft/holdfast/raft/x.py", "from .y import z"),
    (
        "clients/chaos/holdfast/chaos/checkers/replay_is_live.py",
        "from holdfast.coordinator.replay import replay",
    ),
    ("clients/chaos/holdfast/chaos/nemesis/x.py", "from holdfast.chaos.clock import boot_us"),
    ("replay/holdfast/replay/verify/hashes.py", "from pyspark.sql import functions"),
    ("replay/holdfast/replay/report/x.py", "from holdfast.replay.analyse.analysis import Analysis"),
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

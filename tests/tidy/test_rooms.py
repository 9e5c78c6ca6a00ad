"""Rooms within a package: which of them a room may know, and what none but one may import."""

import ast
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tidy.repository import ROOT, module_name, nodes, plant, sources, where
from tidy.room_order import ORDER
from tidy.test_layers import IMPURE, imports, under

Check = Callable[[Path], list[str]]
FILES_MAX = 20  # in a folder of the product, generated ones apart

PURE = ["holdfast.client._session", "holdfast.client._translate"]
STORES = {
    "lmdb": ["storage.journal", "storage.state", "storage.disk", "storage.directory"],
    "pyarrow": ["storage.segments", "replay"],
    "pysyncobj": ["raft.pysyncobj"],
    "re2": ["runtime.groups"],
    "xxhash": ["storage.segments"],
}
"""The rooms that alone know a package."""


def check_stores(root: Path) -> list[str]:
    """LMDB, Parquet, PySyncObj, RE2 and xxHash are known in their rooms alone."""
    return [
        f"{where(root, path, node)}: {module} imports {name}"
        for path in sources(root)
        for module in [module_name(root, path)]
        for name, node, _ in imports(path, module)
        if (rooms := STORES.get(name.partition(".")[0])) is not None
        and not under(module.removeprefix("holdfast."), rooms)
    ]


class Room(NamedTuple):
    """Modules, all but some of them, that never import certain names, and why not."""

    modules: list[str]
    but: list[str]
    never: list[str]
    why: str


SPARK = [
    "holdfast.replay.app",
    "holdfast.replay.spark",
    "holdfast.replay.analyse.queries",
    "holdfast.replay.stream.source",
    "holdfast.replay.stream.log_source",
    "holdfast.replay.stream.tail",
]
FOLDS = [
    "holdfast.replay.verify.group_fold",
    "holdfast.replay.verify.cluster_fold",
    "holdfast.replay.verify.consumer_entries",
    "holdfast.replay.verify.cluster_entries",
    "holdfast.replay.verify.member_entries",
    "holdfast.replay.verify.checkpoint",
]
SQL = [
    "holdfast.replay.verify.sql.state",
    "holdfast.replay.verify.sql.consumer_state",
    "holdfast.replay.verify.sql.choices",
    "holdfast.replay.verify.sql.conversions",
    "holdfast.replay.verify.sql.members",
    "holdfast.replay.verify.sql.heads",
    "holdfast.replay.verify.sql.cluster_state",
    "holdfast.replay.verify.sql.requests",
    "holdfast.replay.verify.sql.statements",
]
NOT_SQL = ["coordinator", "storage", "v1", "raft", "runtime", "replay.read", "replay.spark"]
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
        [f"holdfast.replay.stream.{name}" for name in ("sealed", "source", "served", "log_source")],
        [],
        [
            f"holdfast.replay.stream.{name}"
            for name in ("output", "watch", "watch_state", "links", "followed", "tail")
        ],
        "what a stream reads does not depend on what becomes of it",
    ),
    Room(
        SQL,
        [],
        [*(f"holdfast.{name}" for name in NOT_SQL), *FOLDS],
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
    Room(
        ["holdfast.raft"],
        ["holdfast.raft.wire"],
        ["google", "holdfast.raft.wire.peer_pb2"],
        "protobuf is lenient: what a peer sends is read in one room, strictly",
    ),
    Room(ACTORS, [], [*JUDGES, "holdfast.chaos.runner"], "who acts in a run does not judge it"),
]


def check_order(root: Path) -> list[str]:
    """A room imports only the rooms that stand below it."""
    found = []
    for path in sources(root):
        module = module_name(root, path)
        package, _, inside = module.removeprefix("holdfast.").partition(".")
        room = inside.partition(".")[0]
        if not room or package not in ORDER:  # another package, or the package's own __init__
            continue
        allowed = [room, *ORDER[package].get(room, [])]
        for name, node, _ in imports(path, module):
            target = name.removeprefix(f"holdfast.{package}.")
            if target != name and not under(target, allowed):
                found.append(f"{where(root, path, node)}: {module} imports {name}")
    return found


def check_pure(root: Path) -> list[str]:
    """The client's session and its messages: no clock, no IO, no loop, no thread, no gRPC."""
    found = []
    for path in sources(root):
        module = module_name(root, path)
        if not under(module, PURE):
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


CLASSIC_STATES = {"PREPARING", "COMPLETING", "PreparingRebalance", "CompletingRebalance"}
KNOW_THEM = [
    "holdfast.coordinator.classic",
    "holdfast.replay.verify.sql.state",  # says the rules a second time
    "holdfast.replay.verify.member_entries",  # says what that one says
    "holdfast.replay.verify.checkpoint.rows",  # says to it what they have led to
    "holdfast.replay.analyse.beginnings",  # as the timelines beside it, which follow their events
    "holdfast.replay.generate.classic_clients",  # plays clients, who do next what a state asks for
    "holdfast.client._translate.call_arguments",  # the words of a filter; it has no server's code
    *JUDGES,
]


def check_classic_states(root: Path) -> list[str]:
    """What only a classic group can be in is named with its rules: generic code asks the type."""
    return [
        f"{where(root, path, node)}: {module_name(root, path)} names {text}"
        for path in sources(root)
        if not under(module_name(root, path), KNOW_THEM)
        for node in nodes(path)
        if isinstance(node, ast.expr)
        for text in [getattr(node, "id", getattr(node, "attr", getattr(node, "value", "")))]
        if isinstance(text, str) and text in CLASSIC_STATES
    ]


KNOW_BODIES = [
    "holdfast.coordinator.classic",
    "holdfast.coordinator.consumer",
    "holdfast.coordinator.kernel.group_types",  # makes a new group's
    "holdfast.coordinator.kernel.conversion",  # makes a group of one type of one of the other
    "holdfast.coordinator.kernel.conversion_fold",  # the same
    "holdfast.storage.codec",  # stores it, by the class that the type names
    "holdfast.replay.verify.group_fold",  # says what `sql.state` says, which knows the rules
    "holdfast.replay.verify.consumer_entries",  # says what `sql.consumer_state` says
    "holdfast.replay.verify.member_entries",  # says what `sql.members` and `sql.heads` say
    "holdfast.replay.verify.checkpoint.rows",  # the same, of what lies before a log
    "holdfast.replay.verify.checkpoint.consumer_rows",  # as this one
    "holdfast.replay.analyse.beginnings",  # as the timelines beside it, which know the events
]


def check_bodies(root: Path) -> list[str]:
    """A group's body is its type's own: generic code asks the type (`groups.group_type`)."""
    return [
        f"{where(root, path, node)}: {module_name(root, path)} looks into a group's body"
        for path in sources(root)
        if not under(module_name(root, path), KNOW_BODIES)
        for node in nodes(path)
        if isinstance(node, ast.Attribute) and node.attr == "body"
    ]


def check_folders(root: Path) -> list[str]:
    """Find folders with more files than a reader takes in; generated ones do not count."""
    files = Counter(str(path.parent.relative_to(root)) for path in sources(root))
    return [f"{name}: {count} files" for name, count in sorted(files.items()) if count > FILES_MAX]


CHECKS = [
    check_order,
    check_pure,
    check_stores,
    check_rooms,
    check_classic_states,
    check_bodies,
    check_folders,
]
_REPLAY = "from holdfast.coordinator.kernel.apply import replay"
BAD = [
    (check_stores, "storage/holdfast/storage/segments/x.py", "import lmdb"),
    (check_stores, "server/holdfast/server/translate/x.py", "import re2"),
    (check_stores, "storage/holdfast/storage/state/x.py", "from pyarrow import parquet"),
    (check_stores, "raft/holdfast/raft/core/x.py", "import pysyncobj.syncobj"),
    (
        check_order,
        "clients/python/holdfast/client/_session/x.py",
        "from holdfast.client._rpc.clock import boot_ms",
    ),
    (
        check_order,
        "clients/python/holdfast/client/_rpc/x.py",
        "if TYPE_CHECKING:\n    from holdfast.client.aio.member import Member",
    ),
    (
        check_order,
        "clients/python/holdfast/client/aio/x.py",
        "from holdfast.client import sync",
    ),
    (
        check_order,
        "clients/python/holdfast/client/sync/x.py",
        "from holdfast.client import Tls",
    ),
    (check_pure, "clients/python/holdfast/client/_session/x.py", "import asyncio"),
    (check_pure, "clients/python/holdfast/client/_session/x.py", "from time import time"),
    (check_pure, "clients/python/holdfast/client/_translate/x.py", "import grpc.aio"),
    (
        check_pure,
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
        "replay/holdfast/replay/verify/sql/state.py",
        "from holdfast.coordinator import evolve",
    ),
    (
        check_rooms,
        "replay/holdfast/replay/verify/sql/conversions.py",
        "from holdfast.coordinator.kernel import conversion_fold",
    ),
    (
        check_rooms,
        "replay/holdfast/replay/verify/sql/choices.py",
        "from holdfast.coordinator.consumer.client_side import folds",
    ),
    (
        check_rooms,
        "replay/holdfast/replay/verify/sql/consumer_state.py",
        "from holdfast.coordinator.consumer import state",
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
        "from holdfast.coordinator.kernel.apply import replay",
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
    (check_rooms, "raft/holdfast/raft/core/x.py", "from google.protobuf import message"),
    (
        check_rooms,
        "raft/holdfast/raft/transport/x.py",
        "from holdfast.raft.wire import peer_pb2",
    ),
    (check_bodies, "coordinator/holdfast/coordinator/offsets/x.py", "n = len(group.body.members)"),
    (check_bodies, "server/holdfast/server/rpc/x.py", "leader = state.groups[g].body.leader"),
    (check_classic_states, "runtime/holdfast/runtime/x.py", 'S = "CompletingRebalance"'),
    (check_classic_states, "coordinator/holdfast/coordinator/offsets/x.py", "s = t.PREPARING"),
    (
        check_order,
        "raft/holdfast/raft/core/x.py",
        "from holdfast.raft.pysyncobj.overlay import Overlay",
    ),
    (
        check_order,
        "runtime/holdfast/runtime/time/x.py",
        "from holdfast.runtime.groups.actors import Actors",
    ),
    (
        check_order,
        "server/holdfast/server/translate/x.py",
        "from holdfast.server.rpc.group_service import GroupService",
    ),
    (
        check_order,
        "coordinator/holdfast/coordinator/classic/x.py",
        "from holdfast.coordinator.offsets import commits",
    ),
    (
        check_order,
        "coordinator/holdfast/coordinator/model/x.py",
        "from holdfast.coordinator.groups.draft import Draft",
    ),
    (
        check_order,
        "coordinator/holdfast/coordinator/groups/x.py",
        "from holdfast.coordinator.classic import join",
    ),
    *(
        (
            check_order,
            f"coordinator/holdfast/coordinator/{room}/x.py",
            "from holdfast.coordinator.projections.history import Histories",
        )
        for room in sorted(ORDER["coordinator"].keys() - {"projections"})
    ),
    (check_order, "coordinator/holdfast/coordinator/projections/x.py", _REPLAY),
]
GOOD = [
    (
        "clients/python/holdfast/client/_session/x.py",
        "from holdfast.client.errors import Fenced\nfrom holdfast.v1 import group_pb2",
    ),
    ("clients/python/holdfast/client/sync/x.py", "from holdfast.client import aio"),
    ("clients/chaos/holdfast/chaos/checkers/replay_is_live.py", _REPLAY),
    ("clients/chaos/holdfast/chaos/nemesis/x.py", "from holdfast.chaos.clock import boot_us"),
    ("replay/holdfast/replay/verify/hashes.py", "from pyspark.sql import functions"),
    ("replay/holdfast/replay/report/x.py", "from holdfast.replay.analyse.analysis import Analysis"),
    (
        "coordinator/holdfast/coordinator/kernel/x.py",
        "from holdfast.coordinator.classic import join",
    ),
]


@pytest.mark.parametrize("check", CHECKS)
def test_the_repository_keeps_its_rooms(check: Check) -> None:
    assert check(ROOT) == []


@pytest.mark.parametrize(("check", "name", "text"), BAD)
def test_each_check_finds_what_it_forbids(
    check: Check, name: str, text: str, tmp_path: Path
) -> None:
    assert len(check(plant(tmp_path, {name: text}))) == 1


@pytest.mark.parametrize(("name", "text"), GOOD)
def test_what_is_allowed_passes_every_check(name: str, text: str, tmp_path: Path) -> None:
    root = plant(tmp_path, {name: text})

    assert [check(root) for check in CHECKS] == [[]] * len(CHECKS)


@pytest.mark.parametrize(("files", "found"), [(FILES_MAX, 0), (FILES_MAX + 1, 1)])
def test_a_folder_that_is_too_full_is_found(files: int, found: int, tmp_path: Path) -> None:
    names = (f"raft/holdfast/raft/core/x{number}.py" for number in range(files))

    assert len(check_folders(plant(tmp_path, dict.fromkeys(names, "")))) == found

"""A module's unit tests are found without searching: tests/unit/<package>/<room>/test_<module>.py.

A module with many tests has several files, `test_<module>_<what>.py`; what is about a whole room is
named after the room. What is about several rooms, or a whole story, stands in tests/unit/<package>.
"""

from collections import defaultdict
from pathlib import Path

import pytest

from tidy.repository import ROOT, module_name, plant, sources

UNIT = "tests/unit"
ELSEWHERE = {
    "chaos/checkers/test_total.py": "one history, spoilt in many ways, before all checkers",
    "cli/render/test_words.py": "what people and programs read, of all modules of the room",
    "client/_rpc/test_tls.py": "the files (tls_files) and the channels that are made of them",
    "client/aio/test_run_deleted_topics.py": "`Member.run` as its caller sees it: several modules",
    "client/sync/test_run_threads.py": "the same for threads",
}
"""Files that are named otherwise, and why."""


def rooms(root: Path) -> dict[str, dict[str, set[str]]]:
    """By package and room ("" is the package itself): the names of the modules in it."""
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for path in sources(root):
        if path.stem != "__init__":
            _, package, *inner, module = module_name(root, path).split(".")
            found[package]["/".join(inner)].add(module)
    return found


def check_places(root: Path, elsewhere: dict[str, str]) -> list[str]:
    """A test in a room is named after a module there, and none outside after one of a room."""
    product, found = rooms(root), []
    for path in sorted((root / UNIT).rglob("test_*.py")):
        name = str(path.relative_to(root / UNIT))
        package, *inner, _ = name.split("/")
        if package not in product or name in elsewhere:
            continue
        room, subject = "/".join(inner), path.stem.removeprefix("test_")
        if room:
            problem = _in_room(subject, {*product[package].get(room, ()), inner[-1]}, room)
        else:
            problem = _outside(subject, product[package])
        found += [f"{UNIT}/{name}: {problem}"] if problem else []
    return found + [
        f"{name} is listed and not there" for name in elsewhere if not (root / UNIT / name).exists()
    ]


def _in_room(subject: str, known: set[str], room: str) -> str:
    """Say that no module of the room has these tests, or nothing."""
    is_known = any(f"{subject}_".startswith(f"{module.rstrip('_')}_") for module in known)
    return "" if is_known else f"{room}/ has no module {subject}"


def _outside(subject: str, product: dict[str, set[str]]) -> str:
    """Say in which room the module of these tests is, or nothing."""
    places = [room for room, modules in product.items() if subject in modules]
    return "" if not places or "" in places else f"{subject} is a module of {places[0]}/"


def test_a_modules_tests_are_where_the_module_is() -> None:
    assert check_places(ROOT, ELSEWHERE) == []


PRODUCT = {
    "raft/holdfast/raft/api.py": "",
    "raft/holdfast/raft/core/lease.py": "",
    "raft/holdfast/raft/core/range_.py": "",
}


@pytest.mark.parametrize(
    "name",
    [
        "raft/core/test_leases.py",
        "raft/core/test_api.py",
        "raft/nosuch/test_lease.py",
        "raft/test_lease.py",
    ],
)
def test_a_test_in_another_place_is_found(name: str, tmp_path: Path) -> None:
    root = plant(tmp_path, {**PRODUCT, f"{UNIT}/{name}": ""})

    assert len(check_places(root, {})) == 1
    assert check_places(root, {name: "a reason"}) == []


@pytest.mark.parametrize(
    "name",
    [
        "raft/core/test_lease.py",
        "raft/core/test_lease_ends.py",
        "raft/core/test_range.py",
        "raft/core/test_core.py",
        "raft/core/lease_world.py",
        "raft/test_api.py",
        "raft/test_a_story.py",
        "demo/test_lease.py",
    ],
)
def test_a_test_in_its_place_passes(name: str, tmp_path: Path) -> None:
    assert check_places(plant(tmp_path, {**PRODUCT, f"{UNIT}/{name}": ""}), {}) == []


def test_an_exception_that_is_over_is_found(tmp_path: Path) -> None:
    assert len(check_places(plant(tmp_path, PRODUCT), {"raft/test_gone.py": "a reason"})) == 1

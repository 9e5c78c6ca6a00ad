"""The import roots: listed alike everywhere, one typed package each, stubs complete."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tidy.repository import ROOT, import_roots, plant, pyproject

Check = Callable[[Path], list[str]]
PROTO_FOLDERS = ("proto/holdfast/v1", "raft/holdfast/raft/wire")
"""As `proto/generate.py` lists them."""
MESSAGES, SERVICES = ("_pb2.py", "_pb2.pyi"), ("_pb2_grpc.py", "_pb2_grpc.pyi")


def check_lists_agree(root: Path) -> list[str]:
    """Every table of pyproject.toml that lists the import roots lists the same ones."""
    tables, roots = pyproject(root)["tool"], import_roots(root)
    packages = [f"{place}/holdfast" for place in roots]
    last = {place.rpartition("/")[2] for place in roots}
    listed = {
        "hatch wheel packages": (
            tables["hatch"]["build"]["targets"]["wheel"]["packages"],
            packages,
        ),
        "mypy mypy_path": ([p for p in tables["mypy"]["mypy_path"] if p not in EXTRA_PATHS], roots),
        "mypy files": ([p for p in tables["mypy"]["files"] if p.endswith("/holdfast")], packages),
        "ruff src": ([p for p in tables["ruff"]["src"] if p not in EXTRA_PATHS], roots),
    }
    found = [
        f"pyproject.toml: {name} is {has}" for name, (has, want) in listed.items() if has != want
    ]
    linted = len(tables["importlinter"]["root_packages"])
    return found + ([f"pyproject.toml: importlinter names {linted}"] if linted != len(last) else [])


EXTRA_PATHS = ("tests", "typings")


def check_namespace(root: Path) -> list[str]:
    """An `__init__.py` in one `holdfast/` folder would hide the packages of all other roots."""
    return [
        f"{place}/holdfast/__init__.py hides the other roots: remove it"
        for place in import_roots(root)
        if (root / place / "holdfast" / "__init__.py").exists()
    ]


def check_one_typed_package(root: Path) -> list[str]:
    """Each root holds one package, with `__init__.py` and `py.typed`."""
    found = []
    for place in import_roots(root):
        home = root / place / "holdfast"
        packages = [p for p in home.glob("*") if p.is_dir() and p.name != "__pycache__"]
        if len(packages) != 1:
            found.append(f"{place}/holdfast holds {len(packages)} packages")
        found += [
            f"{place}/holdfast/{package.name} lacks {name}"
            for package in packages
            for name in ("__init__.py", "py.typed")
            if not (package / name).exists()
        ]
    return found


def check_stubs_complete(root: Path) -> list[str]:
    """Each .proto has its stubs, and each stub its .proto. `./dev proto` compares contents."""
    found = []
    for home in (root / place for place in PROTO_FOLDERS):
        wanted = {proto.stem + end for proto in home.glob("*.proto") for end in stubs_of(proto)}
        present = {path.name for path in home.glob("*_pb2*") if path.suffix in {".py", ".pyi"}}
        found += [f"{name} is missing: ./dev proto" for name in sorted(wanted - present)]
        found += [f"{name} has no .proto: remove it" for name in sorted(present - wanted)]
    return found


def stubs_of(proto: Path) -> tuple[str, ...]:
    serves = re.search(r"^service ", proto.read_text(), flags=re.MULTILINE)
    return MESSAGES + SERVICES if serves else MESSAGES


def check_proto_folders(root: Path) -> list[str]:
    """A .proto file in another folder would have no stubs."""
    return [
        f"{path.relative_to(root)}: proto/generate.py does not know its folder"
        for place in import_roots(root)
        for path in sorted((root / place / "holdfast").rglob("*.proto"))
        if str(path.parent.relative_to(root)) not in PROTO_FOLDERS
    ]


CHECKS = [
    check_proto_folders,
    check_lists_agree,
    check_namespace,
    check_one_typed_package,
    check_stubs_complete,
]
PACKAGES = {"clients/python": "client", "clients/chaos": "chaos", "clients/cli": "cli"}
"""The others are called as their folder."""
WHOLE = {
    f"{place}/holdfast/{PACKAGES.get(place, place)}/{name}": ""
    for place in import_roots(ROOT)
    for name in ("__init__.py", "py.typed")
}


@pytest.mark.parametrize("check", CHECKS)
def test_the_repository_keeps_its_roots(check: Check) -> None:
    assert check(ROOT) == []


@pytest.mark.parametrize("check", CHECKS)
def test_a_whole_tree_passes(check: Check, tmp_path: Path) -> None:
    assert check(plant(tmp_path, WHOLE)) == []


@pytest.mark.parametrize(
    ("check", "extra"),
    [
        (check_namespace, "raft/holdfast/__init__.py"),
        (check_one_typed_package, "raft/holdfast/second/x.py"),
        (check_proto_folders, "storage/holdfast/storage/x.proto"),
        (check_stubs_complete, "proto/holdfast/v1/gone_pb2.py"),
        (check_stubs_complete, "raft/holdfast/raft/wire/gone_pb2.py"),
    ],
)
def test_a_file_too_many_is_found(check: Check, extra: str, tmp_path: Path) -> None:
    assert check(plant(tmp_path, {**WHOLE, extra: ""})) != []


def test_a_stub_too_few_is_found(tmp_path: Path) -> None:
    """Messages alone need two stubs, a service two more."""
    home = "proto/holdfast/v1"
    files = {f"{home}/a.proto": "message A {}\n", f"{home}/b.proto": "service B {}\n"}
    files |= {f"{home}/{name}{end}": "" for name in "ab" for end in MESSAGES}

    assert check_stubs_complete(plant(tmp_path, files)) == [
        f"b{end} is missing: ./dev proto" for end in SERVICES
    ]


def test_a_package_without_types_is_found(tmp_path: Path) -> None:
    files = {name: text for name, text in WHOLE.items() if name != "raft/holdfast/raft/py.typed"}

    assert check_one_typed_package(plant(tmp_path, files)) == ["raft/holdfast/raft lacks py.typed"]


@pytest.mark.parametrize(
    "line", ['    "raft/holdfast",\n', '    "raft",\n', '    "holdfast.raft",\n']
)
def test_a_list_that_lacks_a_root_is_found(line: str, tmp_path: Path) -> None:
    plant(tmp_path, WHOLE)
    whole = (tmp_path / "pyproject.toml").read_text()
    assert line in whole

    (tmp_path / "pyproject.toml").write_text(whole.replace(line, "", 1))

    assert check_lists_agree(tmp_path) != []

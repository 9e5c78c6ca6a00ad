"""What users install: the wheel is whole, its bare form is the light client, [cli] the command."""

import re
import shutil
import subprocess
import sys
import zipfile
from email.message import Message
from email.parser import Parser
from importlib.util import find_spec
from pathlib import Path

import pytest

from tidy.repository import ROOT, import_roots

# grpcio and protobuf with their own requirements: all that `pip install holdfast` brings.
LIGHT = ["grpc", "google", "typing_extensions"]
DESCRIBES = "deploy/pypi/describe.py"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from a copy, so that nothing is left behind in the tree."""
    copy, out = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("wheel")
    (copy / DESCRIBES).parent.mkdir(parents=True)
    for name in ("pyproject.toml", "README.md", "LICENSE", DESCRIBES):
        shutil.copy(ROOT / name, copy / name)
    for place in import_roots(ROOT):
        shutil.copytree(ROOT / place / "holdfast", copy / place / "holdfast")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
    subprocess.run(command, cwd=copy, check=True, capture_output=True)
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def light(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a site folder as the bare install leaves it: our wheel, grpcio and protobuf."""
    return site_folder(wheel, tmp_path_factory.mktemp("light"), LIGHT)


@pytest.fixture(scope="module")
def command(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a site folder as [cli] leaves it: what the bare install brings, and Click."""
    return site_folder(wheel, tmp_path_factory.mktemp("command"), [*LIGHT, "click"])


def site_folder(wheel: Path, site: Path, packages: list[str]) -> Path:
    """Unpack the wheel, and link packages that are installed here beside it."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    for name in packages:
        spec = find_spec(name)
        assert spec is not None, f"{name} is not installed here"
        found = Path(next(iter(spec.submodule_search_locations or [spec.origin or ""])))
        (site / found.name).symlink_to(found)
    return site


def run_light(site: Path, code: str) -> subprocess.CompletedProcess[str]:
    """Run code that sees the site folder and the standard library, and no other package."""
    program = f"import sys; sys.path.append({str(site)!r}); {code}"
    command = [sys.executable, "-I", "-S", "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_wheel_holds_every_package_typed_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    code = [name for name in names if ".dist-info/" not in name]
    typed = {name.split("/")[1] for name in code if name.endswith("/py.typed")}

    assert {name.split("/")[0] for name in code} == {"holdfast"}
    assert {name.split("/")[1] for name in code} == typed
    assert typed == {path.parent.name for path in ROOT.glob("**/holdfast/*/py.typed")}
    assert "holdfast/__init__.py" not in names


def metadata(wheel: Path) -> Message:
    archive = zipfile.ZipFile(wheel)
    (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    return Parser().parsestr(archive.read(name).decode())


def required(wheel: Path, extra: str = "") -> list[str]:
    """List what the base requires, or what an extra adds to it."""
    lines = [str(line) for line in metadata(wheel).get_all("Requires-Dist") or []]
    mark = f"extra == '{extra}'" if extra else ""
    return [line for line in lines if (mark in line if extra else "extra ==" not in line)]


def test_the_base_requires_grpcio_and_protobuf_only(wheel: Path) -> None:
    base = required(wheel)

    assert {re.split(r"[<>=! ]", line)[0] for line in base} == {"grpcio", "protobuf"}
    assert not [line for line in base if "<" in line], "the client sets no ceiling"
    assert metadata(wheel)["License-Expression"] == "Apache-2.0"


def test_the_command_adds_click_alone_and_a_node_all_of_the_command(wheel: Path) -> None:
    (click,) = required(wheel, "cli")

    assert click.startswith("click")
    assert "<" not in click, "nor does the command set a ceiling"
    assert any(line.startswith("click") for line in required(wheel, "server"))


def test_the_client_imports_in_a_bare_install(light: Path) -> None:
    done = run_light(light, "import holdfast.client as c; print(*c.__all__)")

    assert done.returncode == 0, done.stderr
    assert "Member" in done.stdout.split()


def test_the_command_without_its_extra_says_how_to_install_it(light: Path) -> None:
    done = run_light(light, "from holdfast.cli.entry import main; main()")

    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert "pip install 'holdfast[cli]'" in done.stderr


def run_command(site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command there, without patience for nodes that are not there."""
    connect = "from holdfast.cli import connect; connect.UNCONNECTED_MS = 0; "
    program = f"sys.argv[1:] = {words!r}; from holdfast.cli.entry import main; main()"
    return run_light(site, (connect if "--address" in words else "") + program)


@pytest.mark.parametrize(
    "words",
    [("group", "describe", "g"), ("log", "tail"), ("topic", "list"), ("node", "remove", "n")],
)
def test_who_asks_a_cluster_needs_the_command_alone(command: Path, words: tuple[str, ...]) -> None:
    done = run_command(command, *words, "--address", "127.0.0.1:1")

    assert done.returncode == 3, done.stderr
    assert "nobody listens" in done.stderr


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (("node", "--config", "node.toml"), "server"),
        (("cluster", "start", "--dir", "nowhere"), "server"),
        (("log", "verify", "--node-dir", "."), "server"),
        (("log", "publish", "--node-dir", ".", "--to", "."), "publish"),
        (("replay", "verify", "--node-dir", "."), "spark"),
    ],
)
def test_a_command_that_needs_more_names_its_extra(
    command: Path, words: tuple[str, ...], extra: str
) -> None:
    done = run_command(command, *words)

    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert f"pip install 'holdfast[{extra}]'" in done.stderr

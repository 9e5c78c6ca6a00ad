"""What users install: the wheel is whole, and its bare form is the light client alone."""

import re
import shutil
import subprocess
import sys
import zipfile
from email.parser import Parser
from importlib.util import find_spec
from pathlib import Path

import pytest

from tidy.repository import ROOT, import_roots

# grpcio and protobuf with their own requirements: all that `pip install holdfast` brings.
LIGHT = ["grpc", "google", "typing_extensions"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from a copy, so that nothing is left behind in the tree."""
    copy, out = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
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
    site = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    for name in LIGHT:
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


def test_the_base_requires_grpcio_and_protobuf_only(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    fields = Parser().parsestr(archive.read(name).decode())
    base = [line for line in fields.get_all("Requires-Dist") or [] if "extra ==" not in line]

    assert {re.split(r"[<>=! ]", line)[0] for line in base} == {"grpcio", "protobuf"}
    assert not [line for line in base if "<" in line], "the client sets no ceiling"
    assert fields["License-Expression"] == "Apache-2.0"


def test_the_client_imports_in_a_bare_install(light: Path) -> None:
    done = run_light(light, "import holdfast.client as c; print(*c.__all__)")

    assert done.returncode == 0, done.stderr
    assert "Member" in done.stdout.split()


def test_the_command_without_its_extra_says_how_to_install_it(light: Path) -> None:
    done = run_light(light, "from holdfast.cli.entry import main; main()")

    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert "pip install 'holdfast[server]'" in done.stderr

"""The Debian package: what lies where, what its scripts do, and that its command runs.

Made by deploy/debian/build.py and dpkg-deb, without a package index: the wheel is not accompanied
by what it requires, so nothing here shows which versions a package would hold.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tidy.repository import ROOT

DEBIAN = ROOT / "deploy" / "debian"
SYSTEM_PYTHON = Path("/usr/bin/python3")
MAINTAINER = "Nobody <nobody@example.org>"


def _lacks() -> str:
    missing = [name for name in ("dpkg-deb", "md5sum") if shutil.which(name) is None]
    if not SYSTEM_PYTHON.exists():
        missing.append(str(SYSTEM_PYTHON))
    return ", ".join(missing)


pytestmark = pytest.mark.slow
needs_dpkg = pytest.mark.skipif(bool(_lacks()), reason=f"not on this machine: {_lacks()}")


def run(*command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(each) for each in command],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    command = (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out))
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (made,) = out.glob("*.whl")
    return made


def build(wheel: Path, out: Path, *options: str) -> subprocess.CompletedProcess[str]:
    alone = {"PIP_NO_DEPS": "1", "PIP_NO_INDEX": "1", "PYTHONPATH": ""}
    given = (str(wheel), "--maintainer", MAINTAINER, "--out", str(out), *options)
    return run(sys.executable, DEBIAN / "build.py", *given, **alone)


@pytest.fixture(scope="module")
def package(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    done = build(wheel, tmp_path_factory.mktemp("deb"))
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())


@pytest.fixture(scope="module")
def unpacked(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("root")
    assert run("dpkg-deb", "-x", package, root).returncode == 0
    return root


def field(package: Path, name: str) -> str:
    return run("dpkg-deb", "--field", package, name).stdout.strip()


@needs_dpkg
def test_everything_lies_where_debian_expects_it(unpacked: Path) -> None:
    files = {str(path.relative_to(unpacked)) for path in unpacked.rglob("*") if not path.is_dir()}
    ours = {name for name in files if not name.startswith("usr/lib/holdfast/")}

    assert ours == {
        "usr/bin/holdfast",
        "usr/lib/systemd/system/holdfast.service",
        "usr/lib/sysusers.d/holdfast.conf",
        "usr/lib/tmpfiles.d/holdfast.conf",
        "usr/share/doc/holdfast/changelog.gz",
        "usr/share/doc/holdfast/copyright",
        "usr/share/doc/holdfast/examples/node.toml",
    }
    assert "usr/lib/holdfast/bin/holdfast" in files


@needs_dpkg
def test_all_belongs_to_root_and_anybody_may_read_it(package: Path) -> None:
    lines = run("dpkg-deb", "--contents", package).stdout.splitlines()

    assert {line.split()[1] for line in lines} == {"root/root"}
    assert {line[:10] for line in lines} == {"drwxr-xr-x", "-rw-r--r--", "-rwxr-xr-x", "lrwxrwxrwx"}


@needs_dpkg
def test_nothing_names_the_folder_that_it_was_made_in(unpacked: Path) -> None:
    """Scripts, settings of the environment and compiled modules name /usr/lib/holdfast."""
    holding = [
        path
        for path in unpacked.rglob("*")
        if path.is_file() and not path.is_symlink() and b"/tmp/" in path.read_bytes()[:4096]
    ]
    script = (unpacked / "usr/lib/holdfast/bin/holdfast").read_text()

    assert [path for path in holding if path.suffix in {".pyc", ".cfg", ""}] == []
    assert script.startswith("#!/usr/lib/holdfast/bin/python")


@needs_dpkg
def test_the_command_runs_from_its_environment_and_is_compiled(unpacked: Path) -> None:
    """What the wheel requires is not in it here, so its own words for that are the answer."""
    lib = unpacked / "usr/lib/holdfast"
    (package_folder,) = lib.glob("lib/python3*/site-packages/holdfast/cli")

    done = run(lib / "bin" / "python", lib / "bin" / "holdfast", "--help", PYTHONPATH="")

    assert done.returncode == 2
    assert "pip install 'holdfast[cli]'" in done.stderr
    assert [*(package_folder / "__pycache__").glob("main.*.pyc")]


@needs_dpkg
def test_it_says_what_it_is_and_which_python_it_needs(package: Path, wheel: Path) -> None:
    version = wheel.name.split("-")[1]

    assert field(package, "Version") == f"{version}-1"
    assert field(package, "Maintainer") == MAINTAINER
    assert re.match(r"python3\.\d+, ", field(package, "Depends"))
    assert int(field(package, "Installed-Size")) > 0


@needs_dpkg
@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("holdfast-0.2.0-py3-none-any.whl", "0.2.0-1"),
        ("holdfast-0.2.0rc1-py3-none-any.whl", "0.2.0~rc1-1"),
        ("holdfast-0.2.0.dev3-cp311-cp311-linux_x86_64.whl", "0.2.0~.dev3-1"),
    ],
)
def test_debian_compares_versions_as_python_does(name: str, version: str, tmp_path: Path) -> None:
    (tmp_path / name).touch()
    code = (
        f"import sys; sys.path.insert(0, {str(DEBIAN)!r}); import build, pathlib; "
        f"print(build.debian_version(pathlib.Path({str(tmp_path / name)!r})))"
    )

    assert run(sys.executable, "-c", code).stdout.strip() == version
    released = run("dpkg", "--compare-versions", version, "le", "0.2.0-1")
    assert released.returncode == 0


@needs_dpkg
@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (("README.md",), "is no wheel of Holdfast. Make one: ./dev wheel"),
        (("WHEEL", "--python", "/nowhere/python3"), "Name another: --python"),
    ],
)
def test_what_cannot_be_packed_is_refused(
    given: tuple[str, ...], sentence: str, wheel: Path, tmp_path: Path
) -> None:
    first, *options = given
    done = build(wheel if first == "WHEEL" else ROOT / first, tmp_path, *options)

    assert done.returncode == 1
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


# --- what systemd makes ---


@pytest.mark.skipif(shutil.which("systemd-sysusers") is None, reason="no systemd-sysusers here")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to other users")
def test_user_and_directories_are_made_and_keys_are_not_the_nodes_to_change(
    tmp_path: Path,
) -> None:
    """A node reads its configuration and cannot write it; nobody else reads either directory."""
    (tmp_path / "etc").mkdir()
    (tmp_path / "var/lib").mkdir(parents=True)
    for tool, *options in (("systemd-sysusers",), ("systemd-tmpfiles", "--create")):
        file = DEBIAN / f"{tool.removeprefix('systemd-')}.conf"
        done = run(tool, f"--root={tmp_path}", *options, file)
        assert done.returncode == 0, done.stderr
    fields = next(
        line.split(":")
        for line in (tmp_path / "etc" / "passwd").read_text().splitlines()
        if line.startswith("holdfast:")
    )
    user, group = int(fields[2]), int(fields[3])
    data, configuration = (tmp_path / place for place in ("var/lib/holdfast", "etc/holdfast"))

    assert fields[6] == "/usr/sbin/nologin"
    for place, owner in ((data, user), (configuration, 0)):
        found = place.stat()
        assert (found.st_uid, found.st_gid) == (owner, group)
        assert stat.S_IMODE(found.st_mode) == 0o750


@needs_dpkg
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze here")
def test_the_unit_of_the_package_runs_its_command(unpacked: Path, tmp_path: Path) -> None:
    unit = (unpacked / "usr/lib/systemd/system/holdfast.service").read_text()
    command = re.findall(r"^ExecStart=(\S+) ", unit, re.MULTILINE)
    (tmp_path / "holdfast.service").write_text(unit.replace(command[0], "/bin/true"))

    told = run("systemd-analyze", "verify", "--man=no", tmp_path / "holdfast.service").stderr

    assert command == ["/usr/lib/holdfast/bin/holdfast"]
    assert "/opt/" not in unit
    assert "holdfast.service" not in told, told


# --- the scripts of the package ---

FAKES = ("systemctl", "systemd-sysusers", "systemd-tmpfiles")


class Machine:
    """A machine in a folder: programs that note how they are called; a node runs there or not."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for place in ("bin", "run/systemd/system"):
            (folder / place).mkdir(parents=True)
        for name in FAKES:
            fake = folder / "bin" / name
            fake.write_text(
                f'#!/bin/sh\necho "{name} $*" >>{folder}/calls\n{self._is_active(name)}'
            )
            fake.chmod(0o755)

    def _is_active(self, name: str) -> str:
        return f'[ "$1" != is-active ] || [ -e {self.folder}/active ]\n' * (name == "systemctl")

    def node_runs(self, *, runs: bool) -> None:
        mark = self.folder / "active"
        mark.touch() if runs else mark.unlink()

    def script(self, name: str, *arguments: str) -> str:
        """Run a script of the package as dpkg does; what it said."""
        text = (DEBIAN / name).read_text().replace("/run/", f"{self.folder}/run/")
        path = f"{self.folder}/bin{os.pathsep}{os.environ['PATH']}"
        done = run("sh", "-c", text, name, *arguments, PATH=path)
        assert done.returncode == 0, done.stderr
        return done.stderr

    def calls(self) -> list[str]:
        """What the programs were told since the last look."""
        noted = self.folder / "calls"
        lines = noted.read_text().splitlines() if noted.exists() else []
        noted.unlink(missing_ok=True)
        return [line for line in lines if "is-active" not in line]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "machine")


def test_a_first_installation_makes_the_user_and_starts_nothing(machine: Machine) -> None:
    """S19: whether a cluster begins is for people to say."""
    machine.script("postinst", "configure", "")

    assert machine.calls() == [
        "systemd-sysusers holdfast.conf",
        "systemd-tmpfiles --create holdfast.conf",
        "systemctl daemon-reload",
    ]


@pytest.mark.parametrize("before", ["upgrade", "failed-upgrade"])
@pytest.mark.parametrize("after", ["configure", "abort-upgrade"])
def test_an_upgrade_stops_a_node_first_and_starts_it_again(
    machine: Machine, before: str, after: str
) -> None:
    """A running node would load modules of the other version; whether or not dpkg gives it up."""
    machine.node_runs(runs=True)
    machine.script("prerm", before, "0.2.0-1")
    assert machine.calls() == ["systemctl stop holdfast.service"]

    machine.node_runs(runs=False)
    machine.script("postinst", after, "0.1.0-1")
    assert machine.calls()[-1] == "systemctl start --no-block holdfast.service"
    machine.script("postinst", after, "0.1.0-1")
    assert "systemctl start" not in " ".join(machine.calls()), "once is enough"


def test_an_upgrade_does_not_start_a_node_that_was_stopped(machine: Machine) -> None:
    machine.script("prerm", "upgrade", "0.2.0-1")
    machine.script("postinst", "configure", "0.1.0-1")

    assert not [call for call in machine.calls() if "systemctl st" in call]


def test_a_removal_stops_the_node_and_leaves_its_data(machine: Machine) -> None:
    machine.node_runs(runs=True)
    machine.script("prerm", "remove")
    said = machine.script("postrm", "purge")

    assert machine.calls() == ["systemctl stop holdfast.service", "systemctl daemon-reload"]
    assert "/var/lib/holdfast" in said
    assert "rm " not in (DEBIAN / "postrm").read_text()


def test_without_a_running_systemd_the_scripts_go_on(machine: Machine) -> None:
    """In a container or a chroot; user and directories are made all the same."""
    (machine.folder / "run/systemd/system").rmdir()
    for name, *words in (("prerm", "remove"), ("postinst", "configure"), ("postrm", "remove")):
        machine.script(name, *words)

    assert [call.split()[0] for call in machine.calls()] == ["systemd-sysusers", "systemd-tmpfiles"]

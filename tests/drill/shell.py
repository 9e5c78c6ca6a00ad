"""Runs one page's commands in one shell, in an empty folder, and ends whatever they started.

The shell is bash with `set -euo pipefail`: the first command that fails ends the page. What a page
starts in the background stays in the shell's process group, by which it is ended. Knows no page's
meaning.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from harness.children import environment
from harness.poll import until

if TYPE_CHECKING:
    from collections.abc import Sequence

    from drill.pages import Block

END_SECONDS = 60.0
"""How long what a page left running may take to end when it is asked to."""
TOLD_MAX = 6_000
"""Characters of the output that are shown of a page that failed."""


class Ran(NamedTuple):
    """How a page ended."""

    seconds: float
    failed: Block | None
    """The block in which it ended; None: all were run."""
    output: str
    """What the commands printed; its end, if it is long."""


def run(blocks: Sequence[Block], folder: Path, seconds_max: float) -> Ran:
    """Run the blocks in an empty folder; a page that takes longer than `seconds_max` has failed."""
    began = time.monotonic()
    steps, output = folder / ".steps", folder / ".output"
    work = folder / "work"
    work.mkdir(parents=True)
    with output.open("wb") as stream:
        shell = subprocess.Popen(
            ["bash", "-c", _script(blocks, steps)],
            cwd=work,
            env=_environment(work),
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
        )
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                shell.wait(seconds_max)
        finally:
            _end(shell)
    begun = len(steps.read_text().splitlines()) if steps.exists() else 0
    failed = None if begun > len(blocks) else blocks[max(begun - 1, 0)]
    told = output.read_text(errors="replace")
    return Ran(time.monotonic() - began, failed, told[-TOLD_MAX:])


def _script(blocks: Sequence[Block], steps: Path) -> str:
    """Make one script of the blocks; each notes in `steps` that it begins, and so does the end."""
    note = f"echo step >> {shlex.quote(str(steps))}"
    parts = [f"{note}\n{block.commands}" for block in blocks]
    return "\n".join(["set -euo pipefail", *parts, note])


def _environment(home: Path) -> dict[str, str]:
    """Ours, with this checkout's `holdfast` first on PATH, and nothing of the user's own files."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return {**environment(), "PATH": path, "HOME": str(home)}


def _end(shell: subprocess.Popen[bytes]) -> None:
    """End everything in the shell's process group: it is asked first, since clusters stop so."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, TimeoutError):
            os.killpg(shell.pid, number)
            until(lambda: not _lives(shell), "what the page started ends", within_s=END_SECONDS)
    shell.wait()


def _lives(shell: subprocess.Popen[bytes]) -> bool:
    """Return whether a process of the shell's group runs; one that waits to be reaped does not."""
    shell.poll()
    return any(_group_of(path) == shell.pid for path in Path("/proc").glob("[0-9]*/stat"))


def _group_of(stat: Path) -> int:
    """Return the process group of a process; 0 if it has ended."""
    try:
        state, _parent, group = stat.read_text().rpartition(")")[2].split()[:3]
    except (OSError, ValueError):
        return 0
    return 0 if state in "ZX" else int(group)

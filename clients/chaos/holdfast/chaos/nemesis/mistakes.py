"""Mistakes of operators: each must be refused with a sentence, and do no harm.

They are a second process on a directory in use, and a node with the directory of another cluster or
of another node.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
from pathlib import Path
from typing import Final

from holdfast.chaos.cluster.target import COMMAND
from holdfast.chaos.nemesis.fault_context import FaultContext, Kind

_REFUSED: Final = 1
"""The command's exit code for what it refuses."""
_WAIT_S: Final = 60.0
_WITHOUT_TLS: Final = (r"(?m)^\[tls\]\n(?:[^\[\n].*\n|\n)*", "[tls]\ninsecure_loopback = true\n\n")
"""An edit of a node's file: another section in the place of the one with its certificate."""


async def second_process(context: FaultContext) -> None:
    """Start a second process on a directory: it must be refused, and the first goes on."""
    name, _ = await context.someone()
    file = _edited(context, name, (r"127\.0\.0\.1:\d+", "127.0.0.1:0"))
    with context.fault("second-process", name):
        await _must_be_refused(context, file, "in use")
        if not context.target.alive(name):
            context.wrong.append(f"{name} ended because a second process wanted its directory")
    file.unlink()


async def foreign_directory(context: FaultContext) -> None:
    """Start a stopped node as one of another cluster, and as another node.

    Without TLS, as its certificate would be refused before its directory is looked at.
    """
    name = await context.follower()
    other = context.target.others(name)[0]
    with context.fault("foreign-directory", name):
        await context.target.stop(name)
        cluster = _edited(context, name, (r'(?m)^id = ".*"$', 'id = "another"'), _WITHOUT_TLS)
        await _must_be_refused(context, cluster, "another cluster")
        renamed = _edited(
            context, name, (rf'(?m)^name = "{name}"$', f'name = "{other}"'), _WITHOUT_TLS
        )
        await _must_be_refused(context, renamed, "another node")
        renamed.unlink()
        await context.target.bring_back(name)


def _edited(context: FaultContext, name: str, *changes: tuple[str, str]) -> Path:
    """Copy a node's file beside it, with changes; return the copy."""
    file = context.target.directory / name / "node.toml"
    text = file.read_text()
    for pattern, value in changes:
        text = re.sub(pattern, value, text)
    copy = file.with_name("mistaken.toml")
    copy.write_text(text)
    return copy


async def _must_be_refused(context: FaultContext, file: Path, words: str) -> None:
    """Run a node that must be refused; note what it does instead."""
    process = subprocess.Popen(  # noqa: ASYNC220, S603 - waited for in a thread; our own program
        [*COMMAND, "node", "--config", str(file)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        _, said = await asyncio.to_thread(process.communicate, timeout=_WAIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        context.wrong.append(f"a node with {file} was not refused within {_WAIT_S:.0f} s")
        return
    if process.returncode != _REFUSED or words not in said:
        context.wrong.append(
            f"a node with {file} ended with code {process.returncode} and without {words!r}: {said}"
        )


KINDS = (
    Kind("second-process", "a second process on a node's directory", second_process),
    Kind(
        "foreign-directory", "a node with another cluster's directory", foreign_directory, slow=True
    ),
)

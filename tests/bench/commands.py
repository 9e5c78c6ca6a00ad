"""Runs `holdfast` as an operator would, with the program whose nodes are measured."""

from __future__ import annotations

import asyncio

from bench.nodes import OWN
from bench.rig import Bench


class CommandFailed(Exception):
    """A command ended with an error; its text is the command's."""


async def run(bench: Bench, *words: str) -> None:
    """Run `holdfast` with these words until it ends. Raises CommandFailed."""
    program = bench.program or OWN
    process = await asyncio.create_subprocess_exec(
        *program.command, *words,
        env=program.environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    _, said = await process.communicate()
    if process.returncode:
        raise CommandFailed(f"holdfast {' '.join(words[:2])}: {said.decode().strip()}")

"""What the nodes tell of their logs while the run goes on, kept for a replay of the log.

A line for each anchor, in the form of `holdfast log anchor --json`: `holdfast replay verify
--anchor` compares chain and digest with what the log leads to at each index (S3). Observes only.
"""

from __future__ import annotations

import asyncio
import json
from itertools import cycle
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.chaos.cluster.target import Target
    from holdfast.v1.admin_pb2 import LogAnchor

ANCHORS: Final = "anchors.jsonl"
_EVERY_S: Final = 2.0
"""One node is asked so often: a digest costs it what changed since its last one."""


class Anchors:
    """Asks one node after the other, and appends what each tells to a file."""

    def __init__(self, target: Target, file: Path) -> None:
        self._target, self._file = target, file
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to ask."""
        self._task = asyncio.create_task(self._ask_for_ever())

    async def stop(self) -> None:
        """Stop; raises the task's failure, once."""
        task, self._task = self._task, None
        if task is None:
            return
        task.cancel()
        (result,) = await asyncio.gather(task, return_exceptions=True)
        if isinstance(result, Exception):
            raise result

    async def _ask_for_ever(self) -> None:
        for name in cycle(self._target.names):
            await self.ask(name)
            await asyncio.sleep(_EVERY_S)

    async def ask(self, *names: str) -> None:
        """Write down what these nodes tell now; who does not answer, or has no log, tells none."""
        for name in names:
            seen = await self._target.describe(name, anchor=True)
            if seen is not None and seen.HasField("anchor"):
                self._write(json.dumps(_plain(seen.anchor)))

    def _write(self, line: str) -> None:
        with self._file.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")


def _plain(told: LogAnchor) -> dict[str, object]:
    return {
        "format": told.format,
        "cluster_id": told.cluster_id,
        "node": told.node,
        "index": told.index,
        "log_time_ms": told.log_time_ms,
        "chain": told.chain.hex(),
        "digest": told.digest.hex(),
        "version": told.version,
        "recovery_number": told.recovery_number,
    }

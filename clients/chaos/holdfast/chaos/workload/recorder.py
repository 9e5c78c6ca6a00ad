"""Records what one process sees while it runs: every call and its answer, and all else.

A line goes to the file as soon as something happened, so that a killed process leaves everything
that came before. `collect.merged` puts the files of all processes together.
Judges nothing.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Final

from holdfast.chaos.clock import boot_us
from holdfast.chaos.history.happenings import Happening, Invoked, Returned
from holdfast.chaos.history.jsonl import Writer
from holdfast.chaos.workload.messages import (
    OPERATIONS,
    Answer,
    arguments_of,
    group_of,
    operation_of,
)

if TYPE_CHECKING:
    from google.protobuf.message import Message

_CALLS_A_PROCESS: Final = 1 << 32


class Recorder:
    """Writes one file; `number` is the process's own, so that call numbers are unique."""

    def __init__(self, path: Path, number: int) -> None:
        self._writer = Writer(path)
        self._calls = itertools.count(number * _CALLS_A_PROCESS + 1)
        self._requests: set[str] = set()

    def note(self, happening: Happening) -> None:
        """Record one happening."""
        self._writer.write(happening)

    def invoked(self, who: str, request: Message) -> int | None:
        """Record that a call is sent; return its number, None if no checker looks at such calls."""
        operation = operation_of(request)
        if operation not in OPERATIONS:
            return None
        arguments, call = arguments_of(request), next(self._calls)
        request_id = arguments.get("request_id", "")
        if request_id in self._requests:
            arguments["duplicate"] = True
        elif request_id:
            self._requests.add(request_id)
        self.note(Invoked(boot_us(), call, who, operation, group_of(request), arguments))
        return call

    def returned(self, call: int | None, answer: Answer) -> None:
        """Record the answer of a call."""
        if call is not None:
            self.note(Returned(boot_us(), call, answer.outcome, answer.error, answer.result))

    def close(self) -> None:
        """Close the file; nothing more is written."""
        self._writer.close()

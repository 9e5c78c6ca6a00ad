"""The form of log lines: one line an event, `key=value` for people or JSON for programs.

Text for people goes to a `logger`, never to the replicated log. A line that a call caused
has it as `call` (method, request id): who logs it passes that in `extra`, since a context variable
would go on into timers and tasks that the call began.
"""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from typing import Final, TextIO

from holdfast.coordinator.model.text import readable, readable_json

_ESCAPED: Final = str.maketrans({"\\": "\\\\", '"': '\\"'})


class _Form(logging.Formatter):
    """The base of both forms: which values a line has."""

    def __init__(self, node: str) -> None:
        super().__init__()
        self._node = node

    def values(self, record: logging.LogRecord) -> dict[str, str]:
        """Return the line's keys and values, in their order."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        made = {
            "time": at,
            "level": record.levelname.lower(),
            "node": self._node,
            "logger": record.name.removeprefix("holdfast."),
            "message": record.getMessage(),
        }
        if call := getattr(record, "call", ""):
            made["call"] = call
        if record.exc_info:
            made["traceback"] = self.formatException(record.exc_info)
        return made


class TextForm(_Form):
    """key=value on one line; values with spaces are quoted, control characters escaped."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record as one line."""
        return " ".join(f"{key}={_quoted(value)}" for key, value in self.values(record).items())


class JsonForm(_Form):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record as one line."""
        return readable_json(self.values(record))


def _quoted(value: str) -> str:
    plain = value and value == readable(value) and not any(c in ' "=\\' for c in value)
    return value if plain else f'"{readable(value.translate(_ESCAPED))}"'


def configure(node: str, level: str, form: str, stream: TextIO = sys.stderr) -> None:
    """Send every logger's lines to `stream`, in the form and from the level configured."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonForm(node) if form == "json" else TextForm(node))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())

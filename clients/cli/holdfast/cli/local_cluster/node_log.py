"""The `node.log` of a local node: its last line, and its last warning."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path
    from typing import IO

NAME: Final = "node.log"
_GRAVE: Final = {"warning", "error", "critical"}
_VALUES: Final = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|\S*)')
"""A line for people, as `holdfast.server.process.logs.TextForm` writes it."""
_ESCAPED: Final = re.compile(r'\\(["\\])')


class NodeLog:
    """The log of one node, as far as a start needs it."""

    def __init__(self, folder: Path) -> None:
        """`folder`: the node's folder in the cluster's directory."""
        self.path = folder / NAME
        self._began = 0

    def begin(self) -> IO[bytes]:
        """Open it for a new process; lines before this are of earlier processes."""
        log = self.path.open("ab")
        self._began = log.tell()
        return log

    def last_words(self) -> str:
        """Return the last line."""
        lines = self._lines(0)
        return lines[-1].removeprefix("holdfast: ") if lines else "it left no word"

    def last_warning(self) -> str:
        """Return the message of the last warning or alarm since `begin`; empty if none."""
        for line in reversed(self._lines(self._began)):
            values = _values(line)
            if values.get("level") in _GRAVE:
                return values.get("message", "")
        return ""

    def _lines(self, start: int) -> list[str]:
        with suppress(OSError), self.path.open("rb") as log:
            log.seek(start)
            return log.read().decode(errors="replace").splitlines()
        return []


def _values(line: str) -> dict[str, str]:
    """Parse a line in either form; returns nothing if it is no line of the logger."""
    with suppress(ValueError):
        found = json.loads(line)
        return {str(k): str(v) for k, v in found.items()} if isinstance(found, dict) else {}
    return {key: _unquoted(value) for key, value in _VALUES.findall(line)}


def _unquoted(value: str) -> str:
    return _ESCAPED.sub(r"\1", value[1:-1]) if value.startswith('"') else value

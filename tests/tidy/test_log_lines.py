"""A line of the log that a call causes says which call: `extra=` at every logger of their path."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tidy.repository import ROOT, plant, where

SERVER = "server/holdfast/server"
PLACES = (
    "server/holdfast/server/rpc",
    "server/holdfast/server/access/dry_run.py",
    "server/holdfast/server/process/token_door.py",
    "runtime/holdfast/runtime/groups/actor.py",
)
"""Where calls are admitted, served and decided."""
LEVELS = {"debug", "info", "warning", "error", "exception", "critical"}
OF_NO_CALL = {
    "server/holdfast/server/rpc/takeovers.py": "takeovers before this moment are not counted: %s",
    "server/holdfast/server/rpc/session/sessions.py": "a stream failed inside",
    "server/holdfast/server/rpc/ordered_stream.py": "a stream failed inside",
    f"{SERVER}/access/dry_run.py": "dry run: %d more calls like these would be refused",
    f"{SERVER}/process/token_door.py": "a call on the port for tokens was refused: %s%s",
}
"""Lines about a whole stream, about many calls, or about the node: no request id belongs to them. A
call without a good token is refused before its message is read."""


def check_log_lines(root: Path) -> list[str]:
    """Each call of a logger passes `extra`, or is listed as a line that no single call causes."""
    return [
        f"{where(root, path, line)}: pass extra=named(…) or told(…), so that the line has "
        "the method and the request id of the call"
        for path in _files(root)
        for line in _log_lines(path)
        if not any(keyword.arg == "extra" for keyword in line.keywords)
        and _text(line) != OF_NO_CALL.get(str(path.relative_to(root)))
    ]


def _files(root: Path) -> Iterator[Path]:
    for place in PLACES:
        if (root / place).is_dir():
            yield from sorted((root / place).rglob("*.py"))
        elif (root / place).is_file():
            yield root / place


def _log_lines(path: Path) -> Iterator[ast.Call]:
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        of = node.func.value
        if isinstance(of, ast.Name) and of.id == "logger" and node.func.attr in LEVELS:
            yield node


def _text(line: ast.Call) -> object:
    return line.args[0].value if isinstance(line.args[0], ast.Constant) else ""


def test_every_line_that_a_call_causes_names_it() -> None:
    assert check_log_lines(ROOT) == []


def test_lines_without_a_call_are_found(tmp_path: Path) -> None:
    plant(tmp_path, {"server/holdfast/server/rpc/x.py": 'logger.info("a", extra=named("m", r))\n'})
    assert check_log_lines(tmp_path) == []
    plant(tmp_path, {"server/holdfast/server/rpc/y.py": 'x = 1\nlogger.info("b")\n'})
    (told,) = check_log_lines(tmp_path)
    assert told.startswith("server/holdfast/server/rpc/y.py:2: ")

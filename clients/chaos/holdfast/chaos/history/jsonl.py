"""A history on disk: JSON lines, one happening each, its class's name under `type`.

Lines are whole or refused: a history that was damaged or written by another version proves nothing,
so reading it ends with a sentence that names the line. Knows the types of `happenings`, and no
checker.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Literal, Self, get_args, get_origin, get_type_hints

from holdfast.chaos.history.happenings import FORMAT, Began, Granted, Happening

Reader = Callable[[Any], Any]
"""Turns what JSON gave into a field's value; raises ValueError if it is none."""


class HistoryDamaged(Exception):
    """A line that is not a happening. `line` counts from 1, `why` says what is wrong with it."""

    def __init__(self, source: str, line: int, why: str) -> None:
        super().__init__(
            f"{source}, line {line}: {why}. The history cannot be judged; run it again, or cut the "
            "file before this line if what came first is all you need."
        )
        self.line = line
        self.why = why


class Writer:
    """Appends happenings to a file. Each is a whole line as soon as `write` returns."""

    def __init__(self, path: Path) -> None:
        self._lines: IO[str] = path.open("a", encoding="utf-8", buffering=1)

    def write(self, happening: Happening) -> None:
        """Append one happening. Raises TypeError for a field that JSON cannot hold."""
        self._lines.write(line_of(happening) + "\n")

    def close(self) -> None:
        """Close the file; nothing can be written any more."""
        self._lines.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def write(path: Path, history: Iterable[Happening]) -> None:
    """Write a whole history into a new file, or over an old one."""
    path.write_text("".join(line_of(each) + "\n" for each in history), encoding="utf-8")


def read(path: Path) -> list[Happening]:
    """Read a history. Raises HistoryDamaged for the first line that is not whole and in order."""
    with path.open(encoding="utf-8", errors="surrogateescape") as lines:
        return list(_read(lines, str(path)))


def _read(lines: Iterable[str], source: str) -> Iterator[Happening]:
    last_us = 0
    for number, line in enumerate(lines, 1):
        try:
            happening = happening_of(line)
        except ValueError as error:
            raise HistoryDamaged(source, number, str(error)) from error
        if happening.at_us < last_us:
            raise HistoryDamaged(source, number, f"{happening.at_us} us after {last_us} us")
        last_us = happening.at_us
        yield happening


def line_of(happening: Happening) -> str:
    """Encode a happening as a line, without its end. Equal happenings give equal lines."""
    fields = {"type": type(happening).__name__, **happening._asdict()}
    return _encode(fields)


_encode: Final = json.JSONEncoder(separators=(",", ":")).encode


def happening_of(line: str) -> Happening:
    """Read the happening of a line. Raises ValueError, with the reason, if it is none."""
    try:
        found = json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON ({error.msg}): the line may have been cut off") from error
    if not isinstance(found, dict):
        raise ValueError("not an object")  # noqa: TRY004 - damage is one kind of error here
    name = found.pop("type", None)
    if not isinstance(name, str) or name not in _READERS:
        raise ValueError(f"unknown type {name!r}")
    happening = _build(name, found)
    if isinstance(happening, Began) and happening.format != FORMAT:
        raise ValueError(f"written in format {happening.format}, this version reads {FORMAT}")
    if isinstance(happening, Granted) and len(happening.tokens) not in {
        0,
        len(happening.partitions),
    }:
        told, named = len(happening.tokens), len(happening.partitions)
        raise ValueError(f"Granted.tokens has {told} values for {named} partitions")
    return happening


def _build(name: str, found: dict[str, Any]) -> Happening:
    kind, readers = _READERS[name]
    if unknown := sorted(found.keys() - readers.keys()):
        raise ValueError(f"{name} has no field {unknown[0]!r}")
    defaults = kind._field_defaults
    values: dict[str, Any] = {}
    for field, reader in readers.items():
        if field not in found and field not in defaults:
            raise ValueError(f"{name} lacks {field!r}")
        if field in found:
            try:
                values[field] = reader(found[field])
            except ValueError as error:
                raise ValueError(f"{name}.{field} {error}") from None
    happening: Happening = kind(**values)
    return happening


def _reader_of(hint: Any) -> Reader:  # noqa: ANN401 - a type hint has no useful type
    if get_origin(hint) is tuple:
        inner = get_args(hint)
        return _row_reader(inner[0]) if inner[-1] is ... else _pair_reader(inner)
    if get_origin(hint) is Literal:
        return _choice_reader(get_args(hint))
    kind = get_origin(hint) or hint
    return _plain_reader((int, float) if kind is float else (kind,), kind.__name__)


def _plain_reader(kinds: tuple[type, ...], name: str) -> Reader:
    def read_plain(value: object) -> object:
        if type(value) not in kinds:
            raise ValueError(f"is {value!r}, not of type {name}")
        return value

    return read_plain


def _choice_reader(choices: tuple[Any, ...]) -> Reader:
    def read_choice(value: object) -> object:
        if value not in choices:
            raise ValueError(f"is {value!r}, not one of {', '.join(map(str, choices))}")
        return value

    return read_choice


def _row_reader(inner: Any) -> Reader:  # noqa: ANN401 - a type hint has no useful type
    each = _reader_of(inner)

    def read_row(value: object) -> object:
        if not isinstance(value, list):
            raise ValueError(f"is {value!r}, not a list")  # noqa: TRY004 - one kind of error
        return tuple(each(one) for one in value)

    return read_row


def _pair_reader(inner: tuple[Any, ...]) -> Reader:
    readers = [_reader_of(hint) for hint in inner]

    def read_pair(value: object) -> object:
        if not isinstance(value, list) or len(value) != len(readers):
            raise ValueError(f"has {value!r} in place of {len(readers)} values")
        return tuple(reader(one) for reader, one in zip(readers, value, strict=True))

    return read_pair


def _readers(kind: Any) -> dict[str, Reader]:  # noqa: ANN401 - one of the happenings' classes
    hints = get_type_hints(kind)
    return {field: _reader_of(hints[field]) for field in kind._fields}


_READERS: Final = {kind.__name__: (kind, _readers(kind)) for kind in get_args(Happening)}

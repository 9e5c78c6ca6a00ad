"""Text that callers gave, and spans of time, where people read them. Pure.

A name, a reason or a line of metadata may hold anything: a terminal obeys escape sequences, and the
controls of Unicode's bidirectional algorithm and its line separators show a text as another one.
Such characters are written as escapes. JSON has escapes of its own, so there the text stays
exact.
"""

from __future__ import annotations

import json
from itertools import chain
from typing import Final

OBEYED: Final = tuple(
    chain(
        range(0x20),  # C0
        range(0x7F, 0xA0),  # DEL and C1, NEL among them
        (0x061C, 0x200E, 0x200F),  # marks of direction
        range(0x2028, 0x202F),  # line and paragraph separator; embeddings and overrides
        range(0x2066, 0x206A),  # isolates
    )
)
"""Code points that are not shown but obeyed."""

_BYTE_MAX: Final = 0xFF
_SHORT: Final = {ord("\t"): r"\t", ord("\n"): r"\n", ord("\r"): r"\r"}
_ESCAPES: Final = {
    point: _SHORT.get(point, f"\\x{point:02x}" if point <= _BYTE_MAX else f"\\u{point:04x}")
    for point in OBEYED
}
_JSON_ESCAPES: Final = {point: f"\\u{point:04x}" for point in OBEYED if point >= ord("\x7f")}
"""JSON's own writer escapes C0; a line break outside of its texts is layout."""

WHOLE_MAX: Final = 512
"""Characters of the longest name that anything can have, a group's: its flaw may be its last."""
CUT_TO: Final = 40
"""Characters that are shown of a longer one."""

_UNITS: Final = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))
"""Milliseconds of each unit, the largest first."""
_FEW_SECONDS_MS: Final = 10_000


def truncate(name: str) -> str:
    """Return the name, or its beginning if it is too long to name anything."""
    return name if len(name) <= WHOLE_MAX else name[:CUT_TO] + "…"


def readable(text: str) -> str:
    """Put the text on one line; escape, as Python does, what a terminal would obey. Idempotent."""
    return text.translate(_ESCAPES)


def readable_json(content: object, indent: int | None = None) -> str:
    """Encode content as JSON that a terminal can show; a reader of JSON gets it back exactly."""
    return json.dumps(content, indent=indent, ensure_ascii=False).translate(_JSON_ESCAPES)


def span(for_ms: int) -> str:
    """Format a duration in the largest unit that fits and the next smaller one: `3 h 5 min`."""
    if for_ms < _UNITS[-1][0]:
        return f"{max(0, for_ms)} ms"
    if for_ms < _FEW_SECONDS_MS:
        return f"{for_ms / 1000:.1f} s"
    for place, (size, unit) in enumerate(_UNITS):
        if for_ms >= size:
            rest = for_ms % size
            return f"{for_ms // size} {unit}" + _smaller(rest, place + 1)
    raise AssertionError(for_ms)  # a second and more always fits one of the units


def _smaller(rest_ms: int, place: int) -> str:
    if place == len(_UNITS):
        return ""
    size, unit = _UNITS[place]
    return f" {rest_ms // size} {unit}" if rest_ms >= size else ""

"""Text that callers gave, where people read it. Pure.

A name, a reason or a line of metadata may hold anything: a terminal obeys escape sequences, and the
controls of Unicode's bidirectional algorithm and its line separators show a text as another one.
What would be obeyed is written as an escape. JSON has escapes of its own, so there the text stays
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


def readable(text: str) -> str:
    """The text on one line, as Python would write what a terminal would obey. Idempotent."""
    return text.translate(_ESCAPES)


def readable_json(content: object, indent: int | None = None) -> str:
    """The content as JSON that a terminal can show; a reader of JSON gets it back exactly."""
    return json.dumps(content, indent=indent, ensure_ascii=False).translate(_JSON_ESCAPES)

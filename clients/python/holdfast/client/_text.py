"""Text for errors and logs: abbreviates long values, escapes what a terminal interprets.

A leaf: knows nothing else of the client.
"""

from __future__ import annotations

from typing import Final

_WHOLE_MAX: Final = 260
"""Characters up to which a value is shown whole: valid names and addresses are shorter."""
_BEGINNING: Final = 40


def abbreviate(value: object) -> str:
    """Write a value as Python does; of a long one only the beginning and its length."""
    if isinstance(value, str | bytes):
        whole, beginning = len(value) <= _WHOLE_MAX, repr(value[:_BEGINNING])
        return repr(value) if whole else f"{beginning}... ({len(value)} characters)"
    text = repr(value)
    if len(text) <= _WHOLE_MAX:
        return text
    return f"{text[:_BEGINNING]}... ({len(text)} characters)"


_OBEYED: Final = (
    *range(0x20),
    *range(0x7F, 0xA0),
    *(0x061C, 0x200E, 0x200F),
    *range(0x2028, 0x202F),
    *range(0x2066, 0x206A),
)
_ESCAPES: Final = {point: repr(chr(point))[1:-1] for point in _OBEYED}


def readable(text: str) -> str:
    """Escape a text of the service's: one line, without what a terminal interprets.

    A copy of coordinator/model/text.py, which a client without a server does not have.
    """
    return text.translate(_ESCAPES)

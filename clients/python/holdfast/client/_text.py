"""Text for errors and logs: long values abbreviated, what a terminal obeys escaped.

A leaf: knows nothing else of the client.
"""

from __future__ import annotations

from typing import Final

_WHOLE_MAX: Final = 260
"""Characters: a name or an address of a length that may be is shown whole."""
_BEGINNING: Final = 40


def abbreviate(value: object) -> str:
    """The value as Python writes it; of a long one the beginning, and how long it is."""
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
    """A text of the service's, on one line and without what a terminal obeys.

    As coordinator/model/text.py has it, of which a client without a server has nothing.
    """
    return text.translate(_ESCAPES)

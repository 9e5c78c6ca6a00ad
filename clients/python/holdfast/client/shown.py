"""How an error shows what it was given: enough to know it again, and never a page of it."""

from __future__ import annotations

from typing import Final

_WHOLE_MAX: Final = 260
"""Characters: a name or an address of a length that may be is shown whole."""
_BEGINNING: Final = 40


def shown(value: object) -> str:
    """The value as Python writes it; of a long one the beginning, and how long it is."""
    if isinstance(value, str | bytes):
        whole, beginning = len(value) <= _WHOLE_MAX, repr(value[:_BEGINNING])
        return repr(value) if whole else f"{beginning}... ({len(value)} characters)"
    text = repr(value)
    if len(text) <= _WHOLE_MAX:
        return text
    return f"{text[:_BEGINNING]}... ({len(text)} characters)"

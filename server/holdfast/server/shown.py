"""How much of a name stands in a sentence. Pure."""

from __future__ import annotations

from typing import Final

WHOLE_MAX: Final = 512
"""Characters of the longest name that anything can have, a group's: its flaw may be its last."""
CUT_TO: Final = 40


def shown(name: str) -> str:
    """The name, or how it begins where it is too long to name anything."""
    return name if len(name) <= WHOLE_MAX else name[:CUT_TO] + "…"

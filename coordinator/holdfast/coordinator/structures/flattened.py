"""How a class declares that its fields are stored among those of the value that holds it.

Some fields always go together, so the core keeps them in a value of its own; but on the log and in
the state they stand among the fields of the event or the record that holds the value, by the same
names. The class declares that itself, and the codec asks. Knows no such class.
"""

from __future__ import annotations

from typing import Final, TypeVar

T = TypeVar("T")

_MARK: Final = "_is_flattened"


def flattened(kind: type[T]) -> type[T]:
    """Declare that values of a NamedTuple are written as fields of what holds them."""
    setattr(kind, _MARK, True)
    return kind


def is_flattened(kind: object) -> bool:
    """Return whether a class has declared that."""
    return getattr(kind, _MARK, False)

"""A history that several checkers read, with the results of passes over it.

Most checkers begin with the same few passes over everything: all calls, all records, by when what
was committed. `judge` hands out `Evidence`, in which each such pass is made once. A plain sequence
is searched each time. Knows no invariant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, Self, TypeAlias, TypeVar

from holdfast.chaos.history.happenings import Happening

T = TypeVar("T")

Search: TypeAlias = Callable[[Iterable[Happening]], T]
"""Something that is found in a history, and depends on nothing else."""


class Evidence(tuple[Happening, ...]):  # noqa: SLOT001 - a tuple can have none beside its items
    """A whole history that will not change any more, with what has been found in it."""

    found: dict[Any, Any]

    def __new__(cls, history: Iterable[Happening]) -> Self:
        """Make a copy with the same happenings, in the same order."""
        evidence = super().__new__(cls, history)
        evidence.found = {}
        return evidence


def memo(search: Search[T]) -> Search[T]:
    """Search an `Evidence` only the first time; callers must not change what was found."""

    @wraps(search)
    def found_in(history: Iterable[Happening]) -> T:
        if not isinstance(history, Evidence):
            return search(history)
        if search not in history.found:
            history.found[search] = search(history)
        kept: T = history.found[search]
        return kept

    return found_in

"""A persistent map while an entry changes it: changes are collected, and put into the map at once.

An entry changes many values, some of them several times; the map copies a way down to each of its
leaves for every change that is made alone. Changes are open until they are kept or dropped, so that
what fails half-way leaves no trace (S6). Knows nothing of what it holds.
"""

from __future__ import annotations

from typing import Any, Final, Generic, TypeVar

from holdfast.coordinator.structures.pmap import PMap

K = TypeVar("K")
V = TypeVar("V")

_UNCHANGED: Final[Any] = object()


class Transient(Generic[K, V]):
    """A map under change. None stands for a key that is not there."""

    __slots__ = ("_base", "_kept", "_open")

    def __init__(self, base: PMap[K, V]) -> None:
        self._base = base
        self._kept: dict[K, V | None] = {}
        self._open: dict[K, V | None] = {}

    def get(self, key: K) -> V | None:
        """Return the value with all changes, the open ones as well."""
        found: V | None = self._open.get(key, _UNCHANGED)
        if found is _UNCHANGED:
            found = self._kept.get(key, _UNCHANGED)
            if found is _UNCHANGED:
                found = self._base.get(key)
        return found

    def set(self, key: K, value: V | None) -> None:
        """Bind a key; None removes it."""
        self._open[key] = value

    def keep(self) -> None:
        """Make the open changes part of what `persistent` returns."""
        self._kept.update(self._open)
        self._open.clear()

    def drop(self) -> None:
        """Forget the open changes."""
        self._open.clear()

    def persistent(self) -> PMap[K, V]:
        """Return the map with every kept change; each of its nodes is copied once at most."""
        return self._base.changed(self._kept) if self._kept else self._base

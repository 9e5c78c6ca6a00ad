"""The callbacks that a replica calls when its log moves on, in the order of registration.

A callback is called in the loop, between two items of the log; it must not block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.coordinator.model.events import Record


class Callbacks:
    """Four lists of callbacks, and a method that calls each list."""

    def __init__(self) -> None:
        self._on_leading: list[Callable[[int], None]] = []
        self._on_not_leading: list[Callable[[], None]] = []
        self._on_applied: list[Callable[[Sequence[Record], int], None]] = []
        self._on_stopped: list[Callable[[str], None]] = []

    def subscribe(
        self,
        *,
        on_leading: Callable[[int], None] | None = None,
        on_not_leading: Callable[[], None] | None = None,
        on_applied: Callable[[Sequence[Record], int], None] | None = None,
        on_stopped: Callable[[str], None] | None = None,
    ) -> None:
        """Register the given callbacks (`ports.ReplicaLike.subscribe`)."""
        self._on_leading += [on_leading] if on_leading else []
        self._on_not_leading += [on_not_leading] if on_not_leading else []
        self._on_applied += [on_applied] if on_applied else []
        self._on_stopped += [on_stopped] if on_stopped else []

    def leading(self, term: int) -> None:
        """Tell that this node leads, and that its state holds everything committed before."""
        for each in self._on_leading:
            each(term)

    def not_leading(self) -> None:
        """Tell that this node no longer leads: nothing decided here may be answered any more."""
        for each in self._on_not_leading:
            each()

    def applied(self, records: Sequence[Record], index: int) -> None:
        """Tell that these records are part of the state now, which reflects entry `index`."""
        for each in self._on_applied:
            each(records, index)

    def stopped(self, reason: str) -> None:
        """Tell that the node's log stopped, and why; the process should end."""
        for each in self._on_stopped:
            each(reason)

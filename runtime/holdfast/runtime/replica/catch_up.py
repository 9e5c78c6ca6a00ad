"""Whether a node that was started knows again all that it may have told before (S4).

What a process has applied and shown, its successor has on disk, but it does not know at once how
far that was committed. It knows when a leader has told it, and it has applied that far.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.runtime.ports import ReplicaLike


class CatchUp:
    """Looks until the node has caught up; once it has, that stays so until the process ends."""

    def __init__(self, replica: ReplicaLike) -> None:
        """Listen to the replica: a node that leads has applied an entry of its own term."""
        self._replica, self._is_done = replica, False
        replica.subscribe(on_leading=self._on_leading)

    def _on_leading(self, term: int) -> None:
        del term
        self._is_done = True

    def is_done(self) -> bool:
        """Return whether the state reflects all that was committed before the process began."""
        if not self._is_done:
            index = self._replica.status().catch_up_index
            self._is_done = index is not None and self._replica.state.applied_index >= index
        return self._is_done

"""Commits whose outcome is unknown: under which identity each was sent.

A commit speaks for the generation in which the work was done. Sent again under another identity it
would pass a fence: its partitions may have another owner by now. So a retry goes out as the first
did, and is answered from what was done, or refused. Knows no messages. No IO, no clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from holdfast.client._session.session_io import Identity

KEPT_MAX: Final = 256
"""So many are remembered; who does not repeat a commit does not need it."""


class UnknownCommits:
    """Identities by request id."""

    def __init__(self) -> None:
        self._sent: dict[str, Identity] = {}

    def identity_of(self, request_id: str | None) -> Identity | None:
        """Return the identity of a commit whose outcome is unknown; None for any other."""
        return self._sent.get(request_id or "")

    def keep(self, request_id: str, identity: Identity) -> None:
        """Keep the identity of one whose outcome is unknown."""
        self._sent.pop(request_id, None)
        self._sent[request_id] = identity
        while len(self._sent) > KEPT_MAX:
            del self._sent[next(iter(self._sent))]

    def answered(self, request_id: str) -> None:
        """Forget one that was answered."""
        self._sent.pop(request_id, None)

"""Decide whether a call is retried, and how it ends: the retry rule of S5, for every call.

A retry repeats the same request, so its request id makes it safe. Without an id, only reads, calls
that certainly did not happen, and changes that count once by what they name are retried. Knows no
node and sends nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.client._rpc.clock import boot_ms, left_ms
from holdfast.client._session.session_io import FailureKind
from holdfast.client.errors import OutcomeUnknown, Unavailable

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from holdfast.client._session.session_io import Failure
    from holdfast.client.errors import HoldfastError

_READS = (
    *("Describe", "List", "Find", "OffsetFetch", "Read", "Watch"),
    *("BeginBackup", "EndBackup"),  # what they make and drop is a copy for their reader alone
)
_DONE_BY_NAME = ("AddNode", "PromoteNode", "RemoveNode")
"""Changes of which the service answers that they are done already, however often they are asked."""


class Retries:
    """The attempts of one call, until its time is over.

    `connect_timeout_ms`: its time while no node accepts a connection; None: as otherwise.
    `answered_max`: how many attempts in a row may end with a node's own failure, which is that it
    has no room or fails inside; None: as many as the time allows.
    """

    def __init__(
        self,
        request: Message,
        timeout_ms: int,
        connect_timeout_ms: int | None = None,
        answered_max: int | None = None,
    ) -> None:
        self._request = request
        self._timeout_ms = timeout_ms
        self._connect_timeout_ms = timeout_ms if connect_timeout_ms is None else connect_timeout_ms
        self._answered_max = answered_max
        self._unknown: OutcomeUnknown | None = None
        self.begin()

    def begin(self) -> None:
        """Start the call's time, or start it over: a stream that goes on has answered."""
        self._began_ms = boot_ms()
        self._answered = 0

    @property
    def left_ms(self) -> int:
        """Return the ms that an attempt may take."""
        return left_ms(self._began_ms + self._timeout_ms)

    def pause_ms(self, failure: Failure, *, nobody: bool = False) -> int:
        """Return the ms to wait after this failure; `nobody`: no node accepts a connection.

        Raises the call's error if it is not retried.
        """
        if failure.kind is FailureKind.FATAL:
            raise failure.error
        if isinstance(failure.error, OutcomeUnknown):
            self._unknown = failure.error
        may_retry = self._unknown is None or is_repeatable(self._request)
        most_ms = self._connect_timeout_ms if nobody else self._timeout_ms
        late = self._began_ms + most_ms - boot_ms() <= failure.retry_in_ms
        if not may_retry or late or self._has_its_answer(failure.error):
            raise (None if is_read(self._request) else self._unknown) or failure.error
        return failure.retry_in_ms

    def _has_its_answer(self, error: HoldfastError) -> bool:
        """Count a node's own failures in a row; return whether there are enough of them."""
        answered = isinstance(error, Unavailable | OutcomeUnknown) and error.answered
        self._answered = self._answered + 1 if answered else 0
        return self._answered == self._answered_max


def request_id_of(request: Any) -> str:  # noqa: ANN401 - any request of the contract
    """Return the id that makes a repetition safe; empty if the request has none."""
    request_id: str = request.holdfast.request_id
    return request_id


def is_repeatable(request: Message) -> bool:
    """Return whether a repetition is harmless: by its request id, or by what it does."""
    named = type(request).__name__.startswith(_DONE_BY_NAME)
    return named or is_read(request) or bool(request_id_of(request))


def is_read(request: Message) -> bool:
    """Return whether the request changes nothing, so that it has no outcome to be unknown."""
    return type(request).__name__.startswith(_READS)

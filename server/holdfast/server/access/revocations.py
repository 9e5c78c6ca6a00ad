"""Refuses revoked certificates: each call asks here, and what is open ends when the event applies.

It reads the list of the newest applied state. A node that is behind lets a certificate in until it
has applied the event; changes are decided by the leader, so they see the newest list. Knows
fingerprints; no message, and no rule of who may do what.
"""

from __future__ import annotations

import asyncio
import logging
from time import monotonic
from typing import TYPE_CHECKING, Final

import grpc

from holdfast.coordinator.model.events import RevocationsChanged
from holdfast.coordinator.model.text import truncate
from holdfast.server.rpc.errors import CallFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from holdfast.coordinator.model.access import Fingerprint, Revocation
    from holdfast.coordinator.model.events import Record
    from holdfast.coordinator.model.state import State
    from holdfast.coordinator.structures.pmap import PMap
    from holdfast.runtime.errors import Outcome
    from holdfast.runtime.ports import ReplicaLike
    from holdfast.server.rpc.callers import Callers, Context

    EndWhere = Callable[[Callable[[Context], CallFailed | None]], int]
    Refuse = Callable[[frozenset[Fingerprint]], None]

logger = logging.getLogger(__name__)

AGAIN_S: Final = 60.0
"""Seconds until the log tells again that the same certificate was refused."""
LOOK_S: Final = 2.0
"""Seconds between looks at the state: one that was installed from a peer brings no events."""
NAMED_MAX: Final = 3
"""Certificates that one line of the log names."""


class Revocations:
    """The revoked certificates, as this node has applied them. The loop's thread only."""

    def __init__(
        self,
        state: Callable[[], State],
        callers: Callers,
        end_where: EndWhere,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """`state`: gives the newest applied state. `end_where`: ends calls that are open."""
        self._state, self._callers, self._end_where = state, callers, end_where
        self._clock = clock
        self._seen: object = None
        self._refuse: Refuse = lambda _: None
        self._told: dict[Fingerprint, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def start(self, refuse: Refuse) -> None:
        """Begin to look by the clock, too. `refuse`: has the peer port refuse certificates."""
        self._refuse, self._seen = refuse, None
        self._tick()

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _tick(self) -> None:
        self.look()
        self._timer = asyncio.get_running_loop().call_later(LOOK_S, self._tick)

    def check(self, context: Context) -> None:
        """Raise CallFailed if the caller shows a revoked certificate."""
        revocations = self._state().revocations
        if not revocations:
            return
        found = _found(revocations, self._callers.fingerprints(context))
        if found is not None:
            self._tell(found, context)
            raise refusal(found, "not-applied")

    def problem(self, fingerprints: Iterable[Fingerprint]) -> str:
        """Say why a certificate with these is refused; "" if it is not."""
        found = _found(self._state().revocations, fingerprints)
        return "" if found is None else sentence(found)

    def look(self) -> None:
        """End what is open with a revoked certificate, if the list is another one."""
        revocations = self._state().revocations
        if revocations is self._seen:
            return
        self._seen = revocations
        self._refuse(frozenset(revocations))
        if not revocations:
            return

        def why(context: Context) -> CallFailed | None:
            found = _found(revocations, self._callers.fingerprints(context))
            return None if found is None else refusal(found, "unknown")

        if ended := self._end_where(why):
            logger.warning("%d open calls and streams of revoked certificates were ended", ended)

    def _tell(self, revocation: Revocation, context: Context) -> None:
        """Tell that a certificate was refused, unless it was told just now."""
        now = self._clock()
        if now - self._told.get(revocation.fingerprint, -AGAIN_S) < AGAIN_S:
            return
        known = self._state().revocations
        self._told = {each: at for each, at in self._told.items() if each in known}
        self._told[revocation.fingerprint] = now
        logger.warning(
            "a call of %s by %r was refused: %s",
            context.peer(), truncate(self._callers.principal(context)), sentence(revocation),
        )  # fmt: skip

    # --- the replica's listener ---

    def listen(self, replica: ReplicaLike) -> None:
        """Subscribe to the replica."""
        replica.subscribe(on_applied=self.on_applied)

    def on_applied(self, records: Sequence[Record], index: int) -> None:
        """Log who changed the list, and end what is open, in the turn in which it was applied."""
        del index
        for record in records:
            if isinstance(record.event, RevocationsChanged):
                _tell_of(record.event, record.principal)
        self.look()


def _found(
    revocations: PMap[Fingerprint, Revocation], fingerprints: Iterable[Fingerprint]
) -> Revocation | None:
    """Return the revocation of a certificate by one of its fingerprints; None: it has none."""
    for each in fingerprints:
        if (found := revocations.get(each)) is not None:
            return found
    return None


def _tell_of(event: RevocationsChanged, by: str) -> None:
    named = [
        f"{it.fingerprint} of {truncate(it.principal)!r} ({truncate(it.reason) or 'no reason'})"
        for it in event.revoked
    ]
    for what, given in (
        ("revoked", named),
        ("accepts again, or forgets as expired,", event.lifted),
    ):
        if given:
            more = f" and {len(given) - NAMED_MAX} more" if len(given) > NAMED_MAX else ""
            logger.warning(
                "%r %s certificates: %s%s",
                truncate(by), what, ", ".join(given[:NAMED_MAX]), more,
            )  # fmt: skip


def refusal(revocation: Revocation, outcome: Outcome) -> CallFailed:
    """Make the error that ends a call; `outcome`: of what the call would change (S5)."""
    return CallFailed(
        grpc.StatusCode.UNAUTHENTICATED, sentence(revocation), outcome, repeatable=False
    )


def sentence(revocation: Revocation) -> str:
    """Tell that a certificate is revoked, why, and what to do."""
    why = f" ({truncate(revocation.reason)})" if revocation.reason else ""
    return (
        f"the certificate with the fingerprint {revocation.fingerprint} is revoked{why}. Give this "
        "client a new one (`holdfast certs renew`), or let an administrator accept it again "
        "(`holdfast certs unrevoke`)"
    )

"""Calls about revoked certificates: the list, and its changes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, cast

from holdfast.coordinator.model.access import Revocation
from holdfast.coordinator.model.commands import AlterRevocations
from holdfast.server.translate import limits
from holdfast.server.translate.refusals import code_of
from holdfast.server.translate.responses import extras as extras_of
from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import errors_pb2 as e
from holdfast.v1 import events_pb2 as ev
from holdfast.v1 import extras_pb2 as x

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.coordinator.model.access import Fingerprint
    from holdfast.coordinator.model.commands import Caller
    from holdfast.coordinator.model.replies import DoneReply
    from holdfast.coordinator.model.state import State
    from holdfast.runtime.groups.pending_calls import Answered


def described(state: State, extras: x.ResponseExtras) -> a.DescribeRevocationsResponse:
    """Show the whole list, which is bounded."""
    found = sorted(state.revocations.values())
    return a.DescribeRevocationsResponse(revocations=map(_message, found), holdfast=extras)


def own(
    request: a.AlterRevocationsRequest, fingerprints: Sequence[Fingerprint]
) -> a.AlterRevocationsResponse | None:
    """Refuse to revoke the certificate that the call is made with; None: it is not named.

    Its answer could not be told, and a slip would lock the last administrator out. `fingerprints`:
    of that certificate.
    """
    named = next((it.fingerprint for it in request.revoked if it.fingerprint in fingerprints), "")
    if not named:
        return None
    sentence = (
        f"{named} is the certificate that this call was made with. Renew it first, and call "
        "with the new one, or with that of another administrator"
    )
    return a.AlterRevocationsResponse(
        error_code=e.ERROR_CODE_INVALID_REQUEST, holdfast=x.ResponseExtras(message=sentence)
    )


def command(request: a.AlterRevocationsRequest, caller: Caller) -> AlterRevocations:
    """Translate AlterRevocations to its command."""
    return AlterRevocations(
        caller,
        tuple(map(_revocation, request.revoked)),
        tuple(limits.text("lifted", each) for each in request.lifted),
        time.time_ns() // 1_000_000,
    )


def _revocation(given: ev.Revocation) -> Revocation:
    return Revocation(
        limits.text("revoked", given.fingerprint),
        limits.text("revoked", given.principal),
        given.expires_ms,
        limits.text("revoked", given.reason),
    )


def altered(got: Answered) -> a.AlterRevocationsResponse:
    """Make the response of AlterRevocations."""
    error = cast("DoneReply", got.reply).error
    return a.AlterRevocationsResponse(error_code=code_of(error), holdfast=extras_of(error))


def _message(each: Revocation) -> ev.Revocation:
    return ev.Revocation(
        fingerprint=each.fingerprint,
        principal=each.principal,
        expires_ms=each.expires_ms,
        reason=each.reason,
        revoked_ms=each.revoked_ms,
    )

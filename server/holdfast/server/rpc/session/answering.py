"""The answer to a call of a Session stream, as bytes: its response, or the status that it ended in.

Whatever happens in a call, it gets an answer. Neither reads nor writes a stream.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from holdfast.runtime.errors import Crashed
from holdfast.server.metrics.call_counts import UNKNOWN, code_of
from holdfast.server.rpc.callers import has_code, named, refusal
from holdfast.server.rpc.errors import ENDED, Refused, ending
from holdfast.server.translate.session_answers import STATUS, encoded_answer, status_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.server.metrics.call_counts import CallCounts
    from holdfast.server.rpc.errors import Ended
    from holdfast.server.rpc.session.open_calls import OpenCall

logger = logging.getLogger(__name__)


async def answer(one: OpenCall, counts: CallCounts, who: Callable[[], str]) -> bytes:
    """Encode the answer to a call that is done, and count it; `who`: reads the principal."""
    try:
        return await _response(one, counts, who)
    except ENDED as error:
        return _ended(one, error, counts)
    except Exception:
        logger.exception("a call failed inside", extra=told(one))
        return _ended(one, crashed(one), counts)


async def _response(one: OpenCall, counts: CallCounts, who: Callable[[], str]) -> bytes:
    """Encode the response of a call; raises what it ended with instead."""
    if isinstance(one.made, Exception):
        raise one.made
    if one.kind is not None and one.made is not None:
        _count(one, counts, code_of(one.made))
        return encoded_answer(one.number, one.kind.field, one.made)
    if one.kind is None or one.call is None:
        raise RuntimeError(f"call {one.number} was taken for done and has no answer")
    got = one.call.future.result()
    made = one.kind.response(one.request, got, await one.kind.results(got.reply))
    one.kind.name_caller(made, who)
    _count(one, counts, code_of(made))
    return encoded_answer(one.number, one.kind.field, made)


def _count(one: OpenCall, counts: CallCounts, code: int | str) -> None:
    """Note and count how a call ended, and end its trace."""
    counts.of(one.kind.method if one.kind else UNKNOWN)[code] += 1
    one.code = code
    one.traced(code)


def _ended(one: OpenCall, error: Ended, counts: CallCounts) -> bytes:
    """Encode the end of a call: a response with a code where it has one, as unary, or a status."""
    told, kind = ending(error), one.kind
    if kind is not None and isinstance(told, Refused) and has_code(kind.respond):
        _count(one, counts, told.code)
        return encoded_answer(one.number, kind.field, refusal(kind.respond, told))
    _count(one, counts, told.status.name)
    return encoded_answer(one.number, STATUS, status_of(told))


def told(one: OpenCall) -> dict[str, str]:
    """Return what a log line says of this call."""
    return named(one.kind.method if one.kind else UNKNOWN, one.request)


def crashed(one: OpenCall) -> Crashed:
    """Make the end of a call that failed inside."""
    return Crashed(f"a {one.kind.field}" if one.kind else "a call")

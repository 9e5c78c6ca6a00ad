"""The answer to a call of a Session stream, as bytes: its response, or the status that it ended in.

Whatever happens in a call, it gets an answer. Neither reads nor writes a stream.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from holdfast.runtime.errors import Crashed
from holdfast.server.rpc.callers import has_code, refusal
from holdfast.server.rpc.errors import ENDED, Refused, ending
from holdfast.server.translate.session_answers import STATUS, encoded_answer, status_of

if TYPE_CHECKING:
    from holdfast.server.rpc.errors import Ended
    from holdfast.server.rpc.session.open_calls import OpenCall

logger = logging.getLogger(__name__)


async def answer(one: OpenCall) -> bytes:
    """Encode the answer to a call that is done."""
    try:
        return await _response(one)
    except ENDED as error:
        return _ended(one, error)
    except Exception:
        logger.exception("a call failed inside")
        return _ended(one, crashed(one))


async def _response(one: OpenCall) -> bytes:
    """Encode the response of a call; raises what it ended with instead."""
    if isinstance(one.made, Exception):
        raise one.made
    if one.kind is not None and one.made is not None:
        return encoded_answer(one.number, one.kind.field, one.made)
    if one.kind is None or one.call is None:
        raise RuntimeError(f"call {one.number} was taken for done and has no answer")
    got = one.call.future.result()
    made = one.kind.response(one.request, got, await one.kind.results(got.reply))
    return encoded_answer(one.number, one.kind.field, made)


def _ended(one: OpenCall, error: Ended) -> bytes:
    """Encode the end of a call: a response with a code where it has one, as unary, or a status."""
    told, kind = ending(error), one.kind
    if kind is not None and isinstance(told, Refused) and has_code(kind.respond):
        return encoded_answer(one.number, kind.field, refusal(kind.respond, told))
    return encoded_answer(one.number, STATUS, status_of(told))


def crashed(one: OpenCall) -> Crashed:
    """Make the end of a call that failed inside."""
    return Crashed(f"a {one.kind.field}" if one.kind else "a call")

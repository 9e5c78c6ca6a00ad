"""Counts calls by method and code. In the path of each call, so it does no more than add one."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import grpc

from holdfast.v1 import errors_pb2 as e

if TYPE_CHECKING:
    from collections.abc import Iterator

Codes: TypeAlias = "Counter[int | str]"
"""Counts of one method: by the number of an error code of ours, or by the name of a status."""

_STATUSES: Final = {status.value[0]: status.name for status in grpc.StatusCode}
_PREFIX: Final = "ERROR_CODE_"
UNKNOWN: Final = "UNKNOWN"
_CODED: Final[dict[type, bool]] = {}
"""Whether the responses of a class have an error code."""


class CallCounts:
    """The counts of all methods of a node."""

    def __init__(self) -> None:
        self._methods: dict[str, Codes] = {}

    def of(self, method: str) -> Codes:
        """Return the counts of a method, to be kept and added to."""
        codes = self._methods.get(method)
        if codes is None:
            codes = self._methods[method] = Counter()
        return codes

    def rows(self) -> Iterator[tuple[str, str, int]]:
        """Yield method, name of the code and count."""
        for method, codes in sorted(self._methods.items()):
            for name, count in sorted((name_of(code), count) for code, count in codes.items()):
                yield method, name, count


def code_of(answer: Any) -> int:  # noqa: ANN401 - any response, encoded or not
    """Return the top-level error code of a response; 0 if it has none.

    Asked once for each class: to find that a message lacks a field takes protobuf 3 microseconds,
    and the answer to a commit has no code of its own.
    """
    kind = type(answer)
    coded = _CODED.get(kind)
    if coded is None:
        coded = _CODED[kind] = hasattr(answer, "error_code")
    return answer.error_code if coded else 0


def status_of(error: BaseException, context: Any) -> str:  # noqa: ANN401 - gRPC's context
    """Return the name of the gRPC status with which a call ends that raised this."""
    if isinstance(error, asyncio.CancelledError):
        return grpc.StatusCode.CANCELLED.name
    code = context.code()
    return _STATUSES.get(getattr(code, "value", (code,))[0], UNKNOWN)


def name_of(code: int | str) -> str:
    """Return a code's name for people: `NONE`, `REBALANCE_IN_PROGRESS`, `UNAVAILABLE`."""
    if isinstance(code, str):
        return code
    known = e.ErrorCode.DESCRIPTOR.values_by_number.get(code)
    return known.name.removeprefix(_PREFIX) if known else UNKNOWN

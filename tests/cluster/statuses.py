"""How a call that failed ended: its gRPC status as a value, so that tests can compare it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import grpc
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable


class Status(NamedTuple):
    """A status other than OK. `trailing`: its trailing metadata, where S5's outcome stands."""

    code: grpc.StatusCode
    details: str
    trailing: dict[str, str]


def status_of(error: BaseException) -> Status:
    """The status that a stub's exception carries."""
    if not isinstance(error, grpc.Call):
        raise error
    trailing = {str(key): str(value) for key, value in error.trailing_metadata() or ()}
    return Status(error.code(), error.details() or "", trailing)


def failed(call: Callable[[], object]) -> Status:
    """How a call fails; the test fails if it does not."""
    with pytest.raises(grpc.RpcError) as caught:
        call()
    return status_of(caught.value)

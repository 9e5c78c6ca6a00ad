"""What a caller reads of an answer, in whichever form grpcio gives it."""

from __future__ import annotations

import asyncio
from collections.abc import KeysView
from typing import TYPE_CHECKING, Any

import grpc.aio
import pytest

from holdfast.client._rpc.caller import Caller
from holdfast.client._session.session_io import Failure
from holdfast.v1.errors_pb2 import ErrorCode
from holdfast.v1.extras_pb2 import ResponseExtras
from holdfast.v1.group_pb2 import HeartbeatResponse, SyncGroupResponse

if TYPE_CHECKING:
    from collections.abc import Iterable

TOLD = (("holdfast-leader", "127.0.0.1:2"), ("other-bin", b"\0"))


class OlderMetadata(grpc.aio.Metadata):
    """As grpcio 1.76 to 1.78 has it: its keys are pairs, so it is no mapping for dict()."""

    def keys(self) -> KeysView[Any]:
        return KeysView(self)  # that is the defect


@pytest.mark.parametrize(
    "trailing", [TOLD, list(TOLD), grpc.aio.Metadata(*TOLD), OlderMetadata(*TOLD)]
)
def test_the_leader_is_read_from_every_form_of_metadata(
    trailing: Iterable[tuple[str, Any]],
) -> None:
    """The floor in pyproject.toml is a promise: the forms differ between versions of grpcio."""

    async def redirected() -> str:
        caller = Caller("127.0.0.1:1")
        answer = HeartbeatResponse(error_code=ErrorCode.ERROR_CODE_NOT_COORDINATOR)
        assert isinstance(caller.read_answer("127.0.0.1:1", answer, trailing), Failure)
        await caller.close()
        return caller.endpoints.current

    assert asyncio.run(redirected()) == "127.0.0.1:2"


def test_a_node_that_accepts_no_connection_is_not_taken_for_the_leader() -> None:
    """Its followers name it until they have elected another: endpoints.py has to know."""

    async def asked_next() -> str:
        caller = Caller(["127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"])
        caller.not_connected("127.0.0.1:1")
        assert caller.endpoints.current == "127.0.0.1:2"
        answer = HeartbeatResponse(error_code=ErrorCode.ERROR_CODE_NOT_COORDINATOR)
        told = (("holdfast-leader", "127.0.0.1:1"),)
        assert isinstance(caller.read_answer("127.0.0.1:2", answer, told), Failure)
        await caller.close()
        return caller.endpoints.current

    assert asyncio.run(asked_next()) == "127.0.0.1:3"


def test_s13_a_node_from_before_a_restore_is_left_for_another() -> None:
    """Whoever has seen a token of the restored cluster takes none from an earlier one."""

    def granted(number: int) -> SyncGroupResponse:
        return SyncGroupResponse(holdfast=ResponseExtras(fencing_token=(number << 48) + 7))

    async def story() -> None:
        caller = Caller(["127.0.0.1:1", "127.0.0.1:2"])
        assert caller.read_answer("127.0.0.1:1", granted(0)) == granted(0)
        assert caller.read_answer("127.0.0.1:1", granted(2)) == granted(2)
        refused = caller.read_answer("127.0.0.1:1", granted(1))
        assert isinstance(refused, Failure)
        assert "before the cluster was restored" in str(refused.error)
        assert caller.endpoints.current == "127.0.0.1:2"
        assert caller.read_answer("127.0.0.1:2", granted(2)) == granted(2)
        await caller.close()

    asyncio.run(story())

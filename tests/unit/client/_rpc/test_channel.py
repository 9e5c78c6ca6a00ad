"""What a client's channel takes: every message that the settings allow (S7)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from holdfast.client._rpc.caller import Caller
from holdfast.client._rpc.channel import OPTIONS, Tls
from holdfast.coordinator.cluster.settings_catalogue import REGISTRY
from holdfast.server.guard.answer_size import ANSWER_BYTES_MAX
from holdfast.server.rpc.grpc_options import message_bytes_max
from holdfast.v1 import offset_pb2
from unit.client.fake_cluster import fake_cluster

if TYPE_CHECKING:
    from pathlib import Path


def test_s7_a_channel_takes_the_longest_message_that_a_node_may_send() -> None:
    longest = message_bytes_max(REGISTRY["log.entry_bytes_max"].most)

    for direction in ("receive", "send"):
        assert dict(OPTIONS)[f"grpc.max_{direction}_message_length"] == longest
    assert longest > ANSWER_BYTES_MAX


def test_s7_an_answer_above_the_default_of_the_setting_arrives() -> None:
    """A cluster may allow entries of 64 MiB: then a member's assignment may be as long."""
    long = "x" * (20 << 20)

    async def story() -> offset_pb2.OffsetFetchResponse:
        async with fake_cluster() as (group, nodes):
            group.offsets["t", 0] = (7, long)
            caller = Caller(nodes[0].address)
            try:
                return await caller.call(
                    offset_pb2.OffsetFetchRequest(), offset_pb2.OffsetFetchResponse
                )
            finally:
                await caller.close()

    answer = asyncio.run(story())
    assert answer.groups[0].topics[0].partitions[0].metadata == long


@pytest.mark.parametrize("empty", ["ca", "certificate", "key"])
def test_an_empty_file_is_an_error_and_not_the_end_of_the_process(
    tmp_path: Path, empty: str
) -> None:
    """Files are read again when they change, maybe while somebody writes them; gRPC aborts then."""
    for name in ("ca", "certificate", "key"):
        (tmp_path / name).write_bytes(b"" if name == empty else b"-----BEGIN")
    tls = Tls(*(tmp_path / name for name in ("ca", "certificate", "key")))

    with pytest.raises(ValueError, match="is empty: it is being replaced"):
        tls.credentials()

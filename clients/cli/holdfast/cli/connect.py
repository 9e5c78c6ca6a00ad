"""How a command reaches the cluster: which nodes, with which certificate, and how a call ends.

Walks the nodes and follows the leader. A call that may have happened is never repeated.
"""

from __future__ import annotations

import os
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
import grpc

from holdfast.cli.ending import UNKNOWN, fail
from holdfast.cli.patience import Patience, is_unconnected
from holdfast.cli.tls import credentials, unreached
from holdfast.coordinator.cluster.settings_catalogue import REGISTRY
from holdfast.server.config import cluster_file
from holdfast.server.config.address import parse_address
from holdfast.server.config.node_config import ConfigError, Tls
from holdfast.server.rpc.errors import LEADER_KEY, OUTCOME_KEY
from holdfast.server.rpc.grpc_options import channel_options
from holdfast.v1 import (
    admin_pb2,
    admin_pb2_grpc,
    extras_pb2,
    log_pb2_grpc,
    offset_pb2_grpc,
)
from holdfast.v1 import errors_pb2 as e

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.protobuf.message import Message

CALL_SECONDS: Final = 10.0
PAUSE_SECONDS: Final = 0.2
PAGE_SIZE: Final = 1_000
"""Groups or topics that are asked for at a time."""
_NOT_HERE: Final = {
    e.ERROR_CODE_NOT_COORDINATOR,
    e.ERROR_CODE_COORDINATOR_LOAD_IN_PROGRESS,
    e.ERROR_CODE_COORDINATOR_NOT_AVAILABLE,
}

Response = TypeVar("Response", bound="Message")


@dataclass(frozen=True, slots=True)
class Target:
    """The nodes to ask, and what to show them; `tls` None: an insecure loopback."""

    addresses: tuple[str, ...]
    tls: Tls | None
    names: tuple[str, ...] = ()
    """The nodes' names in the same order, where cluster.json says them."""

    def name_of(self, address: str) -> str:
        """A node's name, "-" if it is not known."""
        return dict(zip(self.addresses, self.names, strict=False)).get(address, "-")


def find_target(cluster: str | None, addresses: tuple[str, ...], tls: str | None) -> Target:
    """Which cluster a command is meant for; ends the command if that cannot be known.

    `addresses` and `tls` win over what cluster.json says.
    """
    given = _tls_of(Path(tls)) if tls else None
    if addresses:
        check_addresses("--address", addresses)
        return Target(addresses, given)
    path = Path(cluster or ".").absolute()
    path = path / cluster_file.NAME if path.is_dir() else path
    try:
        content = cluster_file.read(path)
    except OSError as error:
        fail(_no_cluster(path, error, named=cluster is not None))
    except ValueError as error:
        fail(str(error))
    entry = content.tls
    found = Tls(Path(entry.ca), Path(entry.certificate), Path(entry.key)) if entry else None
    names = tuple(node.name for node in content.nodes)
    return Target(tuple(node.client_address for node in content.nodes), given or found, names)


def check_addresses(source: str, addresses: tuple[str, ...]) -> None:
    """What is no address is a slip of the pen, not a node that is away. Raises UsageError."""
    for address in addresses:
        try:
            parse_address(address)
        except ValueError as error:
            raise click.UsageError(f"{source} {error}") from None


def _no_cluster(path: Path, error: OSError, *, named: bool) -> str:
    """Where was looked, why there, and how to say another place."""
    why = "" if named else " (the present directory, because none was named)"
    seen = "it is not there" if isinstance(error, FileNotFoundError) else error.strerror
    return (
        f"no running cluster: looked for {path}{why}, and {seen}. A local cluster has this file "
        "while it serves. Name its directory with --cluster DIR or HOLDFAST_CLUSTER, or its nodes "
        "with --address HOST:PORT or HOLDFAST_ADDRESS (and --tls DIR or HOLDFAST_TLS unless they "
        "run without TLS)"
    )


def _tls_of(directory: Path) -> Tls:
    return Tls(directory / "ca.pem", directory / "certificate.pem", directory / "key.pem")


class Cluster:
    """The cluster as a command sees it."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._channels: dict[str, grpc.Channel] = {}
        self.last_failure = ""
        """Why the last node that gave no answer of its own gave none; a sentence."""

    def call(self, method: str, request: Message) -> Any:  # noqa: ANN401 - the method's response
        """Call Admin- or OffsetService on the leader; a failure ends the command, told."""
        return self._walk(
            lambda stub: getattr(stub, method)(request, timeout=CALL_SECONDS), _stub_of(method)
        )

    def pages(self, method: str, request: Any) -> Any:  # noqa: ANN401 - ListGroups, ListTopics
        """As `call` for a list of any length: its pages, put together."""
        request.holdfast.page_size = PAGE_SIZE
        whole = self.call(method, request)
        while token := whole.holdfast.next_page_token:
            request.holdfast.page_token = token
            whole.holdfast.ClearField("next_page_token")
            whole.MergeFrom(self.call(method, request))
        return whole

    def change(self, method: str, request: Any) -> Any:  # noqa: ANN401 - any mutating method
        """As `call`, with a request id, so that a repetition is done once (S15)."""
        request.holdfast.request_id = new_request_id(self._log_time_ms())
        return self.call(method, request)

    def _log_time_ms(self) -> int:
        """The leader's log time: a follower of an idle cluster can only guess it (S8, S15)."""
        asked = admin_pb2.DescribeClusterRequest()
        seen = self.call("DescribeCluster", asked)
        for node in seen.nodes:
            if node.name == seen.leader != seen.node:
                seen = self._try(node.client_address, "DescribeCluster", asked) or seen
                break
        log_time_ms: int = seen.holdfast.log_time_ms
        return log_time_ms

    def on_every_node(self, method: str, request: Message) -> list[tuple[str, Any]]:
        """Each node's own answer; None where a node does not answer."""
        return [
            (address, self._try(address, method, request)) for address in self._target.addresses
        ]

    def knows_group(self, group_id: str) -> bool:
        """Whether any node knows the group, if only of old; also while there is no leader."""
        stale = extras_pb2.RequestExtras(stale_ok=True)
        asked = admin_pb2.DescribeGroupsRequest(groups=[group_id], holdfast=stale)
        seen = [one for _, one in self.on_every_node("DescribeGroups", asked) if one]
        found = [one.groups[0].error_code for one in seen if one.groups]
        return not found or any(code != e.ERROR_CODE_GROUP_ID_NOT_FOUND for code in found)

    def name_of(self, address: str) -> str:
        """A node's name by cluster.json, "-" if it is not known."""
        return self._target.name_of(address)

    @property
    def addresses(self) -> tuple[str, ...]:
        """The nodes, as they were named."""
        return self._target.addresses

    def log(self, address: str) -> log_pb2_grpc.LogServiceStub:
        """One node's LogService, which any node serves."""
        return log_pb2_grpc.LogServiceStub(self._channel(address))

    def _try(self, address: str, method: str, request: Message) -> Any:  # noqa: ANN401 - the response
        try:
            stub = admin_pb2_grpc.AdminServiceStub(self._channel(address))
            return getattr(stub, method)(request, timeout=2.0)
        except grpc.RpcError as error:
            self.last_failure = self.said(address, error)
            return None

    def said(self, address: str, error: grpc.RpcError) -> str:
        """What a node's failure means, for people."""
        assert isinstance(error, grpc.Call)  # noqa: S101 - what a stub raises is both
        words = error.details() or error.code().name
        if is_unconnected(error):
            return unreached(address, words, self._target.tls)
        return f"{address}: {words}"

    def _walk(
        self, ask: Callable[[Any], Response], stub: Callable[[grpc.Channel], Any]
    ) -> Response:
        patience = Patience(self._target.addresses)
        ring, last = list(self._target.addresses), "no node was asked"
        while True:
            address = ring.pop(0)
            ring.append(address)
            try:
                response = ask(stub(self._channel(address)))
            except grpc.RpcError as error:
                _end_unless_repeatable(error)
                last, leader = self.said(address, error), _trailing(error, LEADER_KEY)
                patience.failed(address, error)
            else:
                patience.answered(address)
                if getattr(response, "error_code", e.ERROR_CODE_NONE) not in _NOT_HERE:
                    return response
                extras: Any = getattr(response, "holdfast")  # noqa: B009 - every response has it
                last, leader = f"{address}: {extras.message}", extras.leader_hint
            patience.end_if_over("the call", last)
            if leader:
                ring = [leader, *(other for other in ring if other != leader)]
            time.sleep(PAUSE_SECONDS)

    def _channel(self, address: str) -> grpc.Channel:
        if address not in self._channels:
            try:
                self._channels[address] = self._open(address)
            except ConfigError as error:
                fail(str(error))
        return self._channels[address]

    def _open(self, address: str) -> grpc.Channel:
        options = channel_options(REGISTRY["log.entry_bytes_max"].most)
        if self._target.tls is None:
            return grpc.insecure_channel(address, options)
        # What gRPC writes of a failed handshake is told by `unreached`, with what to do.
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")
        return grpc.secure_channel(address, credentials(self._target.tls), options)


def _stub_of(method: str) -> Callable[[grpc.Channel], Any]:
    if method.startswith("Offset"):
        return offset_pb2_grpc.OffsetServiceStub
    return admin_pb2_grpc.AdminServiceStub


def _end_unless_repeatable(error: grpc.RpcError) -> None:
    """End the command, or let it ask the next node: never repeat what may have happened (S5)."""
    outcome = _trailing(error, OUTCOME_KEY)
    assert isinstance(error, grpc.Call)  # noqa: S101 - what a stub raises is both
    code, details = error.code(), error.details() or ""
    if code is not grpc.StatusCode.UNAVAILABLE or outcome == "unknown":
        if outcome == "not-applied":
            fail(details)
        if code is grpc.StatusCode.UNIMPLEMENTED:
            fail(
                f"this call is not served there ({details}): the address may be a node's peer "
                "port, while commands go to its client_address; or the node is older than this "
                "command"
            )
        fail(f"{details or code.name}. Whether it happened is unknown: look, then repeat", UNKNOWN)


def _trailing(error: grpc.RpcError, key: str) -> str:
    assert isinstance(error, grpc.Call)  # noqa: S101 - as above
    values = [value for name, value in error.trailing_metadata() or () if name == key]
    return str(values[0]) if values else ""


def code_name(code: int) -> str:
    """An error code by Kafka's name."""
    return e.ErrorCode.Name(code).removeprefix("ERROR_CODE_")  # type: ignore[arg-type]  # a plain number will do


def new_request_id(log_time_ms: int) -> str:
    """A UUIDv7 whose time part is the cluster's log time (S15)."""
    random = uuid.uuid4().int
    value = (log_time_ms & ((1 << 48) - 1)) << 80 | 0x7 << 76 | (random >> 52 & 0xFFF) << 64
    return str(uuid.UUID(int=value | 0b10 << 62 | random & ((1 << 62) - 1)))

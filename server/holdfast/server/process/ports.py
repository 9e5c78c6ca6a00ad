"""A node's ports for clients: gRPC servers that are bound, and serve nothing yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc
import grpc.aio

from holdfast.coordinator.cluster.settings_catalogue import REGISTRY
from holdfast.server.config.address import is_taken
from holdfast.server.config.node_config import CannotStart
from holdfast.server.process.open_files import connections_max
from holdfast.server.process.opening import cannot_listen
from holdfast.server.rpc.grpc_options import age_options, server_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.server.config.address import Address
    from holdfast.server.config.node_config import NodeConfig


def bind(
    config: NodeConfig,
    credentials: grpc.ServerCredentials | None,
    at: Address | None = None,
    setting: str = "node.client_address",
    interceptors: Sequence[grpc.aio.ServerInterceptor] = (),
) -> grpc.aio.Server:
    """Make a server bound to an address; raises CannotStart if that is impossible.

    `credentials` None: no TLS. `at` None: the first port. `setting`: which key of the node's file
    has the address.
    """
    at = at or config.client_address
    message = REGISTRY["log.entry_bytes_max"].most
    connections = connections_max() // (2 if config.tokens else 1)  # of two ports, each has half
    options = server_options(message, connections)
    if config.tls:
        options += age_options(config.tls.connection_age_ms)
    server = grpc.aio.server(interceptors=list(interceptors), options=options)
    try:
        if is_taken(at):  # gRPC would log lines of its own beside ours
            bound = 0
        elif credentials is None:
            bound = server.add_insecure_port(str(at))
        else:
            bound = server.add_secure_port(str(at), credentials)
    except RuntimeError:
        bound = 0
    if not bound:
        raise CannotStart(cannot_listen(at, setting))
    return server

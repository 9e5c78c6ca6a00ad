"""A server whose event loop can be held, as a process of its own: `burst_server.py ours|defaults`.

Prints its port. On standard input `h` holds the loop (nothing is taken up by Python any more, as
during a long computation), `g` lets it go, and the end of input ends the process.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

import grpc

from holdfast.coordinator.cluster.settings_catalogue import REGISTRY
from holdfast.server.rpc.grpc_options import server_options

METHOD = "/burst/Echo"
STDIN = 0


async def echo(request: bytes, context: grpc.aio.ServicerContext[Any, Any]) -> bytes:
    """Answer what was sent."""
    del context
    return request


async def serve(*, ours: bool) -> None:
    """Serve until standard input ends."""
    message = int(REGISTRY["log.entry_bytes_max"].default)
    server = grpc.aio.server(options=server_options(message) if ours else None)
    service, _, method = METHOD[1:].rpartition("/")
    handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(echo)
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(service, {method: handler}),)
    )
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(STDIN, hold, ended)
    print(port, flush=True)
    await ended.wait()
    await server.stop(0)


def hold(ended: asyncio.Event) -> None:
    """Block the loop from `h` to `g`."""
    if os.read(STDIN, 1) != b"h":
        ended.set()
        return
    print("held", flush=True)
    os.read(STDIN, 1)


if __name__ == "__main__":
    asyncio.run(serve(ours=sys.argv[1] == "ours"))

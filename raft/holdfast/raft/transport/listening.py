"""Listens on the peer port, on all addresses of its host. Knows addresses, and not who comes."""

from __future__ import annotations

import errno
import socket
from typing import Final

from holdfast.raft.transport.blocking import split_address

BACKLOG: Final = 1_024
"""Connections that the system keeps until this process takes them."""
_NO_SUCH_FAMILY: Final = {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}
_OTHER_ADDRESS: Final = "end the process that holds the port, or configure another peer_address"


class TransportFailed(Exception):
    """The peer port cannot be served."""

    def __init__(self, address: str, reason: str, remedy: str = _OTHER_ADDRESS) -> None:
        """`address` is the node's own peer address."""
        super().__init__(f"cannot listen for peers on {address}: {reason}; {remedy}")
        self.address = address


def listen(address: str) -> list[socket.socket]:
    """Listen on every address of a host, as far as the machine has its family.

    Raises TransportFailed.
    """
    host, port = split_address(address)
    listeners: list[socket.socket] = []
    failed: OSError | None = None
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, *_, place in dict.fromkeys(found):
            try:
                listeners.append(_listener(family, (str(place[0]), port)))
            except OSError as error:
                if error.errno not in _NO_SUCH_FAMILY:
                    raise
                failed = error
    except UnicodeError as error:
        raise TransportFailed(address, f"its host is no name: {error}") from error
    except OSError as error:
        failed = error
    if listeners and (failed is None or failed.errno in _NO_SUCH_FAMILY):
        return listeners
    for each in listeners:
        each.close()
    raise TransportFailed(address, str(failed)) from failed


def _listener(family: int, place: tuple[str, int]) -> socket.socket:
    """Listen; a second process on the port fails, and does not take half of the connections."""
    both = place[0] == "::" and socket.has_dualstack_ipv6()
    listener = socket.create_server(
        place, family=family, backlog=BACKLOG, reuse_port=False, dualstack_ipv6=both
    )
    listener.settimeout(0)
    return listener

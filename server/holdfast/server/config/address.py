"""Addresses as `host:port`: parse and format them, and check whether a process listens there."""

from __future__ import annotations

import errno
import ipaddress
import socket
from typing import NamedTuple

from holdfast.coordinator.model.text import truncate

PORT_MAX = 65_535


class Address(NamedTuple):
    """Where a node listens or is reached. An IPv6 host is written in brackets."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def parse_address(text: str) -> Address:
    """Read `host:port`; raises ValueError with a sentence."""
    if "/" in text:
        raise ValueError(
            f"{truncate(text)!r} is a URL or a path; write host:port, with nothing before or "
            "after it"
        )
    host, colon, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    if not colon or not host or not port.isascii() or not port.isdigit():
        raise ValueError(
            f"{truncate(text)!r} is no address; write host:port, for example 127.0.0.1:7400"
        )
    if "[" in host or "]" in host:
        raise ValueError(
            f"{truncate(text)!r} has brackets that do not pair; an IPv6 address is written as in "
            "[::1]:7400"
        )
    if int(port) > PORT_MAX:
        raise ValueError(f"{truncate(text)!r} has a port above {PORT_MAX}")
    return Address(host, int(port))


def is_taken(address: Address) -> bool:
    """Return whether somebody listens there already; other faults of the address do not count."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(address)
        except OSError as error:
            return error.errno == errno.EADDRINUSE
    return False

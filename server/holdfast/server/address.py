"""A `host:port`, read and written in one way. Knows nothing else."""

from __future__ import annotations

import ipaddress
from typing import NamedTuple

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
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isascii() or not port.isdigit():
        raise ValueError(f"{text!r} is no address; write host:port, for example 127.0.0.1:7400")
    if int(port) > PORT_MAX:
        raise ValueError(f"{text!r} has a port above {PORT_MAX}")
    return Address(host, int(port))

"""The HTTP port of a node shows the certificate that is in force when a connection comes."""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING

import pytest

from harness.poll import until_told
from holdfast.server.config.node_config import ConfigError, load
from holdfast.server.http.serving import Http
from holdfast.server.security.certificates import issue, make_authority
from unit.raft.transport.transports import free_port

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.server.config.node_config import NodeConfig


def configured(folder: Path, port: int) -> NodeConfig:
    """A node alone with certificates and an HTTP port."""
    issue(make_authority("c"), folder, "a", "holdfast://c/node/a", ["127.0.0.1"])
    (folder / "node.toml").write_text(
        '[node]\nname = "a"\ndata_dir = "data"\nclient_address = "127.0.0.1:1"\n'
        'peer_address = "127.0.0.1:2"\n[cluster]\nid = "c"\n'
        f'[http]\naddress = "127.0.0.1:{port}"\n'
        '[tls]\nca = "ca.pem"\ncertificate = "certificate.pem"\nkey = "key.pem"\n'
    )
    return load(folder / "node.toml", {}, ())


def test_new_files_are_shown_to_new_connections_and_broken_ones_never(tmp_path: Path) -> None:
    port = free_port()
    config = configured(tmp_path, port)

    async def ask() -> str:
        return await asyncio.to_thread(ssl.get_server_certificate, ("127.0.0.1", port))

    async def shows(certificate: str) -> bool:
        try:
            return await ask() == certificate
        except OSError:
            return False  # it has not begun

    def on_disk() -> str:
        return (tmp_path / "certificate.pem").read_text()

    async def story() -> None:
        async with Http(config) as http:
            http.serving()
            await until_told(lambda: shows(on_disk()), "the first certificate")
            first = on_disk()
            configured(tmp_path, port)
            assert await ask() == first
            http.renew()
            second = on_disk()
            assert await ask() == second != first
            (tmp_path / "key.pem").write_text("half")
            with pytest.raises(ConfigError, match="the HTTP port cannot use"):
                http.renew()
            assert await ask() == second

    asyncio.run(story())

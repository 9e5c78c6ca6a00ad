"""The HTTP port of a node shows the certificate that is in force when a connection comes."""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING, cast

import pytest

from harness.poll import until_told
from holdfast.raft.fingerprints import fingerprints_in
from holdfast.server.config.node_config import ConfigError, load
from holdfast.server.http.pages import Answer
from holdfast.server.http.serving import Http
from holdfast.server.security.certificates import issue, make_authority
from unit.raft.transport.transports import free_port
from unit.runtime.fake_replica import FakeReplica
from unit.server.http_calls import ask, client_context

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from holdfast.server.config.node_config import NodeConfig
    from holdfast.server.metrics.metrics import Metrics


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


class Shown:
    """Metrics that show one word."""

    async def page(self, _query: Mapping[str, str]) -> Answer:
        """Show it."""
        return Answer(200, b"metrics\n")

    async def sample(self) -> None: ...


def test_a_node_that_has_opened_its_data_refuses_revoked_certificates(tmp_path: Path) -> None:
    """ADR 31: on each request; health needs no certificate, and goes on."""
    port = free_port()
    config = configured(tmp_path, port)
    assert config.tls is not None
    client = issue(make_authority("c"), tmp_path / "client", "x", "holdfast://client/x", [])
    bundle = tmp_path / "ca.pem"
    bundle.write_bytes(bundle.read_bytes() + client.ca.read_bytes())
    revoked: dict[str, str] = {}
    context = client_context(config.tls.ca, client)

    async def story() -> None:
        async with Http(config) as http:
            http.opened(
                FakeReplica(),
                cast("Metrics", Shown()),
                must_recover=lambda: False,
                caught_up=lambda: True,
                refusal=lambda _: "",
                revoked=lambda shown: next(
                    (revoked[each] for each in shown if each in revoked), ""
                ),
            )
            http.serving()
            await until_told(lambda: answers(port), "the port answers")
            assert (await ask(port, "/metrics", context)).body == "metrics\n"
            revoked[fingerprints_in(client.certificate.read_bytes())[0]] = "it is revoked: stolen"
            told = await ask(port, "/metrics", context)
            assert (told.status, told.body) == (401, "it is revoked: stolen\n")
            assert (await ask(port, "/livez", context)).status == 200

    asyncio.run(story())


async def answers(port: int) -> bool:
    """Whether a handshake succeeds: before the port answers, nobody takes connections."""
    try:
        await asyncio.to_thread(ssl.get_server_certificate, ("127.0.0.1", port))
    except OSError:
        return False
    return True


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

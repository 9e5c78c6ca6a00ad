"""Certificates while a node runs: which files are put in force, and what is warned of."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256

from holdfast.raft.transport.peer_names import node_uri
from holdfast.raft.transport.tls import PeerTls, TlsUnusable
from holdfast.server.config.node_config import load
from holdfast.server.security.authority_folder import AuthorityFolder, create
from holdfast.server.security.certificate_facts import certificates_in
from holdfast.server.security.certificate_watch import CertificateWatch, ExpiryWarnings
from holdfast.server.security.certificates import (
    Authority,
    Party,
    certificate_pem,
    issue,
    make_authority,
)
from holdfast.server.security.credentials import Credentials, read_credentials

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from holdfast.server.config.node_config import Tls

NODE = Party("a", node_uri("c", "a"), ("127.0.0.1",))
PEERS = "".join(
    f'[cluster.peers.{name}]\nclient_address="127.0.0.1:1"\npeer_address="127.0.0.1:2"\n'
    for name in ("a", "b", "d")
)


@dataclass
class Place:
    """A directory with an authority, node a of cluster c and a client; and the node's watch."""

    directory: Path
    watch: CertificateWatch
    tls: Tls
    peers: list[PeerTls] = field(default_factory=list)
    """What the peer port was given."""

    def change(self, *steps: str) -> None:
        """Do steps of `holdfast certs`: of the authority, or a renewal."""
        for step in steps:
            authority = AuthorityFolder(self.directory)
            if step == "next":
                authority.begin_next()
            elif step == "switch":
                authority.switch()
            elif step == "finish":
                authority.finish()
            else:
                authority.renew(authority.find(self.directory / step), 365)

    def look(self) -> None:
        """Look as often as it takes to see that a change has come to rest."""
        self.watch.look()
        self.watch.look()

    @property
    def on_disk(self) -> Credentials:
        """What the files hold."""
        return read_credentials(self.tls)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    create(tmp_path, "c")
    authority = AuthorityFolder(tmp_path)
    authority.issue(tmp_path / "a", NODE, 365)
    authority.issue(tmp_path / "x", Party("x", "holdfast://client/x"), 365)
    (tmp_path / "node.toml").write_text(
        '[node]\nname = "a"\ndata_dir = "data"\nclient_address = "127.0.0.1:1"\n'
        f'peer_address = "127.0.0.1:2"\n[cluster]\nid = "c"\n{PEERS}[tls]\n'
        'ca = "a/ca.pem"\ncertificate = "a/certificate.pem"\nkey = "a/key.pem"\n'
        "accept_old_node_names = false\n"
    )
    config = load(tmp_path / "node.toml", {}, ())
    assert config.tls is not None
    made = Place(tmp_path, CertificateWatch(config, config.tls), config.tls)
    made.watch._replace_peer_tls = made.peers.append
    return made


def read_credentials_of(folder: Path) -> tuple[bytes, bytes, bytes]:
    """A client's authorities, key and certificate."""
    ca, key, certificate = (
        (folder / f"{name}.pem").read_bytes() for name in ("ca", "key", "certificate")
    )
    return ca, key, certificate


async def echo(request: bytes, _: object) -> bytes:
    """Answer with the request."""
    return request


@asynccontextmanager
async def serving(watch: CertificateWatch) -> AsyncIterator[int]:
    """A server of one method behind the watch's clients' port; its port."""
    server = grpc.aio.server()
    method: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(echo)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("t.T", {"U": method}),))
    port = server.add_secure_port("127.0.0.1:0", watch.client_port.credentials)
    await server.start()
    try:
        yield port
    finally:
        await server.stop(0)


async def answers(port: int, files: tuple[bytes, bytes, bytes]) -> bool:
    """Whether a client with these files gets an answer on a new connection."""
    credentials = grpc.ssl_channel_credentials(*files)
    async with grpc.aio.secure_channel(f"127.0.0.1:{port}", credentials) as channel:
        call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary("/t.T/U")
        try:
            return await call(b"x", timeout=10) == b"x"
        except grpc.aio.AioRpcError:
            return False


def test_a_renewed_certificate_is_put_in_force_at_both_ports(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    """And the log says which it is, by its fingerprint, and until when."""
    caplog.set_level(logging.INFO)
    before = place.watch.in_force
    place.change("a")
    place.look()
    new = place.on_disk

    assert place.watch.in_force == new != before
    assert [each.certificate for each in place.peers] == [new.certificate]
    (told,) = caplog.messages
    assert new.certificates()[0].fingerprint(SHA256()).hex() in told
    assert "valid until" in told


def test_files_in_the_middle_of_a_change_are_let_be(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    """Key and certificate are replaced one after the other: only what rests is judged."""
    before = place.watch.in_force
    old_key = (place.directory / "a/key.pem").read_bytes()
    place.change("a")
    new_key = (place.directory / "a/key.pem").read_bytes()
    (place.directory / "a/key.pem").write_bytes(old_key)
    place.watch.look()
    (place.directory / "a/key.pem").write_bytes(new_key + b"\n")
    place.watch.look()

    assert place.watch.in_force == before
    assert caplog.messages == []
    place.watch.look()
    assert place.watch.in_force == place.on_disk


@pytest.mark.parametrize(
    ("file", "content", "why"),
    [
        ("certificate.pem", b"half a cert", "not valid PEM"),
        ("key.pem", b"", "not valid PEM"),
        ("ca.pem", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "broken"),
        ("ca.pem", None, "cannot read"),
    ],
)
def test_a_broken_file_keeps_the_old_one_in_force_and_is_told_once(
    place: Place, caplog: pytest.LogCaptureFixture, file: str, content: bytes | None, why: str
) -> None:
    before, path = place.watch.in_force, place.directory / "a" / file
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    place.look()
    place.look()

    assert place.watch.in_force == before
    assert place.peers == []
    (told,) = caplog.messages
    assert why in told
    assert "stay in force" in told


def of_another_authority(place: Place) -> None:
    issue(make_authority("other"), place.directory / "o", "a", NODE.uri, NODE.hosts)
    put(place, place.directory / "o")


def of_another_node(place: Place) -> None:
    party = Party("b", node_uri("c", "b"), ("127.0.0.1",))
    AuthorityFolder(place.directory).issue(place.directory / "b", party, 365)
    put(place, place.directory / "b")


def out_of_date(place: Place) -> None:
    authority = AuthorityFolder(place.directory)
    authority.renew(authority.find(place.directory / "a"), 0)


def for_clients_alone(place: Place) -> None:
    party = Party("a", NODE.uri)
    AuthorityFolder(place.directory).issue(place.directory / "o", party, 365)
    put(place, place.directory / "o")


def behind_a_stray_certificate(place: Place) -> None:
    """The wrong intermediate: the authority knows it, and it has not signed the node's."""
    of_another_authority(place)
    with (place.directory / "a/certificate.pem").open("ab") as file:
        file.write((place.directory / "x/certificate.pem").read_bytes())


def behind_an_intermediate_that_has_ended(place: Place) -> None:
    root = AuthorityFolder(place.directory).authority
    middle = make_authority("middle")
    issue(middle, place.directory / "o", "a", NODE.uri, NODE.hosts)
    put(place, place.directory / "o")
    ended = certified(root, middle, datetime.now(UTC) - timedelta(hours=1))
    with (place.directory / "a/certificate.pem").open("ab") as file:
        file.write(certificate_pem(ended))


def of_an_authority_that_has_ended(place: Place) -> None:
    root = AuthorityFolder(place.directory).authority
    ended = certified(root, root, datetime.now(UTC) - timedelta(hours=1))
    (place.directory / "a/ca.pem").write_bytes(certificate_pem(ended))


def put(place: Place, folder: Path) -> None:
    """Put the pair of a folder in the node's."""
    for file in ("key.pem", "certificate.pem"):
        (place.directory / "a" / file).write_bytes((folder / file).read_bytes())


def certified(signer: Authority, whom: Authority, ends: datetime) -> x509.Certificate:
    """A certificate of an authority by another, that ends at a moment."""
    return (
        x509.CertificateBuilder()
        .subject_name(whom.certificate.subject)
        .issuer_name(signer.certificate.subject)
        .public_key(whom.key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(ends - timedelta(days=9))
        .not_valid_after(ends)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(signer.key, SHA256())
    )


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (for_clients_alone, "is for clients alone"),
        (behind_a_stray_certificate, "the other nodes would refuse it"),
        (behind_an_intermediate_that_has_ended, "and not now"),
        (of_an_authority_that_has_ended, "and not now"),
        (of_another_authority, "the other nodes would refuse it"),
        (of_another_node, "lacks URI:holdfast://c/node/a"),
        (out_of_date, "and not now"),
    ],
)
def test_what_others_would_refuse_is_not_put_in_force(
    place: Place, caplog: pytest.LogCaptureFixture, change: Callable[[Place], None], why: str
) -> None:
    """A slip of the hand must not cut a node off that works."""
    before = place.watch.in_force
    change(place)
    place.look()

    assert place.watch.in_force == before
    assert why in caplog.text


def test_a_chain_of_today_is_put_in_force_in_whatever_order_it_stands(place: Place) -> None:
    root, middle = AuthorityFolder(place.directory).authority, make_authority("middle")
    end = datetime.now(UTC) + timedelta(days=9)
    issuing = Authority(middle.key, certified(root, middle, end))
    issue(issuing, place.directory / "o", "a", NODE.uri, NODE.hosts)
    put(place, place.directory / "o")
    with (place.directory / "a/certificate.pem").open("ab") as file:
        for each in (root.certificate, issuing.certificate):
            file.write(certificate_pem(each))
    place.look()

    assert place.watch.in_force == place.on_disk


def test_a_port_that_refuses_them_keeps_the_old_ones(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    before = place.watch.in_force

    def refuse(_: PeerTls) -> None:
        raise TlsUnusable("a key too small")

    place.watch._replace_peer_tls = refuse
    place.change("a")
    place.look()

    assert place.watch.in_force == before
    assert "a key too small" in caplog.text


def test_an_authority_that_is_dropped_is_told(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    for step in ("next", "switch", "a", "x"):
        place.change(step)
        place.look()
    caplog.clear()
    place.change("finish")
    place.look()

    assert "CN=holdfast authority c is trusted no more" in caplog.text
    assert place.watch.in_force == place.on_disk


def test_clients_that_still_show_a_certificate_of_a_dropped_authority_are_named(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    """Their next connection is refused in the handshake, of which gRPC tells a node nothing."""
    late = (place.directory / "x/certificate.pem").read_bytes()
    for step in ("next", "switch", "a", "x"):
        place.change(step)
        place.look()
    renewed = (place.directory / "x/certificate.pem").read_bytes()
    place.watch._shown = lambda: {late, renewed}
    place.watch.name_who_is_late()
    assert "still shows" not in caplog.text
    place.change("finish")
    place.look()
    place.watch.name_who_is_late()
    place.watch.name_who_is_late()

    (told,) = [line for line in caplog.messages if "still shows" in line]
    assert "holdfast://client/x" in told
    assert certificates_in(late)[0].fingerprint(SHA256()).hex() in told


def test_the_clients_port_serves_each_new_connection_with_what_is_in_force(place: Place) -> None:
    """The authority is replaced step by step; the client of the old one is refused at the end."""

    async def story() -> list[bool]:
        async with serving(place.watch) as port:
            old = read_credentials_of(place.directory / "x")
            answered = [await answers(port, old)]
            for step in ("next", "switch", "a"):
                place.change(step)
                place.look()
                bundle = (place.directory / "x/ca.pem").read_bytes()
                answered.append(await answers(port, (bundle, *old[1:])))
            place.change("x", "finish")
            place.look()
            answered.append(await answers(port, read_credentials_of(place.directory / "x")))
            bundle = (place.directory / "x/ca.pem").read_bytes()
            return [*answered, await answers(port, (bundle, *old[1:]))]

    assert asyncio.run(story()) == [True, True, True, True, True, False]


@pytest.mark.parametrize(
    ("days", "levels"),
    [(31, []), (29, ["WARNING"]), (6, ["WARNING"]), (0.9, ["ERROR"]), (-1, ["ERROR"])],
)
def test_what_ends_soon_is_warned_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, days: float, levels: list[str]
) -> None:
    """By 30, 7 and 1 day, and when it is over; the authority of ten years is not."""
    tls = issue(make_authority("c"), tmp_path, "a", NODE.uri, NODE.hosts, days=365)
    credentials = read_credentials(tls)
    now = datetime.now(UTC) + timedelta(days=365 - days)
    warnings = ExpiryWarnings()
    warnings.look(credentials, now)
    warnings.look(credentials, now)

    assert [record.levelname for record in caplog.records] == levels
    assert ("expired" in caplog.text) == (days < 0)


def test_each_bound_is_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tls = issue(make_authority("c"), tmp_path, "a", NODE.uri, NODE.hosts, days=365)
    credentials, warnings = read_credentials(tls), ExpiryWarnings()
    for day in range(300, 370):
        warnings.look(credentials, datetime.now(UTC) + timedelta(days=day))

    assert len(caplog.records) == 4


def test_a_certificate_that_is_made_for_a_day_is_warned_of_only_when_it_has_ended(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Else every renewal of short certificates would warn, and no warning would be read."""
    tls = issue(make_authority("c"), tmp_path, "a", NODE.uri, NODE.hosts, days=1)
    credentials, warnings = read_credentials(tls), ExpiryWarnings()
    for hours in range(24):
        warnings.look(credentials, datetime.now(UTC) + timedelta(hours=hours))
    assert caplog.messages == []
    warnings.look(credentials, datetime.now(UTC) + timedelta(hours=25))

    assert "expired" in caplog.text

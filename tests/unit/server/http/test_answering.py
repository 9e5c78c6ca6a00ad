"""Who may see which path of the HTTP port, and that no request costs it more than it may."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import pytest
import uvloop
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtensionOID

from harness.twins import twin_files
from holdfast.raft.fingerprints import fingerprints_in
from holdfast.raft.transport.peer_names import node_uri, old_node_uri
from holdfast.server.config.address import Address
from holdfast.server.http import answering, port
from holdfast.server.http.answering import protocols
from holdfast.server.http.pages import Answer, Page
from holdfast.server.http.port import HttpPort, listen
from holdfast.server.security.certificates import issue, make_authority
from holdfast.server.security.http_port import http_context
from unit.server.http_calls import ask, client_context

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
    from pathlib import Path

    from holdfast.server.config.node_config import Tls
    from holdfast.server.security.certificates import Authority as CertificateAuthority
    from unit.server.http_calls import Reply

HOSTS = ["127.0.0.1", "localhost"]


class Party(NamedTuple):
    """The certificates of one cluster, and of a stranger's."""

    node: Tls
    old_node: Tls
    client: Tls
    other: Tls
    """Another client's."""
    stranger: Tls


@pytest.fixture(scope="module")
def party(tmp_path_factory: pytest.TempPathFactory) -> Party:
    place = tmp_path_factory.mktemp("certificates")
    ours, theirs = make_authority("c"), make_authority("other")
    return Party(
        issue(ours, place / "node", "node-1", node_uri("c", "node-1"), HOSTS),
        issue(ours, place / "old", "node-1", old_node_uri("node-1"), HOSTS),
        issue(ours, place / "client", "local", "holdfast://client/local", []),
        issue(ours, place / "other", "scraper", "spiffe://prod/scraper", ["scraper.example"]),
        issue(theirs, place / "stranger", "local", "holdfast://client/local", []),
    )


async def _shown(_query: Mapping[str, str]) -> Answer:
    return Answer(200, b"seen\n")


async def _broken(_query: Mapping[str, str]) -> Answer:
    raise ValueError("a defect")


async def _hanging(_query: Mapping[str, str]) -> Answer:
    never: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
    return await never


def _refused_to_all_but_local(principal: str) -> str:
    return "" if principal == "holdfast://client/local" else f"{principal} may not see this"


PAGES = {
    "/open": Page(_shown, for_all=True),
    "/closed": Page(_shown),
    "/granted": Page(_shown, refusal=_refused_to_all_but_local),
    "/broken": Page(_broken, for_all=True),
    "/hanging": Page(_hanging, for_all=True),
}


@asynccontextmanager
async def serving(
    tls: Tls | None, refused: Callable[[Iterable[str]], str] = lambda _: ""
) -> AsyncIterator[int]:
    """The pages on a port of this machine."""
    listening = listen(Address("127.0.0.1", 0))
    context = http_context(tls) if tls else None
    opened = HttpPort(listening, lambda: context)
    opened.serve(protocols(PAGES, secure=tls is not None, refused=refused))
    try:
        yield listening.getsockname()[1]
    finally:
        await opened.close()


def answer_to(
    party: Party,
    path: str,
    shown: Tls | None = None,
    *,
    method: str = "GET",
    extra: str = "",
    refused: Callable[[Iterable[str]], str] = lambda _: "",
) -> Reply:
    """The answer of a port with TLS to one request."""

    async def asked() -> Reply:
        async with serving(party.node, refused) as number:
            context = client_context(party.node.ca, shown)
            return await ask(number, path, context, method=method, extra=extra)

    return uvloop.run(asked())


def answer_without_tls(path: str) -> Reply:
    async def asked() -> Reply:
        async with serving(None) as number:
            return await ask(number, path)

    return uvloop.run(asked())


def test_a_probe_needs_no_certificate(party: Party) -> None:
    seen = answer_to(party, "/open")
    assert seen.body == "seen\n"
    assert "Server: holdfast\r\n" in f"{seen.head}\r\n"


def test_a_client_sees_everything(party: Party) -> None:
    assert answer_to(party, "/open", party.client).status == 200
    assert answer_to(party, "/closed", party.client).body == "seen\n"


@pytest.mark.parametrize("path", ["/closed", "/there-is-no-such-path"])
def test_without_a_certificate_nothing_but_health_is_told_not_even_what_there_is(
    party: Party, path: str
) -> None:
    reply = answer_to(party, path)

    assert reply.status == 401
    assert "needs a client's certificate" in reply.body
    assert "WWW-Authenticate" in reply.head  # RFC 9110 15.5.2


@pytest.mark.parametrize("kind", ["node", "old_node"])
def test_a_certificate_of_a_node_is_no_client_s(party: Party, kind: str) -> None:
    reply = answer_to(party, "/closed", getattr(party, kind))

    assert reply.status == 403
    assert "made for a client" in reply.body
    assert answer_to(party, "/open", getattr(party, kind)).status == 200


def test_a_revoked_certificate_sees_no_more_than_none(party: Party, tmp_path: Path) -> None:
    own = fingerprints_in(party.client.certificate.read_bytes())[0]
    revoked = {own: "it is revoked: stolen"}

    def refused(shown: Iterable[str]) -> str:
        return next((revoked[each] for each in shown if each in revoked), "")

    closed = answer_to(party, "/closed", party.client, refused=refused)
    assert (closed.status, closed.body) == (401, "it is revoked: stolen\n")
    twin = twin_files(party.client, tmp_path / "twin")
    assert answer_to(party, "/closed", twin, refused=refused).status == 401, "its twin neither"
    assert answer_to(party, "/open", party.client, refused=refused).status == 200
    revoked.clear()
    assert answer_to(party, "/closed", party.client, refused=refused).status == 200


def test_a_certificate_whose_names_are_no_text_ends_its_connection_without_a_line_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The library reads the names of what is shown; a client must not fill the node's log."""
    authority = make_authority("c")
    node = issue(authority, tmp_path / "node", "node-1", "holdfast://c/node/node-1", HOSTS)
    client = issue(authority, tmp_path / "client", "c", "holdfast://client/c", [])
    client.certificate.write_bytes(_with_names_of_no_text(authority, client))

    async def asked() -> None:
        async with serving(node) as number:
            with suppress(OSError, IndexError):
                await ask(number, "/open", client_context(node.ca, client))
            assert (await ask(number, "/open", client_context(node.ca))).status == 200

    uvloop.run(asked())
    assert [record.getMessage() for record in caplog.records] == []


def _with_names_of_no_text(authority: CertificateAuthority, client: Tls) -> bytes:
    """The certificate of a client whose URI is a byte that is no UTF-8."""
    shown = x509.load_pem_x509_certificate(client.certificate.read_bytes())
    names = x509.UnrecognizedExtension(
        ExtensionOID.SUBJECT_ALTERNATIVE_NAME, b"\x30\x03\x86\x01\xff"
    )
    builder = (
        x509.CertificateBuilder()
        .subject_name(shown.subject)
        .issuer_name(shown.issuer)
        .public_key(shown.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(shown.not_valid_before_utc)
        .not_valid_after(shown.not_valid_after_utc)
        .add_extension(names, critical=False)
    )
    return builder.sign(authority.key, hashes.SHA256()).public_bytes(Encoding.PEM)


def test_a_certificate_of_another_authority_gets_no_answer_at_all(party: Party) -> None:
    stranger = replace(party.stranger, ca=party.node.ca)
    for path in ("/closed", "/open"):
        with pytest.raises((ssl.SSLError, ConnectionError)):
            answer_to(party, path, stranger)


def test_on_an_insecure_loopback_nobody_needs_a_certificate() -> None:
    assert answer_without_tls("/closed").status == 200


def test_a_page_that_asks_for_a_grant_is_asked_with_the_principal_of_the_certificate(
    party: Party,
) -> None:
    """The same principal as at the client port: URI, else DNS name, else common name."""
    assert answer_to(party, "/granted", party.client).body == "seen\n"
    refused = answer_to(party, "/granted", party.other)
    assert (refused.status, refused.body) == (403, "spiffe://prod/scraper may not see this\n")
    assert answer_to(party, "/granted").status == 401


def test_on_an_insecure_loopback_a_grant_is_asked_for_anonymous() -> None:
    reply = answer_without_tls("/granted")

    assert (reply.status, reply.body) == (403, "anonymous may not see this\n")


def test_an_unknown_path_names_the_known_ones() -> None:
    reply = answer_without_tls("/x")

    assert reply.status == 404
    assert "/closed" in reply.body


def test_the_port_only_shows(party: Party) -> None:
    reply = answer_to(party, "/open", method="POST", extra="Content-Length: 5\r\n")

    assert reply.status == 405
    assert "Allow: GET, HEAD" in reply.head
    assert answer_to(party, "/open", method="HEAD").body == ""


@pytest.mark.parametrize(
    "extra",
    ["X: " + "x" * 4_096 + "\r\n", "".join(f"X-{n}: x\r\n" for n in range(200))],
    ids=["a long header", "many headers"],
)
def test_a_request_with_a_large_head_is_refused(
    party: Party, extra: str, caplog: pytest.LogCaptureFixture
) -> None:
    refused = answer_to(party, "/open", extra=extra)
    assert refused.status == 400
    assert "Server: holdfast\r\n" in refused.head, "no stranger is told what it is made of"
    assert caplog.records == []  # or strangers would fill the log


def test_a_page_that_cannot_be_made_is_told_here_and_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    reply = answer_without_tls("/broken")

    assert reply.status == 500
    assert "/broken" in reply.body
    assert [record.getMessage() for record in caplog.records] == ["making /broken failed inside"]


def test_a_page_that_waits_for_a_disk_holds_no_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(answering, "ANSWER_S_MAX", 0.05)

    assert answer_without_tls("/hanging").status == 503


def test_s9_a_handshake_that_is_not_finished_is_cut_off(
    party: Party, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(port, "LIFE_S", 0.05)

    async def begun() -> bytes:
        async with serving(party.node) as number, asyncio.timeout(30):
            reader, writer = await asyncio.open_connection("127.0.0.1", number)
            writer.write(b"\x16\x03\x01")  # the first bytes of a handshake
            try:
                return await reader.read()
            except ConnectionError:
                return b""
            finally:
                writer.close()

    ended: Coroutine[None, None, bytes] = begun()
    assert uvloop.run(ended) == b""

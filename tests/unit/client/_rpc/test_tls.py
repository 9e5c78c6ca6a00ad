"""Mutual TLS from files: who may connect, and what a refusal looks like to the caller (S5)."""

from __future__ import annotations

import asyncio
import datetime as dt
import ipaddress
import logging
import socket
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import grpc
import grpc.aio
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from harness.poll import until_told
from holdfast.client import Admin, Connection, Tls, Unavailable, aio, sync
from holdfast.client._rpc.caller import _WORDS_HOLD_MS, Caller
from holdfast.client._rpc.connect_errors import IN_CODE, Wording, explain
from holdfast.client._rpc.connectivity_log import INFO_EVERY_MS, QUIET_MS_MAX, ConnectivityLog
from holdfast.client._rpc.tls_files import _BEGIN, _END, _validity, flaw_of
from holdfast.client._session.session_io import Failure
from holdfast.v1.admin_pb2_grpc import add_AdminServiceServicer_to_server
from holdfast.v1.group_pb2 import FindCoordinatorRequest
from unit.client.fake_cluster import FakeGroup, FakeNode, said

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

ATTEMPT_MS = 5_000
"""As long as an attempt may take."""


class Issued(NamedTuple):
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate


def issue(name: str, issuer: Issued | None = None, begins: int = -1, ends: int = 1) -> Issued:
    """A certificate for 127.0.0.1, for these days; without an issuer, one that signs others."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    alternative = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if issuer is None else issuer.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + dt.timedelta(days=begins))
        .not_valid_after(now + dt.timedelta(days=ends))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        .add_extension(alternative, critical=False)
    )
    return Issued(key, builder.sign(key if issuer is None else issuer.key, hashes.SHA256()))


def pem(issued: Issued) -> tuple[bytes, bytes]:
    key = issued.key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return key, issued.certificate.public_bytes(serialization.Encoding.PEM)


def files(folder: Path, ca: Issued, issued: Issued) -> Tls:
    folder.mkdir()
    key, certificate = pem(issued)
    (folder / "ca.pem").write_bytes(pem(ca)[1])
    (folder / "key.pem").write_bytes(key)
    (folder / "certificate.pem").write_bytes(certificate)
    return Tls(folder / "ca.pem", folder / "certificate.pem", folder / "key.pem")


async def topics(ca: Issued, credentials: Tls) -> dict[str, int]:
    """What a node that wants certificates of `ca` answers to these credentials."""
    group = FakeGroup()
    server = grpc.aio.server()
    node = FakeNode(group)  # type: ignore[abstract]  # serves only what the tests call
    add_AdminServiceServicer_to_server(node, server)
    wanted = grpc.ssl_server_credentials(
        [pem(issue("node", ca))], pem(ca)[1], require_client_auth=True
    )
    port = server.add_secure_port("127.0.0.1:0", wanted)
    await server.start()
    try:
        async with Admin(f"127.0.0.1:{port}", credentials=credentials, timeout_ms=2_000) as admin:
            return await admin.list_topics()
    finally:
        await server.stop(0)


def test_files_of_the_cluster_s_ca_connect(tmp_path: Path) -> None:
    ca = issue("ca")
    credentials = files(tmp_path / "mine", ca, issue("me", ca))
    assert asyncio.run(topics(ca, credentials)) == {"t": 4}


def test_s5_a_node_of_another_ca_is_never_connected_so_nothing_happened(tmp_path: Path) -> None:
    ca, stranger = issue("ca"), issue("ca")
    credentials = files(tmp_path / "mine", stranger, issue("me", stranger))
    with pytest.raises(Unavailable, match="does not vouch for"):
        asyncio.run(topics(ca, credentials))


def test_half_a_pair_and_missing_files_are_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="both a certificate and its key"):
        Tls(tmp_path / "ca.pem", certificate=tmp_path / "c.pem").credentials()
    with pytest.raises(FileNotFoundError):
        Tls(tmp_path / "ca.pem").credentials()


def secured(ca: Issued) -> tuple[grpc.aio.Server, str]:
    """A listener that wants certificates of `ca`; it has no services, so nothing is answered."""
    server = grpc.aio.server()
    wanted = grpc.ssl_server_credentials(
        [pem(issue("node", ca))], pem(ca)[1], require_client_auth=True
    )
    return server, f"127.0.0.1:{server.add_secure_port('127.0.0.1:0', wanted)}"


@asynccontextmanager
async def caller_of(
    ca: Issued, credentials: Tls | None, address: str = ""
) -> AsyncIterator[Caller]:
    """Whoever wants to call a node of this CA, or this address."""
    server, secure = secured(ca)
    await server.start()
    caller = Caller(address or secure, credentials=credentials)
    try:
        yield caller
    finally:
        await caller.close()
        await server.stop(0)


async def refusal(caller: Caller, timeout_ms: int) -> str:
    """With what words one attempt ends that never reached a node."""
    failure = await caller.attempt(FindCoordinatorRequest(), timeout_ms)
    assert isinstance(failure, Failure)
    assert isinstance(failure.error, Unavailable)
    return str(failure.error)


async def is_told(cause: str, caller: Caller) -> None:
    """That this is told to attempts that have their time."""

    async def told() -> bool:
        return cause in await refusal(caller, ATTEMPT_MS)

    await until_told(told, cause)


def test_each_cause_of_a_missing_connection_is_told(tmp_path: Path) -> None:
    """What a user can mend differs: the address, our certificate, theirs, or no TLS at all."""
    ca, stranger = issue("ca"), issue("ca")
    mine, theirs = issue("me", ca), issue("me", stranger)
    ours = files(tmp_path / "mine", ca, mine)
    wrong_ca = files(tmp_path / "ca", stranger, mine)
    wrong_certificate = files(tmp_path / "certificate", ca, theirs)

    async def tell(cause: str, credentials: Tls | None, address: str = "") -> None:
        async with caller_of(ca, credentials, address) as caller:
            await is_told(cause, caller)

    asyncio.run(tell("credentials=Tls(", None))
    asyncio.run(tell("does not vouch for", wrong_ca))
    asyncio.run(tell("did not issue", wrong_certificate))
    asyncio.run(tell("nobody listens", ours, "127.0.0.1:1"))


def test_a_cause_is_told_also_when_the_last_attempt_had_no_time_to_find_it() -> None:
    """A call ends at its deadline, in the middle of an attempt: what others found still holds."""

    async def scenario() -> None:
        async with caller_of(issue("ca"), None) as caller:
            await is_told("credentials=Tls(", caller)
            assert "credentials=Tls(" in await refusal(caller, 0)

    asyncio.run(scenario())


def test_a_cause_is_told_no_longer_than_it_may_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody listened, then a host that drops what it is sent; no attempt has its time."""
    now_ms = [1_000_000]
    monkeypatch.setattr("holdfast.client._rpc.caller.boot_ms", lambda: now_ms[0])

    async def scenario(address: str) -> None:
        async with caller_of(issue("ca"), None, address) as caller:
            caller._words[address] = "Connection refused", now_ms[0]
            now_ms[0] += _WORDS_HOLD_MS
            assert "nobody listens" in await refusal(caller, 0)
            now_ms[0] += 1
            assert "it does not answer" in await refusal(caller, 0)

    with socket.create_server(("127.0.0.1", 0)) as silent:  # it connects and never says a word
        asyncio.run(scenario(f"127.0.0.1:{silent.getsockname()[1]}"))


@pytest.mark.parametrize("words", ["Socket closed", "Connection reset by peer"])
@pytest.mark.parametrize("wording", [IN_CODE, Wording("give --tls DIR", "leave --tls out")])
def test_a_closed_connection_is_not_blamed_on_certificates_alone(
    words: str, wording: Wording, tmp_path: Path
) -> None:
    """A node that is being stopped, or at its bound of connections, closes them too."""
    ca = issue("ca")
    for credentials in (None, files(tmp_path / "mine", ca, issue("me", ca))):
        cause = explain(words, credentials, wording)
        assert "being stopped, or at its bound of connections" in cause
        assert (wording.give in cause) == (credentials is None)


DAYS = {"expired at": (-2, -1), "not valid before": (1, 2)}


@pytest.mark.parametrize("words", DAYS)
@pytest.mark.parametrize("name", ["ca.pem", "certificate.pem"])
def test_a_certificate_of_ours_that_does_not_hold_is_named_with_its_date(
    words: str, name: str, tmp_path: Path
) -> None:
    """A node only closes the connection; our own files say why."""
    ca = issue("ca")
    ours = files(tmp_path / "mine", ca, issue("me", ca))
    begins, ends = DAYS[words]
    file = tmp_path / "mine" / name
    file.write_bytes(pem(issue("other", None if name == "ca.pem" else ca, begins, ends))[1])

    assert f"{file} {'is ' if begins > 0 else ''}{words} 20" in explain("Socket closed", ours)


def test_dates_are_read_as_the_library_that_writes_certificates_reads_them() -> None:
    """Years from 2050 on are written in another form (RFC 5280)."""
    for ends in (1, 365 * 40):
        one = issue("ca", None, -1, ends).certificate
        text = one.public_bytes(serialization.Encoding.PEM).decode()
        told = _validity(f"a text before it\n{text}")
        assert told == (one.not_valid_before_utc, one.not_valid_after_utc)
    for text in ("", f"{_BEGIN}\nMAA=\n{_END}", f"{_BEGIN}\n{_END}"):
        with pytest.raises(ValueError, match="certificate"):
            _validity(text)


def test_a_certificate_for_servers_alone_is_not_called_another_authority_s(tmp_path: Path) -> None:
    """What a node says to it, in the library's words, and what to take: our authority issued it."""
    ca, key = issue("ca"), issue("me").key
    only = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "me")]))
        .issuer_name(ca.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(only, critical=False)
        .sign(ca.key, hashes.SHA256())
    )
    flaw = flaw_of(files(tmp_path / "mine", ca, Issued(key, certificate)))
    assert "purpose" in flaw
    assert "take a certificate of that authority for clients" in flaw
    assert "did not issue" not in flaw


def test_files_that_are_being_replaced_are_no_flaw(tmp_path: Path) -> None:
    missing = Tls(tmp_path / "ca.pem", tmp_path / "c.pem", tmp_path / "k.pem")
    assert flaw_of(missing) == ""
    assert "our certificate" in explain("Socket closed", missing)


def test_a_refused_member_warns_with_the_cause_and_says_little_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One warning, and not a line for each of the attempts, which are several a second."""
    caplog.set_level(logging.INFO, "holdfast.client")
    ca, stranger = issue("ca"), issue("ca")
    credentials = files(tmp_path / "mine", stranger, issue("me", stranger))

    async def scenario() -> None:
        server, address = secured(ca)
        await server.start()
        caller = Caller(address, credentials=credentials)
        now = [0]
        caller.connectivity = ConnectivityLog(lambda: now[0])
        try:
            for now[0] in range(0, QUIET_MS_MAX + 1, QUIET_MS_MAX // 5):
                result = await caller.attempt(FindCoordinatorRequest(), 1_000)
                assert isinstance(result, Failure)
        finally:
            await caller.close()
            await server.stop(0)

    asyncio.run(scenario())
    first, second = said(caplog)
    assert [first.levelname, second.levelname] == ["INFO", "WARNING"]
    warning = second.getMessage()
    assert "does not vouch for" in warning
    assert ".." not in warning


def test_info_is_told_again_after_a_while(caplog: pytest.LogCaptureFixture) -> None:
    """At most one line a node and kind in that time, so six nodes cannot fill a disk either."""
    caplog.set_level(logging.INFO, "holdfast.client")
    now = [0]
    reach = ConnectivityLog(lambda: now[0])
    for now[0] in (0, 1, INFO_EVERY_MS - 1, INFO_EVERY_MS):
        reach.note("a:1", "x", "refused")
        reach.note("b:2", "x", "refused")
    assert [record.getMessage() for record in caplog.records] == ["refused"] * 4


# --- said when it is made, and not by a time-out ---


def broken(folder: Path) -> dict[str, tuple[Tls, str]]:
    """Credentials that cannot work, and what is said of each."""
    ca = issue("ca")
    good = files(folder / "good", ca, issue("me", ca))
    other = files(folder / "other", ca, issue("me", ca))
    locked = folder / "locked.pem"
    locked.write_bytes(
        issue("x").key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )
    text = folder / "text.pem"
    text.write_text("no PEM at all")
    half = folder / "half.pem"
    half.write_bytes(b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")
    nowhere = folder / "nowhere.pem"
    return {
        "a key of another pair": (
            Tls(good.ca, good.certificate, other.key),
            "key '.*other/key.pem' does not belong to certificate '.*good/certificate.pem'",
        ),
        "swapped": (
            Tls(good.ca, good.key, good.certificate),
            "certificate '.*key.pem' has none in PEM, but a private key: swap the two",
        ),
        "no key": (
            Tls(good.ca, good.certificate, nowhere),
            "key '.*nowhere.pem' cannot be read: No such file",
        ),
        "no certificate": (Tls(good.ca, nowhere, good.key), "certificate '.*' cannot be read"),
        "no ca": (Tls(nowhere, good.certificate, good.key), "ca '.*nowhere.pem' cannot be read"),
        "a folder": (Tls(folder, good.certificate, good.key), "cannot be read: Is a directory"),
        "no PEM": (Tls(text, good.certificate, good.key), "ca '.*text.pem' has no certificate"),
        "a key for a ca": (Tls(good.key or "", good.certificate, good.key), "has no certificate"),
        "a text for a key": (Tls(good.ca, good.certificate, text), "has no private key in PEM"),
        "half a key": (Tls(good.ca, good.certificate, half), "key '.*half.pem' cannot be used"),
        "an encrypted key": (Tls(good.ca, good.certificate, locked), "is encrypted"),
        "half a pair": (Tls(good.ca, good.certificate), "both a certificate and its key"),
    }


CAUSES = (
    *("a key of another pair", "swapped", "no key", "no certificate", "no ca", "a folder"),
    *("no PEM", "a key for a ca", "a text for a key", "half a key", "an encrypted key"),
    "half a pair",
)


@pytest.mark.parametrize("cause", CAUSES)
def test_files_that_cannot_work_are_refused_when_anything_is_made_of_them(
    cause: str, tmp_path: Path
) -> None:
    credentials, words = broken(tmp_path)[cause]

    async def refused(make: Callable[[], object]) -> None:
        with pytest.raises(ValueError, match=words):
            make()

    for name in ("Member", "Members", "Admin", "Connection"):
        more: dict[str, Any] = {"group": "g", "topics": ["t"]}
        if name in {"Admin", "Connection"}:
            more = {}
        elif name == "Members":
            more["count"] = 1
        for shell in (aio, sync):
            make = partial(getattr(shell, name), "a:1", credentials=credentials, **more)
            asyncio.run(refused(make))


@pytest.mark.parametrize("wrong", ["local/client", True, ("ca.pem", "cert.pem", "key.pem")])
def test_credentials_of_another_kind_are_refused_when_anything_is_made_of_them(
    wrong: Any,  # noqa: ANN401 - what nobody should pass
) -> None:
    """The command's --tls takes a directory, so that is what people try first."""
    for shell in (aio, sync):
        with pytest.raises(TypeError, match=r"credentials.*Tls\("):
            shell.Admin("a:1", credentials=wrong)


def test_files_that_work_are_taken_and_no_certificate_is_needed(tmp_path: Path) -> None:
    ca = issue("ca")
    good = files(tmp_path / "good", ca, issue("me", ca))

    async def made() -> None:
        for credentials in (good, Tls(good.ca), Tls(str(good.ca))):
            await Connection("a:1", credentials=credentials).close()

    asyncio.run(made())


def test_files_that_break_while_a_program_runs_are_a_failed_connection(tmp_path: Path) -> None:
    """They may be in the middle of being replaced: that must not end a member."""
    ca = issue("ca")
    good = files(tmp_path / "good", ca, issue("me", ca))

    async def scenario() -> None:
        async with caller_of(ca, good) as caller:
            (tmp_path / "good" / "key.pem").unlink()
            assert "credentials cannot be used" in await refusal(caller, ATTEMPT_MS)
            files(tmp_path / "again", ca, issue("me", ca))
            for name in ("key.pem", "certificate.pem"):
                (tmp_path / "again" / name).rename(tmp_path / "good" / name)
            assert await caller.connect(caller.endpoints.current)

    asyncio.run(scenario())

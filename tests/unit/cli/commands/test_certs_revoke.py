"""`holdfast certs revoke`: which certificate is meant, and what the cluster is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from holdfast.cli.connect import Cluster
from holdfast.cli.main import main
from holdfast.server.security.certificate_facts import certificates_in, facts_of
from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import events_pb2 as ev

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result
    from google.protobuf.message import Message

FINGERPRINT = "0123456789abcdef" * 4
TYPED = ":".join(FINGERPRINT[i : i + 2] for i in range(0, 64, 2)).upper()
"""As openssl shows it."""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Message]:
    """What the cluster was asked to change; it has revoked one certificate before."""
    requests: list[Message] = []

    def change(_cluster: Cluster, request: Message, answer: type[Message]) -> Message:
        requests.append(request)
        return answer()

    known = ev.Revocation(fingerprint=FINGERPRINT, principal="svc", reason="stolen")
    described = a.DescribeRevocationsResponse(revocations=[known])
    monkeypatch.setattr(Cluster, "change", change)
    monkeypatch.setattr(Cluster, "call", lambda *_: described)
    return requests


def certs(*arguments: str, code: int = 0) -> Result:
    """The end of a command, which has this exit code."""
    words = ["certs", *arguments]
    if arguments[0] in {"revoke", "unrevoke", "revoked"}:
        words += ["--address", "a:7400"]
    ended = CliRunner().invoke(main, words)
    assert ended.exit_code == code, ended.output
    return ended


@pytest.fixture
def place(tmp_path: Path) -> Path:
    certs("init", "--dir", str(tmp_path))
    certs("issue", "--dir", str(tmp_path), "client", "billing", "--days", "30")
    return tmp_path


def test_by_its_file_a_revocation_has_name_and_expiry(asked: list[Message], place: Path) -> None:
    """So that it is forgotten some time after the certificate has expired."""
    file = place / "billing" / "certificate.pem"
    facts = facts_of(certificates_in(file.read_bytes())[0])

    told = certs("revoke", str(file), "--reason", "laptop stolen")

    assert asked == [
        a.AlterRevocationsRequest(
            revoked=[
                ev.Revocation(
                    fingerprint=facts.fingerprint,
                    principal="holdfast://client/billing",
                    expires_ms=int(facts.ends.timestamp() * 1000),
                    reason="laptop stolen",
                )
            ]
        )
    ]
    assert f"revoked: {facts.fingerprint} of holdfast://client/billing" in told.stdout


def test_a_fingerprint_may_be_typed_as_openssl_shows_it(asked: list[Message]) -> None:
    certs("revoke", TYPED)

    expected = ev.Revocation(fingerprint=FINGERPRINT)
    assert asked == [a.AlterRevocationsRequest(revoked=[expected])]


def test_what_is_no_leaf_is_not_revoked(asked: list[Message], place: Path) -> None:
    for given, why in (
        (place / "authority" / "ca.pem", "is an authority's certificate"),
        (place / "billing" / "key.pem", "no certificate"),
        (place / "absent.pem", "cannot be read as a file"),
        (FINGERPRINT[:-1], "is no fingerprint"),
    ):
        assert why in certs("revoke", str(given), code=1).stderr
    assert asked == []


def test_only_what_is_revoked_is_lifted(asked: list[Message]) -> None:
    assert "is not revoked" in certs("unrevoke", "f" * 64, code=1).stderr
    assert asked == []

    certs("unrevoke", TYPED)

    assert asked == [a.AlterRevocationsRequest(lifted=[FINGERPRINT])]


@pytest.mark.usefixtures("asked")
def test_the_list_is_shown() -> None:
    head, line = certs("revoked").stdout.splitlines()

    assert head.split() == ["FINGERPRINT", "PRINCIPAL", "EXPIRES", "REASON"]
    assert line.split() == [FINGERPRINT, "svc", "-", "stolen"]

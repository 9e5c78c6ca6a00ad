"""What the files of [tls] hold at one moment, and whether it can be put in force.

Reads files; opens no port. A node that starts is told of files that cannot be used. One that runs
is more careful: new files must be better than what it has, or it keeps that.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from holdfast.raft.transport.peer_names import is_for_clients
from holdfast.server.config.node_config import ConfigError
from holdfast.server.security.certificate_facts import (
    certificates_in,
    facts_of,
    pair_problem,
    signed_by,
    written,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from cryptography import x509

    from holdfast.server.config.node_config import Tls


@dataclass(frozen=True, slots=True)
class Credentials:
    """The files, in PEM."""

    ca: bytes
    peer_ca: bytes
    """The same as `ca`, unless nodes have an authority of their own."""
    certificate: bytes
    key: bytes

    def certificates(self) -> list[x509.Certificate]:
        """Return all certificates, each once. Raises ValueError for a broken file."""
        files = (self.certificate, self.ca, self.peer_ca)
        return list(dict.fromkeys(each for pem in files for each in certificates_in(pem)))


def read_pem(path: Path, what: str) -> bytes:
    """Read a PEM file; raises ConfigError with a sentence."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"cannot read the {what} {path}: {error.strerror}. Correct the path in [tls], or its "
            "permissions"
        ) from error


def read_credentials(tls: Tls) -> Credentials:
    """Read the files; raises ConfigError if one is unreadable, or the key is another's."""
    ca = read_pem(tls.ca, "certificate authority")
    peer_ca = read_pem(tls.peer_ca, "certificate authority of nodes") if tls.peer_ca else ca
    certificate, key = read_pem(tls.certificate, "certificate"), read_pem(tls.key, "private key")
    if problem := pair_problem(certificate, key):
        raise ConfigError(f"the key {tls.key} and the certificate {tls.certificate}: {problem}")
    return Credentials(ca, peer_ca, certificate, key)


def renewal_problem(tls: Tls, new: Credentials) -> str:
    """Say why these must not take the place of what is in force; empty if they may."""
    now = datetime.now(UTC)
    try:
        chain, authorities = certificates_in(new.certificate), certificates_in(new.peer_ca)
        certificates_in(new.ca)
    except ValueError as error:
        return f"one of the files of [tls] is broken: {error}"
    if problem := _use_problem(tls, chain[0], new.certificate):
        return problem
    return _chain_problem(tls, chain, authorities, now)


def _use_problem(tls: Tls, own: x509.Certificate, pem: bytes) -> str:
    """Say why the node's certificate cannot serve; empty if it can."""
    if is_for_clients(pem):
        return (
            f"{tls.certificate}, of {facts_of(own).subject}, is for clients alone, since its "
            "extended key usage lacks serverAuth: clients and the other nodes would refuse it"
        )
    return ""


def _chain_problem(
    tls: Tls,
    chain: Sequence[x509.Certificate],
    authorities: Sequence[x509.Certificate],
    now: datetime,
) -> str:
    """Say why the other nodes would not trust the first of a chain today; empty if they would.

    Another of the file must have signed it, and so on, up to one that an authority has signed.
    """
    own, *rest = chain
    while True:
        if not _is_valid(own, now):
            return f"{_told(own)} in {tls.certificate} is {_validity(own)}, and not now"
        signers = [each for each in authorities if signed_by(own, [each])]
        if any(_is_valid(each, now) for each in signers):
            return ""
        if signers:
            where = tls.peer_ca or tls.ca
            return f"{_told(signers[0])} in {where} is {_validity(signers[0])}, and not now"
        above = next((each for each in rest if signed_by(own, [each])), None)
        if above is None:
            return _unsigned(tls, own)
        rest.remove(above)
        own = above


def _unsigned(tls: Tls, own: x509.Certificate) -> str:
    return (
        f"no authority in {tls.peer_ca or tls.ca} has signed {_told(own)} in {tls.certificate}, "
        f"which says that {facts_of(own).issuer} did: the other nodes would refuse it. While one "
        "authority follows another, the file must hold both"
    )


def _is_valid(certificate: x509.Certificate, now: datetime) -> bool:
    return certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc


def _validity(certificate: x509.Certificate) -> str:
    begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return f"valid from {written(begins)} to {written(ends)}"


def _told(certificate: x509.Certificate) -> str:
    return facts_of(certificate).subject

"""What the files of [tls] hold at one moment, and whether it can be put in force.

Reads files; opens no port. A node that starts is told of files that cannot be used. One that runs
is more careful: new files must be better than what it has, or it keeps that.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from holdfast.server.config.node_config import ConfigError
from holdfast.server.security.certificate_facts import (
    certificates_in,
    facts_of,
    pair_problem,
    signed_by,
    written,
)

if TYPE_CHECKING:
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
    now, where = datetime.now(UTC), tls.peer_ca or tls.ca
    try:
        chain, authorities = certificates_in(new.certificate), certificates_in(new.peer_ca)
        certificates_in(new.ca)
    except ValueError as error:
        return f"one of the files of [tls] is broken: {error}"
    own = chain[0]
    if not own.not_valid_before_utc <= now < own.not_valid_after_utc:
        begins, ends = written(own.not_valid_before_utc), written(own.not_valid_after_utc)
        return f"{tls.certificate} is valid from {begins} to {ends}, and not now"
    if not any(signed_by(each, authorities) for each in chain):
        return (
            f"no authority in {where} has signed {tls.certificate}, which says that "
            f"{facts_of(own).issuer} did: the other nodes would refuse it. While one authority "
            "follows another, the file must hold both"
        )
    return ""

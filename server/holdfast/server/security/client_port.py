"""TLS for clients: the server's credentials and the callers' principals.

TLS is mutual: a client without a certificate of the cluster's authority is refused. The principal
is the first URI, else DNS name, else common name of the certificate. Reads PEM files; knows no
services.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import grpc
from cryptography import x509
from cryptography.x509.oid import ExtensionOID, NameOID

from holdfast.server.config.node_config import ConfigError
from holdfast.server.security.certificate_facts import pair_problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from holdfast.server.config.node_config import Tls

ANONYMOUS: Final = "anonymous"
"""The principal of every caller on an insecure loopback."""


def read_pem(path: Path, what: str) -> bytes:
    """Read a PEM file; raises ConfigError with a sentence."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"cannot read the {what} {path}: {error.strerror}. Correct the path in [tls], or its "
            "permissions"
        ) from error


def server_credentials(tls: Tls) -> grpc.ServerCredentials:
    """Make credentials for mutual TLS: clients must show a certificate of our authority."""
    certificate = read_pem(tls.certificate, "certificate")
    _refuse_foreign_key(tls, certificate)
    return grpc.ssl_server_credentials(
        [(read_pem(tls.key, "private key"), certificate)],
        root_certificates=read_pem(tls.ca, "certificate authority"),
        require_client_auth=True,
    )


def _refuse_foreign_key(tls: Tls, certificate: bytes) -> None:
    if problem := pair_problem(certificate, read_pem(tls.key, "private key")):
        raise ConfigError(f"the key {tls.key} and the certificate {tls.certificate}: {problem}")


class Principals:
    """The principals of callers by certificate; each certificate is parsed once."""

    _KEPT_MAX: Final = 4_096

    def __init__(self) -> None:
        self._known: dict[bytes, str] = {}

    def of(self, auth: Mapping[str, Iterable[bytes]]) -> str:
        """Return the principal of a connection, from gRPC's authentication context."""
        pem = next(iter(auth.get("x509_pem_cert", ())), None)
        if pem is None:
            return ANONYMOUS
        if pem not in self._known:
            if len(self._known) >= self._KEPT_MAX:
                self._known.clear()
            self._known[pem] = principal_of(pem)
        return self._known[pem]


def principal_of(pem: bytes) -> str:
    """Return a certificate's first URI, else DNS name, else common name, else `anonymous`."""
    certificate = x509.load_pem_x509_certificate(pem)
    try:
        names = certificate.extensions.get_extension_for_oid(
            ExtensionOID.SUBJECT_ALTERNATIVE_NAME
        ).value
    except x509.ExtensionNotFound:
        names = x509.SubjectAlternativeName([])
    assert isinstance(names, x509.SubjectAlternativeName)  # noqa: S101 - what this OID means
    for kind in (x509.UniformResourceIdentifier, x509.DNSName):
        found = names.get_values_for_type(kind)
        if found:
            return str(found[0])
    common = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(common[0].value) if common else ANONYMOUS

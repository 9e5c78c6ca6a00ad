"""TLS for clients: the credentials of their ports, and the principals of certificates.

TLS is mutual, but on the port for tokens: a client without a certificate of the cluster's authority
is refused. The principal is the first URI, else DNS name, else common name of the certificate.
Knows no services.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Final

import grpc
from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.x509.oid import NameOID

from holdfast.coordinator.model.access import EVERYONE
from holdfast.raft.transport.peer_names import UNREADABLE
from holdfast.server.config.node_config import ANONYMOUS
from holdfast.server.config.token_settings import TOKEN_PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from holdfast.server.security.credentials import Credentials

_CERTIFIED: Final = "certificate:"


class ClientPort:
    """The TLS of a port for clients: each new connection gets what is in force at that moment."""

    def __init__(self, credentials: Credentials, *, by_certificate: bool = True) -> None:
        """`by_certificate` False: clients are asked for none, since they show something else."""
        self._next: grpc.ServerCertificateConfiguration | None = None
        self._lock = Lock()
        self.credentials: grpc.ServerCredentials = grpc.dynamic_ssl_server_credentials(
            _configuration(credentials),
            self._fetch,  # type: ignore[arg-type]  # None is for "as before" (grpc's documentation)
            require_client_authentication=by_certificate,
        )

    def replace(self, credentials: Credentials) -> None:
        """Put others in force. Any thread."""
        with self._lock:
            self._next = _configuration(credentials)

    def _fetch(self) -> grpc.ServerCertificateConfiguration | None:
        """Return what is new, None if nothing is; asked by gRPC's threads for each connection."""
        with self._lock:
            new, self._next = self._next, None
        return new


def _configuration(credentials: Credentials) -> grpc.ServerCertificateConfiguration:
    pair = (credentials.key, credentials.certificate)
    return grpc.ssl_server_certificate_configuration([pair], root_certificates=credentials.ca)


class Principals:
    """The principals of callers by certificate; each certificate is parsed once."""

    _KEPT_MAX: Final = 4_096

    def __init__(self) -> None:
        self._known: dict[bytes, str] = {}

    def of(self, auth: Mapping[str, Iterable[bytes]]) -> str:
        """Return the principal of a connection, from gRPC's authentication context."""
        pem = next(iter(auth.get("x509_pem_cert", ())), None)
        if pem is None and b"ssl" in auth.get("transport_security_type", ()):
            raise RuntimeError("a caller on TLS has shown neither a certificate nor a token")
        if pem is None:
            return ANONYMOUS
        if pem not in self._known:
            if len(self._known) >= self._KEPT_MAX:
                self._known.clear()
            self._known[pem] = principal_of(pem)
        return self._known[pem]


def principal_of(pem: bytes) -> str:
    """Return the principal of a certificate in PEM form."""
    return principal_in(x509.load_pem_x509_certificate(pem))


def principal_in(certificate: x509.Certificate) -> str:
    """Return a certificate's first URI, else DNS name, else common name, else its SHA-256.

    Never `anonymous`, who may be an administrator since the time before the cluster had TLS. An
    empty name is none. Of names that cannot be read none counts, the common name neither: one of
    the others would have come before it.
    """
    try:
        named = next((name for name in _names_in(certificate) if name), "")
    except UNREADABLE:
        named = ""
    return _certified(named) if named else f"{_CERTIFIED}{certificate.fingerprint(SHA256()).hex()}"


def _names_in(certificate: x509.Certificate) -> Iterator[str]:
    """Yield what may name a caller, the first choice first; raises one of `UNREADABLE`."""
    try:
        extensions = certificate.extensions
        names = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        names = x509.SubjectAlternativeName([])
    for kind in (x509.UniformResourceIdentifier, x509.DNSName):
        yield from map(str, names.get_values_for_type(kind))
    for each in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME):
        yield str(each.value)


def _certified(name: str) -> str:
    """Return a certificate's name as a principal, never that of a token, of nobody, or of all."""
    taken = name in {ANONYMOUS, EVERYONE} or name.startswith((TOKEN_PREFIX, _CERTIFIED))
    return f"{_CERTIFIED}{name}" if taken else name

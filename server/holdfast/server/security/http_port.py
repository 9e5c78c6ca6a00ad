"""TLS of the HTTP port: who may ask without a certificate is decided by path, after the handshake.

Machines that probe a node's health have no certificate, so the handshake goes on without one. One
that is shown must be signed by the authority that signs clients, or the handshake fails. Knows PEM
files and certificates, not HTTP.
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Any

from holdfast.raft.transport.peer_names import names_a_node
from holdfast.server.config.node_config import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.server.config.node_config import Tls


def http_context(tls: Tls) -> ssl.SSLContext:
    """Make the context of the port's connections; raises ConfigError with a sentence."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2  # probes are not always new
    context.verify_mode = ssl.CERT_OPTIONAL
    context.set_alpn_protocols(["http/1.1"])
    context.num_tickets = 0  # nobody resumes a session of a connection for one request
    try:
        context.load_verify_locations(tls.ca)
        context.load_cert_chain(tls.certificate, tls.key, password=_no_password)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise ConfigError(
            f"the HTTP port cannot use {tls.ca}, {tls.certificate} and {tls.key}: {error}. Correct "
            "the files in [tls]"
        ) from error
    return context


def _no_password() -> str:
    """Refuse; OpenSSL would ask whoever sits at the terminal."""
    raise ValueError("the private key is encrypted, and nobody is asked for its password")


def node_named(certificate: Mapping[str, Any]) -> str:
    """Return the URI by which a certificate names a node; "" if it names none.

    `certificate`: as `ssl.SSLObject.getpeercert` gives it.
    """
    entries = certificate.get("subjectAltName", ())
    return next(
        (str(name) for kind, name in entries if kind == "URI" and names_a_node(str(name))), ""
    )

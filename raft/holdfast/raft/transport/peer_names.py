"""The name of a node in its certificate, made from the cluster's id and the node's name.

Both sides of a connection read it from the other's certificate. It carries the cluster, so that a
node of another cluster under the same authority is refused (docs/adr/0018). Knows certificates, not
connections.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

SCHEME: Final = "holdfast://"
OLD_PREFIX: Final = f"{SCHEME}node/"
"""The prefix of a node's name in certificates of Holdfast 0.1; it names no cluster."""
_SEGMENTS: Final = 3
"""Of a node's name behind the scheme: the cluster, `node`, and the node."""
UNREADABLE: Final = (
    ValueError,
    x509.DuplicateExtension,
    x509.InvalidVersion,
    x509.UnsupportedGeneralNameType,
)
"""What reading a certificate's extensions raises if they are broken."""


def node_uri(cluster_id: str, node: str) -> str:
    """Return the URI that both sides look for in the other's certificate.

    Everything but letters, digits and `_.-~` is percent-encoded (RFC 3986).
    """
    return f"{SCHEME}{quote(cluster_id, safe='')}/node/{quote(node, safe='')}"


def old_node_uri(node: str) -> str:
    """Return the URI that a node's certificate had for Holdfast 0.1."""
    return f"{OLD_PREFIX}{node}"


def names_a_node(uri: str) -> bool:
    """Return whether a URI is a node's name, in any cluster, of this version's form or 0.1's."""
    segments = uri.removeprefix(SCHEME).split("/")
    named = len(segments) == _SEGMENTS and segments[1] == "node"
    return uri.startswith(OLD_PREFIX) or (uri.startswith(SCHEME) and named)


def certificate_problem(pem: bytes, cluster_id: str, node: str, *, accept_old: bool) -> str:
    """Say why this certificate is not that node's; empty if it is.

    `accept_old`: the name of Holdfast 0.1 is accepted as well, though it names no cluster.
    """
    wanted, uris = node_uri(cluster_id, node), uris_of(pem)
    if is_for_clients(pem):
        return (
            f"the certificate does not belong to node {node!r}: it is for clients alone, since its "
            "extended key usage lacks serverAuth"
        )
    old = old_node_uri(node) in uris
    if wanted in uris or (old and accept_old):
        return ""
    hint = (
        "it has the name of Holdfast 0.1 alone: give that node a new certificate, or set "
        "tls.accept_old_node_names = true on all nodes until it has one"
        if old
        else "is it a client's, or another cluster's?"
    )
    return f"the certificate does not belong to node {node!r}: it lacks URI:{wanted}; {hint}"


def uris_of(pem: bytes) -> frozenset[str]:
    """Return the URI entries of a certificate, but no entries of another kind that look like one.

    Empty for a certificate that cannot be read.
    """
    try:
        extensions = x509.load_pem_x509_certificate(pem).extensions
        names = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return frozenset()
    except UNREADABLE:
        return frozenset()
    return frozenset(names.get_values_for_type(x509.UniformResourceIdentifier))


def is_for_clients(pem: bytes) -> bool:
    """Return whether a certificate says that it is for clients alone, whatever its names are.

    TLS asks that of nobody who dials. An authority that lets clients choose their names must not
    make nodes of them.
    """
    try:
        extensions = x509.load_pem_x509_certificate(pem).extensions
        usages = set(extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)
    except (x509.ExtensionNotFound, *UNREADABLE):
        return False
    return not usages & {
        ExtendedKeyUsageOID.SERVER_AUTH,
        ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE,
    }


def missing_name(pem: bytes, cluster_id: str, node: str) -> str:
    """Return the name that a node's certificate lacks, as openssl would write it; empty: none."""
    uri = node_uri(cluster_id, node)
    return "" if uri in uris_of(pem) else f"URI:{uri}"

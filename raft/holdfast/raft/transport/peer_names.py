"""The two names of a node in its certificate, made from the cluster's id and the node's name.

The dialler checks a DNS name, since that is what gRPC lets it check; the acceptor reads the URI
from the certificate itself. Both carry the cluster, so that a node of another cluster under the
same authority is refused (docs/adr/0011). Knows certificates, not connections.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final
from urllib.parse import quote

from cryptography import x509

SCHEME: Final = "holdfast://"
OLD_PREFIX: Final = f"{SCHEME}node/"
"""The prefix of a node's name in certificates of Holdfast 0.1; it names no cluster."""
DOMAIN: Final = "holdfast"
CLUSTER_DIGITS: Final = 16
ENCODED: Final = "x--"
"""Begins the label of a node whose name is not a DNS label; 32 hexadecimal digits follow."""
_ENCODED_DIGITS: Final = 32
_LABEL: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_UNREADABLE: Final = (
    ValueError,
    x509.DuplicateExtension,
    x509.InvalidVersion,
    x509.UnsupportedGeneralNameType,
)


def node_uri(cluster_id: str, node: str) -> str:
    """Return the URI that the acceptor looks for in the dialler's certificate.

    In both names everything but letters, digits and `_.-~` is percent-encoded (RFC 3986).
    """
    return f"{SCHEME}{quote(cluster_id, safe='')}/node/{quote(node, safe='')}"


def node_dns_name(cluster_id: str, node: str) -> str:
    """Return the DNS name that the dialler looks for.

    It is `<node>.<16 hex digits of SHA-256(cluster id)>.holdfast`.
    """
    return f"{_label(node)}.{_hex(cluster_id, CLUSTER_DIGITS)}.{DOMAIN}"


def old_node_uri(node: str) -> str:
    """Return the URI that a node's certificate had for Holdfast 0.1."""
    return f"{OLD_PREFIX}{node}"


def _label(node: str) -> str:
    """Return the node's name if a DNS label can hold it, else a hash of it.

    DNS ignores case, so two nodes whose names differ only in case must get different labels.
    """
    if _LABEL.fullmatch(node) and not node.startswith(ENCODED):
        return node
    return ENCODED + _hex(node, _ENCODED_DIGITS)


def _hex(text: str, digits: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:digits]


def certificate_problem(pem: bytes, cluster_id: str, node: str, *, accept_old: bool) -> str:
    """Say why this certificate is not that node's; empty if it is.

    `accept_old`: the name of Holdfast 0.1 is accepted as well, though it names no cluster.
    """
    wanted, uris = node_uri(cluster_id, node), uris_of(pem)
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
    return _names(pem, x509.UniformResourceIdentifier)


def missing_names(pem: bytes, cluster_id: str, node: str) -> list[str]:
    """Return which of its two names a node's certificate lacks, as openssl would write them."""
    uri, dns = node_uri(cluster_id, node), node_dns_name(cluster_id, node)
    dns_names = {name.lower() for name in _names(pem, x509.DNSName)}
    missing = [] if uri in uris_of(pem) else [f"URI:{uri}"]
    return missing if dns in dns_names else [*missing, f"DNS:{dns}"]


def _names(pem: bytes, kind: type[x509.UniformResourceIdentifier | x509.DNSName]) -> frozenset[str]:
    try:
        extensions = x509.load_pem_x509_certificate(pem).extensions
        names = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return frozenset()
    except _UNREADABLE:
        return frozenset()
    return frozenset(names.get_values_for_type(kind))

"""A throw-away authority for the peer transport's tests: nodes, clients, and names that mislead."""

from __future__ import annotations

import datetime as dt
import ipaddress
from collections.abc import Sequence

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, ExtensionOID, NameOID, ObjectIdentifier

from holdfast.raft.transport.peer_names import node_uri
from holdfast.raft.transport.tls import PeerTls

HOST = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
CLUSTER = "c"
PEM = serialization.Encoding.PEM


def new_names(node: str, cluster: str = CLUSTER) -> list[x509.GeneralName]:
    """What the certificate of a node carries."""
    return [HOST, x509.UniformResourceIdentifier(node_uri(cluster, node))]


def old_names(node: str) -> list[x509.GeneralName]:
    """What it carried for Holdfast 0.1."""
    return [HOST, x509.UniformResourceIdentifier(f"holdfast://node/{node}")]


def email(text: str) -> x509.RFC822Name:
    """An e-mail entry with any text, as authorities that check nothing sign it."""
    return x509.RFC822Name._init_without_validation(text)


class Authority:
    """Signs whatever it is asked for."""

    def __init__(self, name: str = "test CA") -> None:
        """Two authorities that one node trusts need two names."""
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.certificate = self._sign(
            self.name, self.key, x509.BasicConstraints(ca=True, path_length=None)
        )

    def _sign(
        self, name: x509.Name, key: ec.EllipticCurvePrivateKey, *extra: x509.ExtensionType
    ) -> x509.Certificate:
        now = dt.datetime.now(dt.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self.name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(hours=1))
            .not_valid_after(now + dt.timedelta(days=1))
        )
        for extension in extra:
            builder = builder.add_extension(extension, critical=False)
        return builder.sign(self.key, hashes.SHA256())

    def node(self, node: str, cluster: str = CLUSTER) -> PeerTls:
        """A node as a new layout makes it."""
        return self.pair(new_names(node, cluster))

    def client(self, names: Sequence[x509.GeneralName], common_name: str = "client") -> PeerTls:
        """A certificate that is good for clients alone."""
        return self.pair(names, common_name, [ExtendedKeyUsageOID.CLIENT_AUTH])

    def nonsense(self) -> bytes:
        """A certificate whose alternative names cannot be read."""
        names = x509.UnrecognizedExtension(ExtensionOID.SUBJECT_ALTERNATIVE_NAME, b"none")
        return self._sign(self.name, self.key, names).public_bytes(PEM)

    def pair(
        self,
        names: Sequence[x509.GeneralName],
        common_name: str = "anybody",
        usages: Sequence[ObjectIdentifier] = (),
    ) -> PeerTls:
        """A pair with these alternative names."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
        extensions: list[x509.ExtensionType] = [x509.SubjectAlternativeName(names)]
        if usages:
            extensions.append(x509.ExtendedKeyUsage(usages))
        return PeerTls(
            self.certificate.public_bytes(PEM),
            self._sign(subject, key, *extensions).public_bytes(PEM),
            key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
        )

"""An authority on disk: it issues certificates, renews them, and is itself followed by another.

DIR/authority/ca.pem            all authorities that are to be trusted: one, or two in a change-over
DIR/authority/key.pem           the key that signs; its certificate is one of those
DIR/authority/next-key.pem      the next one's key, until it signs
DIR/authority/previous-key.pem  the key that has signed before, until its authority is dropped
DIR/<name>/                     what was issued: ca.pem, certificate.pem, key.pem

`holdfast cluster start` lays its directory out in the same way. A step that was interrupted is
finished by doing it again. Knows files and certificates; asks no cluster.
"""

from __future__ import annotations

import os
import re
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509.oid import NameOID

from holdfast.server.security.certificate_facts import certificates_in, signed_by
from holdfast.server.security.certificates import (
    AUTHORITY_DAYS,
    Authority,
    certificate_pem,
    keep,
    key_pem,
    make_authority,
    sign,
    sign_again,
    write_pair,
)
from holdfast.server.security.pem_files import write_pem
from holdfast.storage.disk.files import rename_durably, sync_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cryptography import x509

    from holdfast.server.security.certificates import Party

FOLDER: Final = "authority"
_CA, _CERTIFICATE, _KEY = "ca.pem", "certificate.pem", "key.pem"
_NEXT, _PREVIOUS = "next-key.pem", "previous-key.pem"
_PREFIX: Final = "holdfast authority "
_SUFFIX: Final = re.compile(r" [0-9a-f]{8}$")
"""What tells one authority of a name from the next."""


class CertificatesRefused(Exception):
    """What was asked for cannot or must not be done; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Issued:
    """A certificate that lies in a folder."""

    folder: Path
    certificate: x509.Certificate


def create(directory: Path, name: str, days: int = AUTHORITY_DAYS) -> x509.Certificate:
    """Make an authority in a directory that has none; return its certificate."""
    folder = directory / FOLDER
    for file in (folder / _CA, folder / _KEY):
        if file.exists():
            raise CertificatesRefused(
                f"{file} is there already, and whoever trusts it would not trust a new one. Issue "
                f"certificates with it, or give another --dir. To replace the authority: `holdfast "
                "certs authority next`"
            )
    authority = make_authority(name, days)
    keep(authority, folder)
    return authority.certificate


class AuthorityFolder:
    """The authority of one directory, and what it has issued there."""

    def __init__(self, directory: Path) -> None:
        """Read it. Raises CertificatesRefused if there is none, or it cannot be used."""
        self.directory, self._folder = directory, directory / FOLDER
        self.trusted = tuple(_certificates(self._folder / _CA, "the authority's certificate"))
        key = _key(self._folder / _KEY)
        signer = _certificate_of(key, self.trusted)
        if signer is None:
            raise CertificatesRefused(
                f"the key {self._folder / _KEY} belongs to no certificate in {self._folder / _CA}. "
                "Put back the two files that were made together"
            )
        self.authority = Authority(key, signer)

    @property
    def bundle(self) -> bytes:
        """All authorities to trust, in PEM."""
        return b"".join(map(certificate_pem, self.trusted))

    def issue(self, folder: Path, party: Party, days: int) -> x509.Certificate:
        """Make a certificate in a folder that has none."""
        if folder.resolve() == self._folder.resolve():
            raise CertificatesRefused(f"{folder} holds the authority. Give --out another folder")
        for name in (_CERTIFICATE, _KEY):
            if (folder / name).exists():
                raise CertificatesRefused(
                    f"{folder / name} is there already, and is not overwritten. Renew it with "
                    "`holdfast certs renew`, or give --out another folder"
                )
        pair = sign(self.authority, party, days)
        write_pair(folder, pair, self.bundle)
        return pair.certificate

    def issued(self) -> Iterator[Issued]:
        """Yield the certificates in the directory that a trusted authority has signed, by name."""
        for file in sorted(self.directory.glob(f"*/{_CERTIFICATE}")):
            certificate = _certificates(file, "the certificate")[0]
            if signed_by(certificate, self.trusted):
                yield Issued(file.parent, certificate)

    def find(self, folder: Path) -> Issued:
        """Return the certificate of a folder. Raises CertificatesRefused if it is not ours."""
        file = folder / _CERTIFICATE
        certificate = _certificates(file, "the certificate")[0]
        if not signed_by(certificate, self.trusted):
            raise CertificatesRefused(
                f"{file} was signed by another authority ({certificate.issuer.rfc4514_string()}), "
                "and is not renewed. Issue a new one into another folder, and use that"
            )
        return Issued(folder, certificate)

    def renew(self, issued: Issued, days: int) -> x509.Certificate:
        """Replace a certificate and its key by new ones of the same names and uses."""
        pair = sign_again(self.authority, issued.certificate, days)
        write_pair(issued.folder, pair, self.bundle)
        return pair.certificate

    # --- one authority follows another ---

    def begin_next(self, days: int = AUTHORITY_DAYS) -> x509.Certificate:
        """Make the next authority, and have both trusted; the present one still signs."""
        path = self._folder / _NEXT
        if path.exists() and (found := _certificate_of(_key(path), self.trusted)):
            self._trust(self.trusted)
            return found
        if len(self.trusted) > 1:
            raise CertificatesRefused(
                f"{self._folder / _CA} trusts {len(self.trusted)} authorities already: a "
                "change-over has begun. Go on with `holdfast certs authority switch` or `finish`"
            )
        new = make_authority(self._name(), days, f" {secrets.token_hex(4)}")
        write_pem(path, key_pem(new.key), secret=True)
        self._trust((*self.trusted, new.certificate))
        return new.certificate

    def switch(self) -> x509.Certificate:
        """Have the next authority sign from now on; both stay trusted."""
        path = self._folder / _NEXT
        if not path.exists():
            raise CertificatesRefused(
                f"there is no next authority in {self._folder}. Begin with `holdfast certs "
                "authority next`"
            )
        key = _key(path)
        certificate = _certificate_of(key, self.trusted)
        if certificate is None:
            raise CertificatesRefused(
                f"{self._folder / _CA} does not trust the authority of {path} yet: it was cut off. "
                "Begin again with `holdfast certs authority next`"
            )
        (self._folder / _PREVIOUS).unlink(missing_ok=True)
        os.link(self._folder / _KEY, self._folder / _PREVIOUS)
        rename_durably(path, self._folder / _KEY)
        self.authority = Authority(key, certificate)
        return certificate

    def finish(self) -> list[x509.Certificate]:
        """Trust the authority that signs and no other; return those that are trusted no more."""
        signer = self.authority.certificate
        if (self._folder / _NEXT).exists() and len(self.trusted) > 1:
            raise CertificatesRefused(
                "the next authority does not sign yet. First `holdfast certs authority switch`, "
                "then renew all certificates with `holdfast certs renew`"
            )
        late = [e.folder.name for e in self.issued() if not signed_by(e.certificate, [signer])]
        if late:
            raise CertificatesRefused(
                f"still signed by the authority that would be dropped: {', '.join(late)}. Renew "
                "them with `holdfast certs renew` first, or nodes would refuse them"
            )
        dropped = [each for each in self.trusted if each != signer]
        self._trust((signer,))
        (self._folder / _PREVIOUS).unlink(missing_ok=True)
        sync_path(self._folder)
        return dropped

    def _trust(self, authorities: tuple[x509.Certificate, ...]) -> None:
        """Write which authorities are trusted: here, and beside what was issued here."""
        folders = [each.folder for each in self.issued()]
        self.trusted = authorities
        for folder in (self._folder, *folders):
            write_pem(folder / _CA, self.bundle)

    def _name(self) -> str:
        """Return what the first authority was called."""
        found = self.authority.certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        name = str(found[0].value) if found else ""
        return _SUFFIX.sub("", name.removeprefix(_PREFIX))


def _certificates(path: Path, what: str) -> list[x509.Certificate]:
    try:
        return certificates_in(path.read_bytes())
    except OSError as error:
        raise CertificatesRefused(
            f"cannot read {what} {path}: {error.strerror}. `holdfast certs init` makes an "
            "authority, `holdfast certs issue` a certificate"
        ) from error
    except ValueError as error:
        raise CertificatesRefused(f"{what} {path} cannot be used: {error}") from error


def _key(path: Path) -> ec.EllipticCurvePrivateKey:
    try:
        key = load_pem_private_key(path.read_bytes(), None)
    except OSError as error:
        raise CertificatesRefused(
            f"cannot read the authority's key {path}: {error.strerror}. Run this where the key is "
            "kept, as its owner"
        ) from error
    except (ValueError, TypeError) as error:
        raise CertificatesRefused(f"the key {path} cannot be used: {error}") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise CertificatesRefused(f"{path} is no key on an elliptic curve, as these commands make")
    return key


def _certificate_of(
    key: ec.EllipticCurvePrivateKey, certificates: tuple[x509.Certificate, ...]
) -> x509.Certificate | None:
    return next((c for c in certificates if c.public_key() == key.public_key()), None)

"""The node's certificates while it runs: new files are put in force, and their end is warned of.

The files are looked at every few seconds, in a thread of the loop's pool, since a disk may hang. A
change counts when it has stayed the same from one look to the next: certificate and key are two
files, and whoever replaces them does it one after the other. Knows files and the ports.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from holdfast.coordinator.model.text import readable
from holdfast.raft.transport.tls import PeerTls, TlsUnusable
from holdfast.server.config.node_config import ConfigError
from holdfast.server.security.certificate_facts import (
    certificates_in,
    facts_of,
    fingerprint,
    left,
    signed_by,
    written,
)
from holdfast.server.security.client_port import ClientPort, principal_of
from holdfast.server.security.credentials import read_credentials, renewal_problem
from holdfast.server.security.peer_port import peer_tls

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from cryptography import x509

    from holdfast.server.config.node_config import NodeConfig, Tls
    from holdfast.server.security.credentials import Credentials

logger = logging.getLogger(__name__)

LOOK_SECONDS: Final = 2.0
WARNED_DAYS: Final = (1, 7, 30)
"""A certificate that ends within so many days is warned of, once for each number."""

Seen = tuple[tuple[int, int, int], ...]
"""Time of change, size and number of each file; (0, 0, 0) where there is none."""


class CertificateWatch:
    """The certificates in force, and the files from which they come."""

    def __init__(self, config: NodeConfig, tls: Tls) -> None:
        """Read the files; raises ConfigError if a node cannot start with them."""
        self._config, self._tls = config, tls
        self._files = [tls.ca, tls.certificate, tls.key, *([tls.peer_ca] if tls.peer_ca else [])]
        self._before = self._judged = _seen(self._files)
        self.in_force = read_credentials(tls)
        self.client_port = ClientPort(self.in_force)
        self.token_port = ClientPort(self.in_force, by_certificate=False)
        self.peer_tls = peer_tls(config, self.in_force)
        self._replace_peer_tls: Callable[[PeerTls], None] = lambda _: None
        self._renew_http: Callable[[], None] = lambda: None
        self._shown: Callable[[], Iterable[bytes]] = tuple
        self._dropped: list[x509.Certificate] = []
        """Authorities that were dropped since those were named who still use them."""
        self._expiry = ExpiryWarnings()
        self._expiry.look(self.in_force)
        self._task: asyncio.Task[None] | None = None

    def start(
        self,
        replace_peer_tls: Callable[[PeerTls], None],
        renew_http: Callable[[], None],
        shown: Callable[[], Iterable[bytes]],
    ) -> None:
        """Begin to look.

        `replace_peer_tls`: has the peer port use others; raises TlsUnusable. `renew_http`: has the
        HTTP port read the files; raises ConfigError. `shown`: returns the
        certificates of clients that have streams open, in PEM; called in the loop.
        """
        self._replace_peer_tls, self._renew_http = replace_peer_tls, renew_http
        self._shown = shown
        self._task = asyncio.create_task(self._look_for_ever())

    def stop(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()

    async def _look_for_ever(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                await asyncio.to_thread(self.look)
                self.name_who_is_late()
            except Exception:
                logger.exception("a defect: looking at the files of [tls] failed; it goes on")

    def look(self) -> None:
        """Look at the files once; blocks."""
        seen = _seen(self._files)
        if seen == self._before and seen != self._judged:
            self._judged = seen
            self._judge()
        self._before = seen
        self._expiry.look(self.in_force)

    def name_who_is_late(self) -> None:
        """Name the clients whose certificates an authority has signed that was just dropped.

        Their next connection is refused in the handshake, of which gRPC tells a node nothing.
        """
        dropped, self._dropped = self._dropped, []
        for pem in self._shown() if dropped else ():
            (certificate, *_) = certificates_in(pem)
            if signed_by(certificate, dropped):
                logger.warning(
                    "the client %s still shows a certificate of %s, which is trusted no more "
                    "(fingerprint %s): its connection ends within tls.connection_age_ms, and its "
                    "next one is refused. Give it a new certificate",
                    readable(principal_of(pem)),
                    facts_of(certificate).issuer,
                    fingerprint(certificate),
                )

    def _judge(self) -> None:
        """Put the files in force, or say once why what is in force stays."""
        try:
            new = read_credentials(self._tls)
            if new == self.in_force:
                return
            problem = renewal_problem(self._tls, new)
            if not problem:
                self._put_in_force(new)
        except (ConfigError, TlsUnusable) as error:
            problem = str(error)
        if problem:
            logger.error(
                "the files of [tls] have changed and cannot be used: %s. The certificates from "
                "before stay in force: %s. Correct the files; they are read again when they change",
                problem,
                _told(self.in_force),
            )

    def _put_in_force(self, new: Credentials) -> None:
        of_peers = peer_tls(self._config, new)
        self._renew_http()
        self._replace_peer_tls(of_peers)
        self.client_port.replace(new)
        self.token_port.replace(new)
        dropped = set(certificates_in(self.in_force.ca)) - set(certificates_in(new.ca))
        self._dropped += dropped
        self.in_force, self.peer_tls = new, of_peers
        logger.info("new certificates are in force for new connections: %s", _told(new))
        for each in dropped:
            logger.warning(
                "%s is trusted no more: new connections with certificates that it has signed are "
                "refused, and those that are open end within tls.connection_age_ms",
                facts_of(each).subject,
            )


class ExpiryWarnings:
    """Warns of certificates that end soon, once for each of `WARNED_DAYS`, and when they ended."""

    def __init__(self) -> None:
        self._told: set[tuple[str, int]] = set()

    def look(self, credentials: Credentials, now: datetime | None = None) -> None:
        """Warn of what ends soon; `now` is this moment, if it is not given."""
        now = now or datetime.now(UTC)
        for each in _all_in(credentials):
            rest = each.not_valid_after_utc - now
            bounds = (0, *(days for days in WARNED_DAYS if _is_long(each, days)))
            days = next((days for days in bounds if rest <= timedelta(days=days)), None)
            if days is None:
                continue
            key = (fingerprint(each), days)
            if key not in self._told:
                self._told.add(key)
                facts = facts_of(each)
                logger.log(
                    logging.ERROR if days <= WARNED_DAYS[0] else logging.WARNING,
                    "the certificate of the %s %s is valid until %s (%s). New connections that "
                    "need it are refused from then on. Renew it: a node takes new files while it "
                    "runs (docs/operations/certificates.md)",
                    facts.kind,
                    facts.subject,
                    written(facts.ends),
                    left(facts.ends, now),
                )


def _is_long(certificate: x509.Certificate, days: int) -> bool:
    """Return whether so many days are a small part of a certificate's time.

    One that is made for a day is renewed in time each day, and none of them is worth a warning.
    """
    lasts = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    return lasts >= 3 * timedelta(days=days)


def _all_in(credentials: Credentials) -> list[x509.Certificate]:
    try:
        return credentials.certificates()
    except ValueError:  # the ports say what is broken
        return []


def _told(credentials: Credentials) -> str:
    """Describe the own certificate and the authorities, for the log."""
    own, *_ = map(facts_of, certificates_in(credentials.certificate))
    trusted = ", ".join(facts_of(each).subject for each in certificates_in(credentials.ca))
    return (
        f"{own.subject}, fingerprint {own.fingerprint}, valid until {written(own.ends)}; trusted "
        f"for clients: {trusted}"
    )


def _seen(files: Sequence[Path]) -> Seen:
    return tuple(map(seen_of, files))


def seen_of(file: Path) -> tuple[int, int, int]:
    """Return when a file has changed, its size and its number; (0, 0, 0) where there is none."""
    try:
        found = file.stat()
    except OSError:
        return (0, 0, 0)
    return (found.st_mtime_ns, found.st_size, found.st_ino)

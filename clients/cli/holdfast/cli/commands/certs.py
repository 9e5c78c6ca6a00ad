"""`holdfast certs`: an authority in a directory, and certificates for nodes and clients.

Works on files, but for the last three commands, which ask a cluster. A node and a client take new
files while they run, so a renewal needs no restart.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import click

from holdfast.cli.ending import fail, print_json
from holdfast.cli.names import member_name
from holdfast.cli.options import as_json, asks_cluster, refuse, show_json, table
from holdfast.cli.render.speaking import say, say_lines
from holdfast.cli.render.times import instant
from holdfast.raft.transport.peer_names import SCHEME, node_uri
from holdfast.server.security.authority_folder import (
    AuthorityFolder,
    CertificatesRefused,
    create,
)
from holdfast.server.security.certificate_facts import certificates_in, facts_of, left, written
from holdfast.server.security.certificates import (
    AUTHORITY_DAYS,
    CERTIFICATE_DAYS,
    Party,
    certificate_pem,
)
from holdfast.server.security.client_port import principal_of
from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import events_pb2 as ev

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cryptography import x509

    from holdfast.cli.connect import Cluster
    from holdfast.server.security.certificate_facts import Facts

DAYS_MAX: Final = 36_500
F = TypeVar("F", bound="Callable[..., None]")
_PLAIN: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")
_FINGERPRINT: Final = re.compile(r"[0-9a-fA-F]{2}(:?[0-9a-fA-F]{2}){31}")
_NODE, _CLIENT = "node", "client"

_directory = click.option(
    "--dir",
    "directory",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the authority is, and what it has issued.",
)


def _days(default: int) -> Callable[[F], F]:
    return click.option(
        "--days",
        type=click.IntRange(1, DAYS_MAX),
        default=default,
        show_default=True,
        help="How long it is valid.",
    )


@contextmanager
def _refusals() -> Iterator[None]:
    """End the command with a sentence for what was refused, and for what the disk refused."""
    try:
        yield
    except CertificatesRefused as error:
        fail(str(error))
    except OSError as error:
        fail(
            f"cannot write {error.filename or 'a file'}: {error.strerror}. Run this as a user who "
            "may write there; what was written so far is whole, and the command can be repeated"
        )


@click.group()
def certs() -> None:
    """Make an authority; issue, renew, look at and revoke certificates."""


@certs.command()
@_directory
@click.option("--name", default="cluster", show_default=True, help="What the authority is called.")
@_days(AUTHORITY_DAYS)
def init(directory: Path, name: str, days: int) -> None:
    """Make an authority in DIR/authority. Keep its key.pem off the nodes."""
    with _refusals():
        made = create(directory, name, days)
    _made("authority", directory / "authority", made)


@certs.command()
@_directory
@click.argument("kind", type=click.Choice([_NODE, _CLIENT]))
@click.argument("name", callback=member_name)
@click.option("--cluster", "cluster_id", help="Of a node: the cluster.id in its file.")
@click.option(
    "--host",
    "hosts",
    multiple=True,
    help="Of a node: a name or address at which clients reach it; repeated for each.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder for its files; default: NAME in DIR.",
)
@_days(CERTIFICATE_DAYS)
def issue(
    directory: Path,
    kind: str,
    name: str,
    cluster_id: str | None,
    hosts: tuple[str, ...],
    out: Path | None,
    days: int,
) -> None:
    """Make a certificate for a node, or for a client.

    NAME is a node's as in its file; for a client a name, which makes the principal
    holdfast://client/NAME, or a URI, which is the principal itself.
    """
    if kind == _NODE:
        party = _node(name, cluster_id, hosts)
    elif cluster_id or hosts:
        raise click.UsageError("--cluster and --host are a node's: a client's certificate has none")
    else:
        party = Party(name, name if "://" in name else f"{SCHEME}client/{name}")
    folder = out or directory / _folder_name(name)
    with _refusals():
        made = AuthorityFolder(directory).issue(folder, party, days)
    _made(f"{kind} {name}", folder, made)


def _node(name: str, cluster_id: str | None, hosts: tuple[str, ...]) -> Party:
    if not cluster_id or not hosts:
        raise click.UsageError(
            "a node's certificate needs --cluster, the cluster.id in its file, and --host, a name "
            "or address at which clients reach it"
        )
    return Party(name, node_uri(cluster_id, name), hosts)


def _folder_name(name: str) -> str:
    """Return the folder of a name; of a URI its last part."""
    last = name.rstrip("/").rpartition("/")[2] if "://" in name else name
    if not _PLAIN.fullmatch(last):
        raise click.UsageError(f"{name!r} does not do as a folder's name. Give --out one")
    return last


@certs.command()
@_directory
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--within",
    type=click.IntRange(0, DAYS_MAX),
    help="Only what expires within so many days; for a timer that runs each day.",
)
@_days(CERTIFICATE_DAYS)
def renew(directory: Path, names: tuple[str, ...], within: int | None, days: int) -> None:
    """Replace certificates and their keys by new ones of the same names; all in DIR by default.

    Their users take the new files while they run. What lies elsewhere by now has to be copied
    there: the key first, then the certificate.
    """
    with _refusals():
        authority = AuthorityFolder(directory)
        found = [authority.find(_place(directory, name)) for name in names]
        for each in found or authority.issued():
            if within is None or _ends_within(each.certificate, within):
                _made(f"{each.folder.name} anew", each.folder, authority.renew(each, days))


def _place(directory: Path, name: str) -> Path:
    """Return the folder that is meant: one in DIR, or a path."""
    return Path(name) if "/" in name else directory / name


def _ends_within(certificate: x509.Certificate, days: int) -> bool:
    return certificate.not_valid_after_utc - datetime.now(UTC) <= timedelta(days=days)


@certs.group()
def authority() -> None:
    """Replace the authority by a new one, in three steps, while everything runs."""


@authority.command("next")
@_directory
@_days(AUTHORITY_DAYS)
def next_authority(directory: Path, days: int) -> None:
    """Step 1: make the next authority, and have both trusted. Give everybody the new ca.pem."""
    with _refusals():
        made = AuthorityFolder(directory).begin_next(days)
    _made("the next authority", directory / "authority", made)
    say("every ca.pem in that directory now trusts both; when all nodes and clients have theirs:")
    say(f"    holdfast certs authority switch --dir {directory}")


@authority.command()
@_directory
def switch(directory: Path) -> None:
    """Step 2: the next authority signs from now on. Renew all certificates."""
    with _refusals():
        signs = AuthorityFolder(directory).switch()
    say(f"{signs.subject.rfc4514_string()} signs from now on. Renew every certificate:")
    say(f"    holdfast certs renew --dir {directory}")


@authority.command()
@_directory
def finish(directory: Path) -> None:
    """Step 3: the old authority is trusted no more. Give everybody the new ca.pem."""
    with _refusals():
        dropped = AuthorityFolder(directory).finish()
    for each in dropped:
        say(f"{each.subject.rfc4514_string()} is trusted no more")
    if not dropped:
        say("one authority is trusted already: there is nothing to do")


@certs.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@as_json
def inspect(files: tuple[Path, ...], *, as_json: bool) -> None:
    """Show every certificate in these files."""
    shown = [(file, each) for file in files for each in _read(file)]
    if as_json:
        print_json([_for_programs(file, each) for file, each in shown])
        return
    for file, each in shown:
        say_lines(_lines(file, each))


def _read(file: Path) -> list[x509.Certificate]:
    try:
        return certificates_in(file.read_bytes())
    except OSError as error:
        fail(f"cannot read {file}: {error.strerror}")
    except ValueError as error:
        fail(f"{file} cannot be shown: {error}")


def _lines(file: Path, certificate: x509.Certificate) -> Iterator[str]:
    facts = facts_of(certificate)
    yield f"{file}: {facts.kind} {facts.subject}"
    if facts.kind != "authority":
        yield f"  principal    {_principal(certificate)}"
        yield f"  names        {', '.join(facts.names) or '-'}"
    yield f"  signed by    {facts.issuer}"
    yield f"  valid        {written(facts.begins)} to {written(facts.ends)}, {left(facts.ends)}"
    yield f"  fingerprint  {facts.fingerprint}"


def _for_programs(file: Path, certificate: x509.Certificate) -> dict[str, object]:
    facts: Facts = facts_of(certificate)
    return {
        "file": str(file),
        "kind": facts.kind,
        "subject": facts.subject,
        "principal": _principal(certificate),
        "names": list(facts.names),
        "issuer": facts.issuer,
        "not_before": facts.begins.isoformat(),
        "not_after": facts.ends.isoformat(),
        "fingerprint": facts.fingerprint,
    }


def _principal(certificate: x509.Certificate) -> str:
    return principal_of(certificate_pem(certificate))


def _made(what: str, folder: Path, certificate: x509.Certificate) -> None:
    """Tell what was made, where it is, and when it ends."""
    facts = facts_of(certificate)
    say(f"made {what} in {folder}, valid until {written(facts.ends)} ({left(facts.ends)})")


# --- what a cluster refuses ---

_certificates = click.argument(
    "certificates", nargs=-1, required=True, metavar="FINGERPRINT|FILE..."
)


@certs.command()
@_certificates
@click.option("--reason", default="", help="Why, for people: it is shown to whoever is refused.")
@as_json
@asks_cluster
def revoke(cluster: Cluster, certificates: tuple[str, ...], reason: str, *, as_json: bool) -> None:
    """Have every node refuse certificates, and end what is open with them.

    Each is the certificate's file, or its SHA-256 as `holdfast certs inspect` shows it. By the file
    it is known when it expires, so that the revocation is forgotten after that. If a node's or your
    own is to be revoked, renew it first.
    """
    given = [_revocation(each, reason) for each in certificates]
    _alter(cluster, a.AlterRevocationsRequest(revoked=given), as_json=as_json)
    if not as_json:
        for each in given:
            say(f"revoked: {_told(each)}")


@certs.command()
@_certificates
@as_json
@asks_cluster
def unrevoke(cluster: Cluster, certificates: tuple[str, ...], *, as_json: bool) -> None:
    """Have the nodes accept certificates again that were revoked by mistake."""
    lifted = [_revocation(each, "").fingerprint for each in certificates]
    known = {each.fingerprint for each in _revocations(cluster).revocations}
    if unknown := [each for each in lifted if each not in known]:
        fail(f"{unknown[0]} is not revoked. `holdfast certs revoked` shows what is")
    _alter(cluster, a.AlterRevocationsRequest(lifted=lifted), as_json=as_json)
    if not as_json:
        for fingerprint in lifted:
            say(f"accepted again: {fingerprint}")


@certs.command()
@as_json
@asks_cluster
def revoked(cluster: Cluster, *, as_json: bool) -> None:
    """Show the certificates that the cluster refuses."""
    response = _revocations(cluster)
    if as_json:
        show_json(response)
        return
    table(
        ("FINGERPRINT", "PRINCIPAL", "EXPIRES", "REASON"), map(_revoked_row, response.revocations)
    )


def _revocations(cluster: Cluster) -> a.DescribeRevocationsResponse:
    response = cluster.call(a.DescribeRevocationsRequest(), a.DescribeRevocationsResponse)
    refuse(response, "the revoked certificates")
    return response


def _alter(cluster: Cluster, request: a.AlterRevocationsRequest, *, as_json: bool) -> None:
    response = cluster.change(request, a.AlterRevocationsResponse)
    if as_json:
        show_json(response)
    refuse(response, "the revoked certificates")


def _revoked_row(each: ev.Revocation) -> Sequence[object]:
    expires = instant(each.expires_ms) if each.expires_ms else "-"
    return (each.fingerprint, each.principal or "-", expires, each.reason or "-")


def _told(each: ev.Revocation) -> str:
    return f"{each.fingerprint} of {each.principal}" if each.principal else each.fingerprint


def _revocation(given: str, reason: str) -> ev.Revocation:
    """Read what a fingerprint or a file says of a certificate; the first one of a file is meant."""
    if _FINGERPRINT.fullmatch(given):
        return ev.Revocation(fingerprint=given.replace(":", "").lower(), reason=reason)
    try:
        (certificate, *_) = certificates_in(Path(given).read_bytes())
    except OSError as error:
        fail(
            f"{given} is no fingerprint (64 digits 0-9 and a-f), and cannot be read as a file: "
            f"{error.strerror}"
        )
    except ValueError as error:
        fail(f"{given} has no certificate that can be revoked: {error}")
    facts = facts_of(certificate)
    if facts.kind == "authority":
        fail(
            f"{given} is an authority's certificate. To trust nothing more that it has signed, "
            "replace it: `holdfast certs authority next`"
        )
    return ev.Revocation(
        fingerprint=facts.fingerprint,
        principal=principal_of(certificate_pem(certificate)),
        expires_ms=int(facts.ends.timestamp() * 1000),
        reason=reason,
    )

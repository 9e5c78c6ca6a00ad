"""An authority on disk: what it issues, how it is renewed, and how the next one follows it."""

from __future__ import annotations

import ssl
import stat
from typing import TYPE_CHECKING

import pytest

from holdfast.raft.transport.peer_names import node_uri
from holdfast.server.security.authority_folder import AuthorityFolder, CertificatesRefused, create
from holdfast.server.security.certificate_facts import certificates_in, facts_of, pair_problem
from holdfast.server.security.certificates import Party

if TYPE_CHECKING:
    from pathlib import Path

NODE = Party("n", node_uri("c", "n"), ("127.0.0.1", "n.example"))
CLIENT = Party("billing", "holdfast://client/billing")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with an authority, a node's certificate and a client's."""
    create(tmp_path, "c")
    authority = AuthorityFolder(tmp_path)
    authority.issue(tmp_path / "n", NODE, 365)
    authority.issue(tmp_path / "billing", CLIENT, 365)
    return tmp_path


def trusts(node: Path, client: Path) -> bool:
    """Whether each of two folders' ca.pem lets the other's certificate through a handshake."""
    there, here = ssl.MemoryBIO(), ssl.MemoryBIO()
    contexts = []
    for folder, protocol in ((node, ssl.PROTOCOL_TLS_SERVER), (client, ssl.PROTOCOL_TLS_CLIENT)):
        context = ssl.SSLContext(protocol)
        context.check_hostname, context.verify_mode = False, ssl.CERT_REQUIRED
        context.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
        context.load_verify_locations(folder / "ca.pem")
        contexts.append(context)
    sides = (
        contexts[1].wrap_bio(here, there),
        contexts[0].wrap_bio(there, here, server_side=True),
    )
    done = set()
    for _ in range(4):
        for side in sides:
            try:
                side.do_handshake()
                done.add(side)
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLCertVerificationError:
                return False
    return len(done) == len(sides)


def named(folder: Path) -> tuple[str, ...]:
    """The names in a folder's certificate."""
    return facts_of(certificates_in((folder / "certificate.pem").read_bytes())[0]).names


def test_what_is_issued_names_the_party_and_its_key_is_its_owners_alone(place: Path) -> None:
    """A node is known by its URI (ADR 18), a client by its principal."""
    assert named(place / "n") == (f"URI:{node_uri('c', 'n')}", "IP:127.0.0.1", "DNS:n.example")
    assert named(place / "billing") == ("URI:holdfast://client/billing",)
    for key in place.glob("*/key.pem"):
        assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert trusts(place / "n", place / "billing")


def test_nothing_is_overwritten(place: Path) -> None:
    """Whoever trusts an authority, or uses a key, would be cut off by another in its place."""
    before = {path: path.read_bytes() for path in place.rglob("*.pem")}
    with pytest.raises(CertificatesRefused, match="is there already"):
        create(place, "again")
    with pytest.raises(CertificatesRefused, match="is there already"):
        AuthorityFolder(place).issue(place / "n", NODE, 365)
    with pytest.raises(CertificatesRefused, match="holds the authority"):
        AuthorityFolder(place).issue(place / "authority", NODE, 365)

    assert {path: path.read_bytes() for path in place.rglob("*.pem")} == before


def test_a_renewed_certificate_names_the_same_party_with_a_new_key(place: Path) -> None:
    before = {path: path.read_bytes() for path in (place / "n").iterdir()}
    names = named(place / "n")
    authority = AuthorityFolder(place)
    made = authority.renew(authority.find(place / "n"), 30)
    after = {path: path.read_bytes() for path in (place / "n").iterdir()}

    assert named(place / "n") == names
    assert (made.not_valid_after_utc - made.not_valid_before_utc).days == 30
    assert [path.name for path in before if before[path] == after[path]] == ["ca.pem"]
    assert not pair_problem(after[place / "n/certificate.pem"], after[place / "n/key.pem"])
    assert facts_of(made).kind == "node"


def test_a_certificate_of_another_authority_is_not_renewed(place: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    create(other, "other")
    AuthorityFolder(other).issue(place / "stranger", CLIENT, 365)

    with pytest.raises(CertificatesRefused, match="signed by another authority"):
        AuthorityFolder(place).find(place / "stranger")
    assert [each.folder.name for each in AuthorityFolder(place).issued()] == ["billing", "n"]


def test_no_certificate_outlives_its_authority(tmp_path: Path) -> None:
    """Else it would be refused while it says that it is valid."""
    ends = create(tmp_path, "c", days=10).not_valid_after_utc
    made = AuthorityFolder(tmp_path).issue(tmp_path / "n", NODE, 365)

    assert made.not_valid_after_utc == ends


def test_at_every_step_from_one_authority_to_the_next_all_trust_each_other(place: Path) -> None:
    """One party after the other is renewed, and none is ever refused."""
    node, client = place / "n", place / "billing"
    AuthorityFolder(place).begin_next()
    assert trusts(node, client)
    AuthorityFolder(place).switch()
    assert trusts(node, client)
    authority = AuthorityFolder(place)
    authority.renew(authority.find(client), 365)
    assert trusts(node, client)
    authority.renew(authority.find(node), 365)
    assert trusts(node, client)
    (dropped,) = AuthorityFolder(place).finish()

    assert trusts(node, client)
    assert len(AuthorityFolder(place).trusted) == 1
    assert dropped.subject != AuthorityFolder(place).authority.certificate.subject
    assert {path.name for path in (place / "authority").iterdir()} == {"ca.pem", "key.pem"}


def test_what_the_dropped_authority_signed_is_refused(place: Path, tmp_path: Path) -> None:
    old = tmp_path / "kept"
    old.mkdir()
    for path in (place / "billing").iterdir():
        (old / path.name).write_bytes(path.read_bytes())
    AuthorityFolder(place).begin_next()
    AuthorityFolder(place).switch()
    authority = AuthorityFolder(place)
    for each in list(authority.issued()):
        if each.folder.name != "kept":
            authority.renew(each, 365)
    with pytest.raises(CertificatesRefused, match="would be dropped: kept"):
        AuthorityFolder(place).finish()
    (old / "certificate.pem").rename(tmp_path / "elsewhere.pem")
    AuthorityFolder(place).finish()
    (tmp_path / "elsewhere.pem").rename(old / "certificate.pem")

    assert not trusts(place / "n", old)


def test_the_steps_are_refused_out_of_turn(place: Path) -> None:
    with pytest.raises(CertificatesRefused, match="certs authority next"):
        AuthorityFolder(place).switch()
    assert AuthorityFolder(place).finish() == []
    AuthorityFolder(place).begin_next()
    with pytest.raises(CertificatesRefused, match="certs authority switch"):
        AuthorityFolder(place).finish()


def test_a_step_that_was_cut_off_is_finished_by_doing_it_again(place: Path) -> None:
    made = AuthorityFolder(place).begin_next()
    old = (place / "n" / "ca.pem").read_bytes()[:100]
    (place / "n" / "ca.pem").write_bytes(old)  # as if the folder had not been reached

    assert AuthorityFolder(place).begin_next() == made
    assert len(certificates_in((place / "n" / "ca.pem").read_bytes())) == 2


def test_a_key_of_another_authority_is_told(place: Path, tmp_path: Path) -> None:
    create(tmp_path / "other", "other")
    (place / "authority/key.pem").write_bytes((tmp_path / "other/authority/key.pem").read_bytes())

    with pytest.raises(CertificatesRefused, match="belongs to no certificate"):
        AuthorityFolder(place)
    with pytest.raises(CertificatesRefused, match="certs init"):
        AuthorityFolder(tmp_path / "nowhere")


def test_the_next_authority_has_another_name_however_long_the_name_is(tmp_path: Path) -> None:
    """ADR 27: of two authorities with one name, TLS libraries may try the first only."""
    first = create(tmp_path, "n" * 100)
    for _ in range(2):
        authority = AuthorityFolder(tmp_path)
        second = authority.begin_next()

        assert second.subject != first.subject
        authority.switch()
        authority.finish()
        first = second

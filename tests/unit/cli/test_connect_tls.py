"""What goes wrong with TLS is one sentence: what, which file or address, and what to do."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

import grpc
import pytest
from click.testing import CliRunner

from holdfast.cli import connect
from holdfast.cli.main import main
from holdfast.server.config.node_config import Tls
from holdfast.server.security import certificates
from holdfast.server.security.certificates import Authority, issue, make_authority
from holdfast.server.security.client_port import ClientPort
from holdfast.server.security.credentials import read_credentials

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

COMMANDS = [("cluster", "status"), ("topic", "list"), ("log", "tail", "--from", "1")]
ADVICE = "Is the cluster running"


class Place(NamedTuple):
    """Two listeners that answer nothing, and files to come with."""

    secure: str
    plain: str
    authority: Authority
    mine: Tls
    stranger: Tls


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.setattr(connect, "UNCONNECTED_MS", 0)
    authority, other = make_authority("ours"), make_authority("theirs")
    node = issue(authority, tmp_path / "node", "node", "holdfast://node/n", ["127.0.0.1"])
    mine = issue(authority, tmp_path / "mine", "me", "holdfast://client/me", [])
    stranger = issue(other, tmp_path / "stranger", "me", "holdfast://client/me", [])
    server = grpc.server(ThreadPoolExecutor(1))
    secure = server.add_secure_port("127.0.0.1:0", ClientPort(read_credentials(node)).credentials)
    plain = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield Place(f"127.0.0.1:{secure}", f"127.0.0.1:{plain}", authority, mine, stranger)
    server.stop(0)


def told(code: int, *arguments: str) -> str:
    """The one sentence with which a command ended."""
    ended = CliRunner().invoke(main, arguments)
    lines = ended.stderr.splitlines()
    assert ended.exit_code == code, ended.output
    assert len(lines) == 1, ended.stderr
    assert "Traceback" not in lines[0]
    assert ".." not in lines[0].replace("...", "")
    return lines[0]


@pytest.mark.parametrize("command", COMMANDS)
def test_who_comes_without_tls_hears_of_the_option(place: Place, command: tuple[str, ...]) -> None:
    sentence = told(3, *command, "--address", place.secure)

    assert place.secure in sentence
    assert "--tls DIR" in sentence
    assert ADVICE not in sentence


@pytest.mark.parametrize("command", COMMANDS)
def test_a_certificate_of_another_authority_is_named(
    place: Place, command: tuple[str, ...]
) -> None:
    shutil.copy(place.stranger.certificate, place.mine.certificate)
    shutil.copy(place.stranger.key, place.mine.key)
    folder = str(place.mine.ca.parent)
    sentence = told(3, *command, "--address", place.secure, "--tls", folder)

    assert place.secure in sentence
    assert str(place.mine.certificate) in sentence
    assert "did not issue" in sentence


@pytest.mark.parametrize("name", ["theirs", "ours"])
def test_a_node_of_another_authority_is_told_from_one_that_is_away(place: Place, name: str) -> None:
    """Also if the two authorities have one name: then only the signature is wrong."""
    folder = str(place.stranger.ca.parent)
    issue(make_authority(name), place.stranger.ca.parent, "me", "holdfast://client/me", [])
    sentence = told(3, "topic", "list", "--address", place.secure, "--tls", folder)

    assert f"{place.secure}: it shows a certificate" in sentence
    assert str(place.stranger.ca) in sentence
    assert "SSL" not in sentence


def test_a_name_that_the_certificate_lacks_is_told(place: Place) -> None:
    address = place.secure.replace("127.0.0.1", "localhost")
    folder = str(place.mine.ca.parent)
    sentence = told(3, "topic", "list", "--address", address, "--tls", folder)

    assert address in sentence
    assert "other names" in sentence


def test_a_name_that_no_resolver_takes_ends_the_command_so(place: Place) -> None:
    """By the installed gRPC's own words; such a name asks no name server."""
    del place
    assert "cannot be resolved" in told(3, "group", "list", "--address", "bad name:7400")


def test_a_node_without_tls_is_told(place: Place) -> None:
    folder = str(place.mine.ca.parent)
    sentence = told(3, "cluster", "status", "--address", place.plain, "--tls", folder)

    assert f"{place.plain}: it does not speak TLS" in sentence


@pytest.mark.parametrize("name", ["ca.pem", "certificate.pem", "key.pem"])
@pytest.mark.parametrize("content", [b"garbage", None])
def test_a_file_that_cannot_be_used_is_named_before_any_call(
    place: Place, name: str, content: bytes | None
) -> None:
    """An error of this machine, so code 1; nothing of [tls], which is the nodes' own."""
    file = place.mine.ca.parent / name
    file.unlink()
    if content is not None:
        file.write_bytes(content)
    arguments = ("topic", "list", "--address", place.secure, "--tls", str(file.parent))
    sentence = told(1, *arguments)

    assert str(file) in sentence
    assert "--tls" in sentence
    assert "[tls]" not in sentence


def test_a_key_of_another_certificate_is_named(place: Place) -> None:
    shutil.copy(place.stranger.key, place.mine.key)
    folder = str(place.mine.ca.parent)
    sentence = told(1, "topic", "list", "--address", place.secure, "--tls", folder)

    assert str(place.mine.key) in sentence
    assert "does not belong" in sentence


@pytest.mark.parametrize(
    ("moved", "words"), [(timedelta(days=-4_000), "expired at"), (timedelta(2), "not valid before")]
)
def test_a_certificate_out_of_its_time_is_named(
    place: Place, monkeypatch: pytest.MonkeyPatch, moved: timedelta, words: str
) -> None:
    class Shifted(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:  # type: ignore[override]  # always UTC here
            del tz
            return datetime.now(UTC) + moved

    monkeypatch.setattr(certificates, "datetime", Shifted)
    folder = place.mine.ca.parent
    issue(place.authority, folder, "me", "holdfast://client/me", [])
    sentence = told(1, "topic", "list", "--address", place.secure, "--tls", str(folder))

    assert str(place.mine.certificate) in sentence
    assert words in sentence


def test_nobody_at_the_address_is_still_what_it_was(place: Place) -> None:
    del place
    assert ADVICE in told(3, "topic", "list", "--address", "127.0.0.1:1")
    assert ADVICE in told(3, "cluster", "status", "--address", "127.0.0.1:1")

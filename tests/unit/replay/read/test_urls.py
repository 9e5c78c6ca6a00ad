"""A URL is refused, not reached, or read: whatever a store raises says nothing of the log (S22)."""

from __future__ import annotations

import errno
import socket
from pathlib import Path

import pytest

from holdfast.replay.findings import WrongUse
from holdfast.replay.read.urls import NotReached, fetch, is_url, local_file, opened, reached


def test_a_path_is_no_url() -> None:
    assert not is_url("/data/n1")
    assert not is_url("n1:old/segments")
    assert is_url("s3://bucket/n1")


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("nothing://bucket/n1", "Protocol not known"),
        ("memory://n1/../n2", "dots"),
        ("memory://n1?version=1", "query"),
        ("zip://n1::memory://n1.zip", "chain"),
        ("http://[::1/n1", "is no URL"),
    ],
)
def test_an_address_of_which_none_within_can_be_made_is_wrong_use(url: str, why: str) -> None:
    """Exit code 2 (docs/operations/config.md)."""
    with pytest.raises(WrongUse, match=why) as caught:
        opened(url)

    assert "\n" not in str(caught.value)


def test_a_password_in_a_url_is_refused_and_not_shown() -> None:
    """It would stand in each finding, and in what workers are sent."""
    with pytest.raises(WrongUse) as caught:
        opened("sftp://me:secret@host/n1")

    assert "secret" not in str(caught.value)


def test_a_store_whose_package_is_not_installed_is_named_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def lacking(_url: str) -> None:
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr("fsspec.core.url_to_fs", lacking)

    with pytest.raises(WrongUse, match="Install s3fs"):
        opened("s3://bucket/n1")


def test_a_server_that_does_not_answer_is_not_reached(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]  # nothing listens there once it is closed

    with pytest.raises(NotReached, match=f"http://127.0.0.1:{port}/n1 cannot be read"):
        fetch(f"http://127.0.0.1:{port}/n1", tmp_path / "copy")


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (PermissionError(errno.EACCES, "Access Denied"), "may not be read: Access Denied"),
        (OSError(errno.ENOSPC, "full"), "No space left on device"),  # `spark.failures` looks for it
        (RuntimeError("no\ncredentials"), "cannot be read: no credentials"),
        (TimeoutError(), "cannot be read: TimeoutError"),
    ],
)
def test_what_a_store_raises_becomes_one_sentence(raised: Exception, said: str) -> None:
    with pytest.raises(NotReached, match=said) as caught, reached("s3://bucket/n1"):
        raise raised

    assert "\n" not in str(caught.value)


def test_what_is_not_there_is_not_unreached(tmp_path: Path) -> None:
    """A file that is gone is damage; a store that does not answer is none."""
    with pytest.raises(FileNotFoundError, match="there is nothing at memory://urls/gone"):
        fetch("memory://urls/gone", tmp_path / "copy")


def test_a_path_is_read_where_it_is() -> None:
    with local_file("/data/n1/file") as path:
        assert path == "/data/n1/file"


def test_a_file_behind_a_url_is_a_copy_for_the_moment() -> None:
    store, name = opened("memory://urls/file")
    store.pipe_file(name, b"content")

    with local_file("memory://urls/file") as path:
        assert Path(path).read_bytes() == b"content"
        assert Path(path).name == "file"

    assert not Path(path).exists()

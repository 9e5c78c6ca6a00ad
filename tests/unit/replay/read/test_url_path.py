"""A path behind a URL tells what a `Path` does, and nothing outside of its folder (S22)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from holdfast.replay.read.file_sums import sum_of
from holdfast.replay.read.node_logs import node_log, node_logs
from holdfast.replay.read.url_path import UrlPath, archive_path, is_there
from holdfast.replay.read.urls import NotReached
from holdfast.storage.segments.archive_path import ArchivePath
from spark.archive_damage import sound_nodes


def below(folder: ArchivePath, depth: int = 3) -> Iterator[tuple[Any, ...]]:
    """All that is told of the entries below a folder."""
    for each in sorted(folder.iterdir()):
        size = 0 if each.is_dir() else each.stat().st_size
        kind = (each.is_dir(), each.is_symlink(), each.exists(), size)
        yield (each.name, each.stem, each.suffix, each.parent.name, *kind)
        if depth > 1 and each.is_dir() and not each.is_symlink():
            yield from below(each, depth - 1)


@pytest.mark.parametrize("scheme", ["file", "memory"])
def test_a_url_tells_what_a_path_does(scheme: str, tmp_path: Path) -> None:
    folder = tmp_path / "n"
    sound_nodes(folder)
    url = f"{scheme}://{folder}"
    if scheme == "memory":
        MemoryFileSystem().put(str(folder), str(folder), recursive=True)

    assert list(below(UrlPath(url))) == list(below(folder))
    assert [log.node for log in node_logs(map(archive_path, (f"{url}/n1", f"{url}/n2/")))] == [
        "n1",
        "n2",
    ]


class Quiet(SimpleHTTPRequestHandler):
    """A server of pages that list folders."""

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    """The URL at which the folder `n` of the test is served."""
    (tmp_path / "n").mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=tmp_path)) as server:
        running = Thread(target=server.serve_forever)
        running.start()
        yield f"http://127.0.0.1:{server.server_port}/n"
        server.shutdown()
        running.join()


def test_a_server_of_pages_tells_what_a_path_does(served: str, tmp_path: Path) -> None:
    """Its pages tell no sizes: these are asked for."""
    sound_nodes(tmp_path / "n")

    assert list(below(UrlPath(served))) == list(below(tmp_path / "n"))
    there, here = node_log(archive_path(f"{served}/n1")), node_log(tmp_path / "n" / "n1")
    assert [segment.manifest for segment in there.segments] == [s.manifest for s in here.segments]
    assert sum_of(there.segments[0].files[0]) == sum_of(here.segments[0].files[0])


def test_a_link_is_told_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "n1" / "inner").mkdir(parents=True)
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "file").write_text("")
    (tmp_path / "n1" / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "n1" / "pipe")
    root = UrlPath(f"file://{tmp_path}/n1")

    assert (root / "link").is_symlink()
    assert (root / "link").is_dir()
    assert not (root / "link" / "file").exists()
    assert str((root / "link").readlink()) == str(tmp_path / "secret")
    assert (root / "pipe").lstat().st_mode == 0o010000
    assert (root / "inner").is_dir()


def test_no_name_leads_above_the_folder() -> None:
    root = UrlPath("memory://above/n1")

    assert root.parent == root
    assert (root / "segments").parent == root
    assert not (root / ".." / "n2").exists()


class Lying:
    """A server that names files outside of the folder that it was asked for."""

    def invalidate_cache(self) -> None:
        """Nothing is kept."""

    def find(self, path: str, **_: object) -> Mapping[str, Any]:
        names = [f"{path}/../other/a", "/etc/passwd", f"{path}/./b", f"{path}x/c", f"{path}/d/e"]
        return {name: {"name": name, "size": 1, "type": "file"} for name in names}


def test_what_a_server_names_outside_of_the_folder_is_not_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fsspec.core.url_to_fs", lambda _: (Lying(), "/n1"))

    assert [name for name, *_ in below(UrlPath("memory://n1"))] == ["d", "e"]


def test_a_folder_that_may_not_be_listed_is_not_taken_for_an_empty_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Else the node would be accused of what it lacks."""
    (tmp_path / "n1" / "segments").mkdir(parents=True)
    listed = os.scandir

    def refused(path: str) -> Any:  # noqa: ANN401 - as os.scandir has it
        if str(path).endswith("segments"):
            raise PermissionError(13, "Permission denied")
        return listed(path)

    monkeypatch.setattr("os.scandir", refused)

    with pytest.raises(NotReached, match="may not be read: Permission denied"):
        (UrlPath(f"file://{tmp_path}/n1") / "segments").exists()


def test_an_empty_folder_is_one_and_nothing_is_none(tmp_path: Path) -> None:
    """As of a path: code 1 for what holds no log, code 2 for what is not there."""
    assert UrlPath(f"file://{tmp_path}").is_dir()
    assert not UrlPath(f"file://{tmp_path}/gone").is_dir()
    assert not UrlPath("memory://gone").is_dir()


def test_whether_a_file_is_there_is_asked_anew(tmp_path: Path) -> None:
    file = tmp_path / "file"
    url = f"file://{file}"
    assert not is_there(url)
    file.write_text("")

    assert is_there(url)
    assert is_there(str(file))

"""The archive of classes makes starts cheaper; whatever is wrong with it, Spark's Java starts."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from holdfast.replay.spark.class_archive import java_options
from holdfast.replay.spark.java import find_java

COMPLETE = (0xF00BABA8).to_bytes(4, "little") + b"the rest"


@pytest.fixture
def java(tmp_path: Path) -> Path:
    """A Java that has a base archive."""
    program = tmp_path / "jvm" / "bin" / "java"
    base = tmp_path / "jvm" / "lib" / "server" / "classes.jsa"
    for path in (program, base):
        path.parent.mkdir(parents=True)
        path.write_bytes(b"x")
    return program


@pytest.fixture
def jars(tmp_path: Path) -> Path:
    folder = tmp_path / "jars"
    folder.mkdir()
    (folder / "spark.jar").write_bytes(b"one")
    return folder


def archive_of(options: str) -> Path:
    """The file that options name."""
    return Path(shlex.split(options)[0].partition("=")[2])


def test_the_first_jvm_writes_the_archive_and_the_next_ones_use_it(
    java: Path, jars: Path, tmp_path: Path
) -> None:
    first = java_options(java, jars, tmp_path / "cache")
    assert first.startswith('"-XX:ArchiveClassesAtExit=')
    archive_of(first).write_bytes(COMPLETE)
    second = java_options(java, jars, tmp_path / "cache")
    assert second.startswith('"-XX:SharedArchiveFile=')
    assert archive_of(second) == archive_of(first)


def test_of_several_jvms_at_once_one_writes_and_after_a_time_another_may(
    java: Path, jars: Path, tmp_path: Path
) -> None:
    first = java_options(java, jars, tmp_path)
    assert java_options(java, jars, tmp_path) == ""
    marker = archive_of(first).with_suffix(".pending")
    os.utime(marker, (0, 0))  # whoever was to write it was killed long ago
    assert java_options(java, jars, tmp_path) == first


def test_an_archive_whose_head_was_never_written_is_not_used(
    java: Path, jars: Path, tmp_path: Path
) -> None:
    first = java_options(java, jars, tmp_path)
    archive_of(first).write_bytes(bytes(8))
    assert "SharedArchiveFile" not in java_options(java, jars, tmp_path)


def test_other_jars_or_another_java_have_another_archive(
    java: Path, jars: Path, tmp_path: Path
) -> None:
    first = archive_of(java_options(java, jars, tmp_path))
    (jars / "spark.jar").write_bytes(b"another")
    second = archive_of(java_options(java, jars, tmp_path))
    (java.parent.parent / "lib" / "server" / "classes.jsa").write_bytes(b"another")
    third = archive_of(java_options(java, jars, tmp_path))
    assert len({first, second, third}) == 3


@pytest.mark.parametrize("lacking", ["base archive", "folder"])
def test_without_a_base_archive_or_a_folder_java_starts_as_ever(
    lacking: str, java: Path, jars: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "cache"
    if lacking == "folder":
        folder.write_text("a file where the folder should be")
    else:
        (java.parent.parent / "lib" / "server" / "classes.jsa").unlink()
    assert java_options(java, jars, folder) == ""


def test_a_folder_that_others_can_write_to_has_no_archive(
    java: Path, jars: Path, tmp_path: Path
) -> None:
    """Java would run what they put there."""
    folder = tmp_path / "var" / "cache" / "holdfast"
    (tmp_path / "var").mkdir()
    (tmp_path / "var").chmod(0o777)
    assert java_options(java, jars, folder) == ""
    (tmp_path / "var").chmod(0o755)
    assert java_options(java, jars, folder)


@pytest.mark.parametrize("place", [0.3, 0.6, 0.9])
def test_java_starts_with_an_archive_whose_bytes_have_changed(place: float, tmp_path: Path) -> None:
    program, jars = find_java(), tmp_path / "jars"
    options = java_options(program, jars, tmp_path)
    if not options:
        pytest.skip("this Java has no base archive")
    subprocess.run([program, *shlex.split(options), "-version"], check=True, capture_output=True)
    archive = archive_of(options)
    archive.chmod(0o600)
    content = bytearray(archive.read_bytes())
    for at in range(int(len(content) * place), int(len(content) * place) + 4096):
        content[at] ^= 0xFF
    archive.write_bytes(content)
    used = java_options(program, jars, tmp_path)
    assert "SharedArchiveFile" in used
    told = [*shlex.split(used), "-Xlog:cds:stderr"]
    ran = subprocess.run([program, *told, "-version"], check=True, capture_output=True)
    assert b"Checksum verification failed" in ran.stderr  # else it would run what it was given
    assert b'version "' in ran.stderr
    assert not ran.stdout

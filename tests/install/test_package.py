"""What an index would be given: source and wheel, described without links that lead nowhere."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from typing import TYPE_CHECKING

import pytest

from tidy.repository import ROOT

if TYPE_CHECKING:
    from email.message import Message
    from pathlib import Path

TWINE = os.environ.get("TWINE") or shutil.which("twine") or ""


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build both from a copy of what is in version control, as a release would."""
    copy, out = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("dist")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True)
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, copy / name)
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(out)]
    subprocess.run(command, cwd=copy, check=True, capture_output=True)
    return out


def metadata(dist: Path) -> Message:
    (wheel,) = dist.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode())


def test_the_source_has_what_a_reader_looks_for(dist: Path) -> None:
    (source,) = dist.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}

    assert {"README.md", "LICENSE", "CHANGELOG.md", "SECURITY.md", "dev"} <= names
    assert {"deploy/docker/Dockerfile", "docs/operations/config.md"} <= names


def test_no_link_of_the_description_is_relative(dist: Path) -> None:
    told = metadata(dist)

    assert told["Description-Content-Type"] == "text/markdown"
    text = str(told.get_payload())
    assert "three nodes" in text
    assert re.findall(r"\]\((?!https?://)", text) == []


def test_urls_are_those_that_are_known(dist: Path) -> None:
    """None is, until pyproject.toml says where the repository is."""
    is_known = re.search(r"^repository = ", (ROOT / "pyproject.toml").read_text(), re.MULTILINE)

    assert bool(metadata(dist).get_all("Project-URL")) == bool(is_known)


@pytest.mark.skipif(not TWINE, reason="twine is not on PATH, nor named by TWINE")
def test_twine_finds_nothing_wrong(dist: Path) -> None:
    files = [str(path) for path in dist.iterdir()]
    done = subprocess.run(
        [TWINE, "check", "--strict", *files], capture_output=True, text=True, check=False
    )

    assert len(files) == 2
    assert done.returncode == 0, done.stdout + done.stderr

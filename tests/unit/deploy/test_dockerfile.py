"""The Dockerfile, as far as it can be read: pinned, not root, and made of what was tested."""

from __future__ import annotations

import re

import pytest
from packaging.requirements import Requirement

from image.dockerfile import Copy, Run, is_given, read
from image.pins import OURS, needed, pins
from tidy.repository import ROOT, pyproject

DOCKER = ROOT / "deploy" / "docker"
TEXT = (DOCKER / "Dockerfile").read_text()
PINS = pins()


@pytest.mark.parametrize("wanted", ["holdfast[tokens]", "hatchling"])
def test_every_package_of_the_image_is_pinned_to_a_version_that_fits(wanted: str) -> None:
    asked = needed(wanted)
    asked.pop(OURS, None)

    assert asked
    assert {name for name in asked if name not in PINS} == set()
    for name, requirements in asked.items():
        assert all(each.specifier.contains(PINS[name]) for each in requirements), name


def test_the_base_is_pinned_to_a_python_that_the_package_allows() -> None:
    stages = read(TEXT)
    bases = {stage.base for stage in stages}
    (found,) = (re.fullmatch(r"python:(\d+\.\d+\.\d+)-slim-\w+", base) for base in bases)

    assert found is not None
    assert Requirement(f"x{pyproject(ROOT)['project']['requires-python']}").specifier.contains(
        found[1]
    )


def test_the_image_says_whom_it_runs_as_what_it_runs_and_how_it_is_asked() -> None:
    image = read(TEXT)[-1]

    assert re.fullmatch(r"[1-9]\d+:[1-9]\d+", image.told["USER"]), "a number, for runAsNonRoot"
    assert image.words("ENTRYPOINT") == ["holdfast-entrypoint"]
    assert image.words("CMD") == ["node", "--config", "/etc/holdfast/node.toml"]
    assert image.words("HEALTHCHECK") == ["holdfast-livez"]
    assert image.told["VOLUME"] == "/var/lib/holdfast"


def test_steps_are_read_as_they_are_written() -> None:
    (build, image) = read(
        "ARG BASE=a:1\nFROM ${BASE} AS build\nWORKDIR /src\nCOPY . .\n# a comment\n"
        'RUN one \\\n    && two\nFROM ${BASE}\nCOPY --from=build /x /y\nENV A=1 B="two words"\n'
    )

    assert (build.name, build.base, image.base) == ("build", "a:1", "a:1")
    assert build.steps == [Copy((".",), "/src"), Run("one && two")]
    assert image.steps == [Copy(("/x",), "/y", "build")]
    assert image.environment == {"A": "1", "B": "two words"}


@pytest.mark.parametrize("line", ["ADD x /", "COPY --chmod=1 x /", "RUN x\nWORKDIR /y", "SHELL []"])
def test_an_instruction_that_is_not_known_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="does not know"):
        read(f"FROM a:1\n{line}\n")


@pytest.mark.parametrize(
    ("path", "given"),
    [
        ("README.md", True),
        ("server/holdfast/server/x.py", True),
        ("local/authority/key.pem", False),
        ("server/__pycache__/x.pyc", False),
        ("a/b/README.md", False),
    ],
)
def test_the_last_matching_line_of_the_ignored_decides(path: str, *, given: bool) -> None:
    assert is_given(path, "*\n!README.md\n!server\n**/__pycache__\n") is given

"""Reads a Dockerfile and a .dockerignore, as far as ours use them. Runs nothing.

Every instruction must be known: one that is passed over would make another image than Docker does.
"""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

TOLD_ONLY: Final = {"EXPOSE", "VOLUME", "STOPSIGNAL"}
"""Instructions that change nothing in the image's files; what they say is kept."""
SETTINGS: Final = {"ENTRYPOINT", "CMD", "HEALTHCHECK", "USER", *TOLD_ONLY}


@dataclass(frozen=True)
class Run:
    """A command for the shell."""

    command: str


@dataclass(frozen=True)
class Copy:
    """Files of the context, or of an earlier stage."""

    sources: tuple[str, ...]
    target: str
    stage: str = ""


Step: TypeAlias = Run | Copy


@dataclass
class Stage:
    """One stage: its base, what is done in it, and what its image says of itself."""

    name: str
    base: str
    workdir: str = "/"
    steps: list[Step] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    told: dict[str, str] = field(default_factory=dict)
    """The last word of each instruction in SETTINGS."""

    def words(self, instruction: str) -> list[str]:
        """The command of ENTRYPOINT, CMD or HEALTHCHECK, which must be in the form of a list."""
        words: list[str] = json.loads(
            self.told[instruction].partition("CMD ")[2] or self.told[instruction]
        )
        return words


def read(text: str) -> list[Stage]:
    """Read the stages, in order. Raises ValueError for what this file does not know."""
    given: dict[str, str] = {}
    stages: list[Stage] = []
    for instruction, rest in instructions(text):
        if instruction == "ARG" and not stages:
            name, _, default = rest.partition("=")
            given[name] = default
        elif instruction == "FROM":
            base, _, name = re.sub(r"\$\{(\w+)\}", lambda m: given[m[1]], rest).partition(" AS ")
            stages.append(Stage(name, base))
        else:
            _add(stages[-1], instruction, rest)
    return stages


def instructions(text: str) -> Iterator[tuple[str, str]]:
    """Go through the instructions: lines joined, comments left out."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\s*\\\n\s*", " ", "\n".join(lines))
    for line in filter(None, map(str.strip, joined.splitlines())):
        instruction, _, rest = line.partition(" ")
        yield instruction, rest.strip()


def _add(stage: Stage, instruction: str, rest: str) -> None:
    if instruction == "RUN":
        stage.steps.append(Run(rest))
    elif instruction == "COPY":
        stage.steps.append(_copy(rest, stage.workdir))
    elif instruction == "WORKDIR" and not stage.steps:
        stage.workdir = rest
    elif instruction == "ENV":
        stage.environment |= dict(word.split("=", 1) for word in shlex.split(rest))
    elif instruction in SETTINGS:
        stage.told[instruction] = rest
    else:
        raise ValueError(f"{instruction} {rest}: this reader does not know it in this place")


def _copy(rest: str, workdir: str) -> Copy:
    words = rest.split()
    stage = words.pop(0).removeprefix("--from=") if words[0].startswith("--from=") else ""
    if any(word.startswith("--") for word in words):
        raise ValueError(f"COPY {rest}: this reader does not know the option")
    *sources, target = words
    return Copy(tuple(sources), str(PurePosixPath(workdir, target)), stage)


def is_given(path: str, ignore: str) -> bool:
    """Tell whether a file of the repository is part of the context, by the text of .dockerignore.

    The last line that matches the path, or a folder that it is in, decides.
    """
    given = True
    parts = PurePosixPath(path).parts
    for line in ignore.splitlines():
        pattern = line.strip()
        if not pattern or pattern.startswith("#"):
            continue
        if _matches(parts, pattern.removeprefix("!")):
            given = pattern.startswith("!")
    return given


def _matches(parts: tuple[str, ...], pattern: str) -> bool:
    anywhere = pattern.startswith("**/")
    wanted = PurePosixPath(pattern.removeprefix("**/")).parts
    starts = range(len(parts)) if anywhere else range(1)
    return any(
        len(parts) - start >= len(wanted) and all(map(fnmatch, parts[start:], wanted))
        for start in starts
    )

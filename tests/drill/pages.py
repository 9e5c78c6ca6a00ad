"""The pages whose commands are run as written: what counts as a command, and what is left out.

A fenced block of the language `sh` is run; the blocks of a page run one after the other, in one
shell. A comment `<!-- not drilled: REASON -->` on the line before a block leaves it out, with the
reason on record. Blocks of other languages and indented ones only show something. Runs nothing.
"""

from __future__ import annotations

import re
from textwrap import dedent
from typing import TYPE_CHECKING, NamedTuple

from tidy.repository import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FENCE = re.compile(
    r"(?:^ *<!-- not drilled: (?P<why>[^\n]+) -->\n)?^(?P<indent> *)```(?P<language>\S*)\n"
    r"(?P<text>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)


class Block(NamedTuple):
    """Commands that a reader types in one go."""

    line: int
    """Of the page, from 1: where the commands begin."""
    commands: str
    left_out: str = ""
    """Why they are not run; "" if they are."""


class Page(NamedTuple):
    """A page with commands."""

    path: Path
    blocks: tuple[Block, ...]

    @property
    def name(self) -> str:
        """The page's place in the repository."""
        return (
            str(self.path.relative_to(ROOT)) if self.path.is_relative_to(ROOT) else str(self.path)
        )

    @property
    def run(self) -> tuple[Block, ...]:
        """The blocks that are run."""
        return tuple(block for block in self.blocks if not block.left_out)


def blocks(text: str) -> Iterator[Block]:
    """Find the commands of a page, in order."""
    for found in FENCE.finditer(text):
        if found["language"] == "sh":
            line = text.count("\n", 0, found.start("text")) + 1
            yield Block(line, dedent(found["text"]), found["why"] or "")


def pages(root: Path = ROOT) -> list[Page]:
    """Find the operators' pages that have commands to run."""
    paths = [*sorted((root / "docs" / "operations").glob("*.md")), root / "deploy" / "README.md"]
    found = (Page(path, tuple(blocks(path.read_text()))) for path in paths if path.exists())
    return [page for page in found if page.run]

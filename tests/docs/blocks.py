"""The parts of the documentation that are made from the code: where they stand on a page.

A page holds `<!-- begin: NAME -->`, a generated text, and `<!-- end: NAME -->`. Whatever stands
between is replaced; the words around it are a person's. Knows pages and marks, not what is drawn.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

MARK = re.compile(
    r"^<!-- begin: (?P<name>[^\n]+?) -->\n.*?^<!-- end: (?P=name) -->$", re.MULTILINE | re.DOTALL
)


class UnknownBlock(Exception):
    """A page asks for a text that nobody makes; names the page, the block, and what there is."""


class Page(NamedTuple):
    """A page as it stands, and as the code would have it."""

    path: Path
    text: str
    renewed: str


def renewed(text: str, make: Callable[[str], str]) -> str:
    """Return the page with every block made anew by `make(name)`."""

    def block(match: re.Match[str]) -> str:
        name = match["name"]
        return f"<!-- begin: {name} -->\n{make(name).strip()}\n<!-- end: {name} -->"

    return MARK.sub(block, text)


def pages(folder: Path, make: Callable[[str], str]) -> Iterator[Page]:
    """Go through the pages that hold blocks; raise UnknownBlock for one that nobody makes."""
    for path in sorted(folder.rglob("*.md")):
        text = path.read_text()
        if not MARK.search(text):
            continue
        try:
            yield Page(path, text, renewed(text, make))
        except KeyError as missing:
            message = f"{path.name}: nobody makes a block {missing}; see tests/docs/contents.py"
            raise UnknownBlock(message) from None

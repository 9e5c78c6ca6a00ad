"""`./dev drill`: run every command of the operators' pages as it is written.

    ./dev drill                   all pages, as a table
    ./dev drill PAGE...           these, by a part of their names
    ./dev drill --list            the pages, with what is left out and why

Each page is run in an empty folder, by one shell. Exit codes: 0 all ran, 1 a command failed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from drill.pages import Page, pages
from drill.shell import Ran, run

if TYPE_CHECKING:
    from collections.abc import Sequence

PAGE_SECONDS_MAX: Final = 900.0


def main(arguments: Sequence[str]) -> int:
    """Run the pages that were asked for; 1 if a command of one failed."""
    asked = _parse(arguments)
    chosen = [
        page for page in pages() if not asked.pages or any(p in page.name for p in asked.pages)
    ]
    if not chosen:
        print(f"no page with commands is called {' or '.join(asked.pages)}", file=sys.stderr)
        return 2
    if asked.list:
        for page in chosen:
            _list(page)
        return 0
    failed = [page for page in chosen if not _ran(page)]
    print(f"\n{len(chosen) - len(failed)} of {len(chosen)} pages ran to their end")
    return 1 if failed else 0


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="./dev drill",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("pages", nargs="*", metavar="PAGE", help="a part of a page's name")
    parser.add_argument("--list", action="store_true", help="only tell what there is")
    return parser.parse_args(arguments)


def _list(page: Page) -> None:
    print(f"{page.name}: {len(page.run)} blocks")
    for block in page.blocks:
        if block.left_out:
            print(f"  line {block.line} is left out: {block.left_out}")


def _ran(page: Page) -> bool:
    """Run a page and tell how it ended."""
    print(f"{page.name}: {len(page.run)} blocks …", flush=True)
    with tempfile.TemporaryDirectory(prefix="holdfast-drill-") as folder:
        ended = run(page.run, Path(folder) / "page", PAGE_SECONDS_MAX)
    print(f"  {told(page, ended)}", flush=True)
    return ended.failed is None


def told(page: Page, ended: Ran) -> str:
    """Tell how a page ended: where, in which commands, and what they had printed."""
    if ended.failed is None:
        return f"ran to its end in {ended.seconds:.1f} s"
    place = f"{page.name}:{ended.failed.line}"
    return (
        f"FAILED after {ended.seconds:.1f} s in the block at {place}:\n"
        f"{ended.failed.commands}\nprinted:\n{ended.output}"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

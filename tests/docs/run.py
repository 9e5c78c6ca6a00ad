"""Makes the generated parts of the documentation, and the SQL for DuckDB, anew: `./dev docs`.

`--check` only compares.

Exit codes: 0 all current (or renewed), 1 with `--check` something was out of date.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from docs.blocks import Page, pages
from docs.contents import make
from docs.duckdb_views import duckdb_views

ROOT = Path(__file__).resolve().parents[2]


def stale() -> list[Page]:
    """Return the pages that the code would have otherwise."""
    views = ROOT / "replay" / "holdfast" / "replay" / "views" / "state.sql"
    found = [*pages(ROOT / "docs", make), Page(views, views.read_text(), duckdb_views())]
    return [page for page in found if page.text != page.renewed]


def main() -> int:
    """Write what is stale, or say it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if a page is stale")
    check = parser.parse_args().check
    found = stale()
    for page in found:
        if not check:
            page.path.write_text(page.renewed)
        print("stale:" if check else "renewed:", page.path.relative_to(ROOT))
    if not found:
        print("the documentation is current")
    return 1 if check and found else 0


if __name__ == "__main__":
    sys.exit(main())

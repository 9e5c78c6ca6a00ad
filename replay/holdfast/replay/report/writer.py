"""Write a report: text for a terminal, a picture, and one HTML page that needs no network.

Knows the analysis, not Spark.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Final, NamedTuple

from holdfast.replay.analyse.analysis import Analysis
from holdfast.replay.report.page import page
from holdfast.replay.report.picture import PICTURES_MAX, draw, pictured
from holdfast.replay.report.tables import heading, plain, tables

PICTURE: Final = "ownership.png"
PAGE: Final = "report.html"
TEXT: Final = "report.txt"


class Written(NamedTuple):
    """The files of a report. `picture` is None if no partition ever had an owner."""

    page: Path
    text: Path
    picture: Path | None
    analysis: Analysis


def write(analysis: Analysis, out: Path) -> Written:
    """Write the whole report into a folder, which is made if needed. Raises OSError.

    Pictures of an earlier report that this one has none for are removed.
    """
    out.mkdir(parents=True, exist_ok=True)
    drawn = {group: draw(analysis, group) for group in pictured(analysis)}
    main = next(iter(drawn), None)
    for name, group in zip_longest(_names(), drawn):
        if group is None:
            (out / name).unlink(missing_ok=True)
        else:
            (out / name).write_bytes(drawn[group])
    picture = None if main is None else out / PICTURE
    whole = page(analysis, None if main is None else drawn[main])
    (out / PAGE).write_text(whole, encoding="utf-8")
    (out / TEXT).write_text(text(analysis), encoding="utf-8")
    return Written(out / PAGE, out / TEXT, picture, analysis)


def text(analysis: Analysis) -> str:
    """Format the report for a terminal."""
    return "\n\n".join([heading(analysis), *(plain(table) for table in tables(analysis))]) + "\n"


def _names() -> Iterator[str]:
    """Yield the names of pictures: that of the busiest group has no number."""
    yield PICTURE
    for number in range(2, PICTURES_MAX + 1):
        yield f"ownership-{number}.png"

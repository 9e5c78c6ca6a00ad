"""Write a report: text for a terminal, a picture, and one HTML page that needs no network.

Knows the analysis, not Spark.
"""

from __future__ import annotations

import base64
from html import escape
from pathlib import Path
from typing import Final, NamedTuple

from holdfast.coordinator.model.text import readable
from holdfast.replay.analyse.analysis import Analysis
from holdfast.replay.report.picture import busiest_group, draw
from holdfast.replay.report.tables import Table, heading, plain, tables

PICTURES_MAX: Final = 6
PICTURE: Final = "ownership.png"
PAGE: Final = "report.html"
TEXT: Final = "report.txt"

_STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; max-width: 76rem; margin: 2rem auto;
       padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; }
p.about { color: #555; max-width: 46rem; }
img { max-width: 100%; }
div.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .25rem .8rem .25rem 0; border-bottom: 1px solid #ddd; }
th { color: #555; font-weight: 600; }
"""


class Written(NamedTuple):
    """The files of a report. `picture` is None if no partition ever had an owner."""

    page: Path
    text: Path
    picture: Path | None
    analysis: Analysis


def write(analysis: Analysis, out: Path) -> Written:
    """Write the whole report into a folder, which is made if needed. Raises OSError."""
    out.mkdir(parents=True, exist_ok=True)
    pictures = {group: draw(analysis, group) for group in _drawn(analysis)}
    main = busiest_group(analysis)
    picture = out / PICTURE if main is not None else None
    if picture is not None and main is not None:
        picture.write_bytes(pictures[main])
    (out / PAGE).write_text(page(analysis, pictures))
    (out / TEXT).write_text(text(analysis))
    return Written(out / PAGE, out / TEXT, picture, analysis)


def text(analysis: Analysis) -> str:
    """Format the report for a terminal."""
    return "\n\n".join([heading(analysis), *(plain(table) for table in tables(analysis))]) + "\n"


def page(analysis: Analysis, pictures: dict[str, bytes]) -> str:
    """Make one HTML page with everything in it: style, pictures, tables."""
    body = [f"<h1>Holdfast replay</h1><p>{escape(heading(analysis))}</p>"]
    body += [_figure(group, png) for group, png in pictures.items()]
    body += [_section(table) for table in tables(analysis)]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>Holdfast replay</title><style>{_STYLE}</style></head>"
        f"<body>{''.join(body)}</body></html>\n"
    )


def _drawn(analysis: Analysis) -> list[str]:
    """Choose the groups to draw: the busiest first, then the others by name."""
    main = busiest_group(analysis)
    others = sorted({interval.group for interval in analysis.intervals} - {main})
    return [] if main is None else [main, *others][:PICTURES_MAX]


def _figure(group: str, png: bytes) -> str:
    data = base64.b64encode(png).decode()
    title = f"Owners of the partitions of group {readable(group)} over time"
    label = escape(title, quote=True)
    return f'<p><img alt="{label}" src="data:image/png;base64,{data}"></p>'


def _section(table: Table) -> str:
    title = f"<h2>{escape(table.title)}</h2>"
    if not table.rows:
        return f"{title}<p>None.</p>"
    head = "".join(f"<th>{escape(cell)}</th>" for cell in table.head)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in table.rows
    )
    about = f'<p class="about">{escape(table.about)}</p>'
    return f'{title}{about}<div class="wide"><table><tr>{head}</tr>{rows}</table></div>'

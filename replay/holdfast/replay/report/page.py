"""One HTML page that needs no network: timelines to choose and to zoom, tables to sort and filter.

What is not shown is counted on the page. Names are hostile: each text is escaped here, or reaches
the page's script as JSON that cannot end it. Knows the analysis, not Spark.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Final

from holdfast.coordinator.model.text import readable
from holdfast.replay.analyse.analysis import Analysis
from holdfast.replay.analyse.timeline import Timeline, Totals
from holdfast.replay.report.charts import rates
from holdfast.replay.report.tables import Cell, Table, duration, heading, many, tables
from holdfast.replay.report.timeline_data import Embedded, embedded

PAGE_MAX: Final = 5_000_000
"""Bytes of a page."""
TABLES_MAX: Final = 1_500_000
"""Bytes of all tables of a page."""
_PICTURE_MAX: Final = 300_000
_HERE: Final = Path(__file__).parent

_TIMELINE: Final = """
<section id="timeline"><h2>Who owned what</h2>
<div class="bar"><label>find a group <input id="find" type="search"></label>
<label>group <select id="group"></select></label>
<label>highlight an owner <input id="owner" type="search"></label>
<output id="owners"></output></div>
<div class="bar"><button id="in">zoom in</button><button id="out">zoom out</button>
<button id="left" aria-label="earlier">&larr;</button>
<button id="right" aria-label="later">&rarr;</button>
<button id="all">whole log</button>
<span>or drag over a range; Ctrl and the wheel zoom</span></div>
<canvas id="chart" role="img" aria-label="Owners of partitions over time"></canvas>
<p id="told" aria-live="polite">Point at the picture, and here stands who owned what then.</p>
<ul class="key" id="key"></ul><p class="count" id="honest"></p>
</section>
"""


def page(analysis: Analysis, picture: bytes | None = None) -> str:
    """Make the page. `picture`: a PNG for readers whose browser runs no scripts."""
    data = embedded(analysis)
    number = {each.group: at for at, each in enumerate(data.timelines) if each.group}
    links = {readable(group): at for group, at in number.items()}
    shown = _within(tables(analysis), TABLES_MAX, links)
    body = [
        f"<h1>Holdfast replay</h1><p>{escape(heading(analysis))}</p>",
        _drawing(analysis, data, picture),
        rates(analysis),
        *(_section(table, links) for table in shown),
    ]
    script = _file("timeline.js") + _file("page.js")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(script)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Holdfast replay</title><style>{_file('page.css')}</style></head>"
        f"<body>{''.join(body)}<script>{script}</script></body></html>\n"
    )


def _policy(script: str) -> str:
    """Forbid the page all that it does not need: the network, and any script but its own."""
    digest = base64.b64encode(sha256(script.encode()).digest()).decode()
    allowed = f"script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:"
    return f"default-src 'none'; {allowed}"


def _file(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def _drawing(analysis: Analysis, data: Embedded, picture: bytes | None) -> str:
    counted = "".join(f'<p class="count">{escape(text)}</p>' for text in counts(analysis, data))
    if not data.timelines:
        return counted
    drawn = f'{_TIMELINE}<script type="application/json" id="data">{data.text}</script>'
    if picture is not None and len(picture) <= _PICTURE_MAX:
        source = base64.b64encode(picture).decode()
        image = f'<img alt="Owners over time" src="data:image/png;base64,{source}">'
        drawn += f"<noscript>{image}</noscript>"
    return counted + drawn


def counts(analysis: Analysis, data: Embedded) -> list[str]:
    """Say in sentences what there is, and what of it no timeline shows."""
    whole = analysis.whole
    if not whole.intervals:
        return ["No partition ever had an owner, so there is no timeline."]
    told = [f"The log has {_totals(whole)}."]
    own = [each for each in data.timelines if each.group]
    have = (
        "1 group has a timeline of its"
        if len(own) == 1
        else f"{len(own):,} groups have a timeline of their"
    )
    told.append(f"{have} own{_bundled(own)}.")
    shared = [each.totals for each in data.timelines if not each.group]
    told += [f"{_others(rest.groups)} one strip: {_totals(rest)}." for rest in shared]
    if data.left_out.groups:
        are = "1 group is" if data.left_out.groups == 1 else f"{data.left_out.groups:,} groups are"
        told.append(
            f"{are} not drawn, since the page would be too large: {_totals(data.left_out)}."
        )
    return told


def _others(groups: int) -> str:
    return "1 other group has" if groups == 1 else f"{groups:,} other groups share"


def _bundled(own: Sequence[Timeline]) -> str:
    bundles = [row for each in own for row in each.rows if row.partitions > 1]
    if not bundles:
        return ", with a row for each partition"
    partitions = sum(row.partitions for row in bundles)
    whose = "its" if len(own) == 1 else "their"
    return f"; {partitions:,} of {whose} partitions are bundled in {many(len(bundles), 'row')}"


def _totals(told: Totals) -> str:
    return (
        f"{many(told.intervals, 'interval')} of ownership of "
        f"{many(told.partitions, 'partition')} in {many(told.groups, 'group')}, "
        f"{many(told.gaps, 'gap')} of {duration(told.gap_ms)} in all, "
        f"{many(told.overlaps, 'overlap')} of {duration(told.overlap_ms)}"
    )


def _within(shown: Sequence[Table], budget: int, links: Mapping[str, int]) -> list[Table]:
    """Cut the tables to what they may take together, each to an equal share of what is left."""
    kept = []
    for at, table in enumerate(shown):
        share, rows = budget // (len(shown) - at), []
        for row in table.rows:
            share -= len(_row(row, table.head, links).encode())
            if share < 0:
                break
            budget -= len(_row(row, table.head, links).encode())
            rows.append(row)
        kept.append(table._replace(rows=tuple(rows), total=max(table.total, len(table.rows))))
    return kept


def _section(table: Table, links: Mapping[str, int]) -> str:
    title = f"<h2>{escape(table.title)}</h2>"
    if not table.rows:
        return f'{title}<p class="about">{escape(table.missing or "None.")}</p>'
    head = "".join(_head(cell, at, table) for at, cell in enumerate(table.head))
    rows = "".join(_row(row, table.head, links) for row in table.rows)
    return (
        f'<section class="table">{title}<p class="about">{escape(table.about)}</p>'
        f'<p class="count">{escape(table.missing)}</p>'
        '<div class="bar"><label>filter <input type="search"></label><output></output></div>'
        f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
        "</div></section>"
    )


def _head(text: str, at: int, table: Table) -> str:
    """Make the head of a column; it stands on the right if numbers are below it."""
    numbers = any(row[at].value is not None for row in table.rows)
    kind = ' class="n"' if numbers else ""
    return f'<th{kind}><button type="button">{escape(text)}</button></th>'


def _row(row: Sequence[Cell], head: Sequence[str], links: Mapping[str, int]) -> str:
    cells = (
        _cell(cell, links if name == "group" else {}) for cell, name in zip(row, head, strict=True)
    )
    return f"<tr>{''.join(cells)}</tr>"


def _cell(cell: Cell, links: Mapping[str, int]) -> str:
    if cell.value is not None:
        return f'<td data-v="{cell.value}">{escape(cell.text)}</td>'
    text = f"<bdi>{escape(cell.text)}</bdi>"
    if cell.text in links:
        text = f'<a href="#timeline" data-timeline="{links[cell.text]}">{text}</a>'
    return f"<td>{text}</td>"

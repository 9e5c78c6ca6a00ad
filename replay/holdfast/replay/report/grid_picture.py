"""Draw a timeline of bundles as PNG: a row a bundle, a colour an owner, gaps from below.

For groups with too many partitions or intervals for `picture`, from the same cells as the page.
Knows the analysis, not Spark.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Final

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from holdfast.coordinator.model.text import readable
from holdfast.replay.analyse.timeline import Bundle, CellRun, Timeline

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PALETTE: Final = (
    *("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#80a23c", "#aa3377", "#4b4eb8"),
)
"""Colours that colour-blind readers tell apart, as the page has them."""
MANY: Final = "#c2c4c8"
GAP: Final = "#000000"
OVERLAP: Final = "#c2321f"
BARE: Final = "#ececec"
_LEAST: Final = 0.15
"""Height of the smallest gap or overlap, in rows: none is so small that it is not seen."""
_NARROWEST: Final = 0.001
"""Width of the narrowest, in widths of the picture."""


def draw_grid(timeline: Timeline, span_ms: int) -> bytes:
    """Draw a timeline; the title counts what is bundled, and what is shorter than a column."""
    rows = len(timeline.rows)
    figure = Figure(figsize=(14.0, 2.2 + 0.13 * max(rows, 8)), dpi=130)
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    span = max(span_ms / 1000, 0.001)
    axes.set_facecolor(BARE)
    colours: dict[str, str] = {}
    _owned(axes, timeline, colours)
    _troubles(axes, timeline, span)
    _label(axes, timeline.rows, span)
    axes.set_title(_title(timeline), loc="left", fontsize=10)
    _legend(axes, len(colours))
    out = io.BytesIO()
    figure.savefig(out, format="png", bbox_inches="tight")
    return out.getvalue()


def _owned(axes: Axes, timeline: Timeline, colours: dict[str, str]) -> None:
    for row in range(len(timeline.rows)):
        runs = [run for run in timeline.runs if run.row == row and run.owned_ms]
        bars = [_bar(run, timeline) for run in runs]
        faces = [_colour(run.owner, colours) for run in runs]
        axes.broken_barh(bars, (row - 0.45, 0.9), facecolors=faces, linewidth=0)


def _colour(owner: str, colours: dict[str, str]) -> str:
    if not owner:
        return MANY
    return colours.setdefault(owner, PALETTE[len(colours) % len(PALETTE)])


def _bar(run: CellRun, timeline: Timeline) -> tuple[float, float]:
    """Return where a run begins and how long it is, in seconds."""
    width = timeline.column_ms / 1000
    return run.column * width, run.columns * width


def _troubles(axes: Axes, timeline: Timeline, span: float) -> None:
    """Draw gaps from below and overlaps from above, by their share of the cell."""
    for run in timeline.runs:
        start, length = _bar(run, timeline)
        length = max(length, span * _NARROWEST)
        whole = timeline.rows[run.row].partitions * timeline.column_ms
        for told_ms, colour, bottom in (
            (run.gap_ms, GAP, True),
            (run.overlap_ms, OVERLAP, False),
        ):
            if told_ms:
                high = max(_LEAST, 0.9 * min(1.0, told_ms / whole))
                low = run.row + 0.45 - high if bottom else run.row - 0.45
                axes.add_patch(Rectangle((start, low), length, high, facecolor=colour, linewidth=0))


def _label(axes: Axes, rows: tuple[Bundle, ...], span: float) -> None:
    step = -(-len(rows) // 48)
    places = range(0, len(rows), step)
    axes.set_yticks(places, [_text(_name(rows[at])) for at in places])
    axes.tick_params(axis="y", labelsize=6, length=0)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlim(0, span)
    axes.set_xlabel("seconds since the first record (log time)")
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)


def _name(row: Bundle) -> str:
    return row.first if row.partitions == 1 else f"{row.first} … {row.last} ({row.partitions})"


def _title(timeline: Timeline) -> str:
    told = timeline.totals
    text = (
        f"Who owned what in group {timeline.group!r}: {told.partitions:,} partitions in "
        f"{len(timeline.rows)} rows, columns of {timeline.column_ms / 1000:g} s\n"
        f"{told.intervals:,} intervals ({told.intervals_below:,} shorter than a column), "
        f"{told.gaps:,} gaps ({told.gaps_below:,}), {told.overlaps:,} overlaps "
        f"({told.overlaps_below:,}); each is at least a mark"
    )
    return _text(text, keep_lines=True)


def _text(given: str, *, keep_lines: bool = False) -> str:
    """Escape text for matplotlib: a dollar sign would begin a formula."""
    lines = given.split("\n") if keep_lines else [given]
    return "\n".join(readable(line) for line in lines).replace("$", r"\$")


def _legend(axes: Axes, owners: int) -> None:
    alone = Patch(facecolor=PALETTE[0], label=f"one owner ({owners:,}; {len(PALETTE)} colours)")
    handles = [
        *([alone] if owners else []),
        Patch(facecolor=MANY, label="several owners"),
        Patch(facecolor=GAP, label="from below: nobody"),
        Patch(facecolor=OVERLAP, label="from above: two at once"),
        Patch(facecolor=BARE, label="before the first, after the last"),
    ]
    axes.legend(
        handles=handles, loc="upper left", bbox_to_anchor=(1.005, 1.0), frameon=False, fontsize=8
    )

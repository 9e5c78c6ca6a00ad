"""Draw who owned which partition: a lane a partition, a look an owner, with gaps and marks.

Matplotlib's object interface, no display and no global state. Knows the analysis, not Spark.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from holdfast.coordinator.model.text import readable
from holdfast.replay.analyse.analysis import Analysis
from holdfast.replay.analyse.intervals import Interval
from holdfast.replay.report.grid_picture import PALETTE, draw_grid
from holdfast.replay.report.timeline_data import log_ms

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LANES_MAX: Final = 64
PICTURES_MAX: Final = 6
"""Pictures of the busiest groups."""
NAMED_OWNERS_MAX: Final = 20

_GAP_COLOUR: Final = "#101010"
_LANE_COLOUR: Final = "#f0f0f0"
_MARK_COLOUR: Final = "#b00020"
_DPI: Final = 130
_WIDTH_INCHES: Final = 14.0
_LANE_INCHES: Final = 0.26
_VISIBLE: Final = 0.0025
"""Share of the width at which a gap is still visible; shorter gaps are drawn this wide."""

_LABEL_SHARE: Final = 0.022
"""Share of the width below which the labels of two marks would overlap."""

_LABEL_HEIGHT: Final = 1.02
"""Where labels begin, in heights of the lanes: room for a line from a mark to a shifted label."""

_FROZEN_HATCH: Final = "////"
_FROZEN_LINES: Final = "white"

_PATTERNS: Final = ("", "....", "xxxx", "||||")
_PATTERN_LINES: Final = "white"

Lane = tuple[str, int]


class Look(NamedTuple):
    """How the bars of an owner are drawn."""

    colour: str
    pattern: str
    """In matplotlib's language of hatches; "": plain."""


def pictured(analysis: Analysis) -> list[str]:
    """Choose the groups to draw, the busiest first."""
    return [each.group for each in analysis.timelines if each.group][:PICTURES_MAX]


def draw(analysis: Analysis, group: str) -> bytes:
    """Draw one group as PNG: each interval if there is room, else the cells of its timeline."""
    intervals = [i for i in analysis.intervals if i.group == group]
    timeline = next((each for each in analysis.timelines if each.group == group), None)
    if not intervals and timeline is not None:
        return draw_grid(timeline, analysis.last_ms - analysis.first_ms)
    lanes = sorted({(i.topic, i.partition) for i in intervals})
    shown = lanes[:LANES_MAX]
    chosen = looks(interval.owner for interval in intervals)
    figure = Figure(figsize=(_WIDTH_INCHES, 2.6 + _LANE_INCHES * max(len(shown), 4)), dpi=_DPI)
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    span = max((analysis.last_ms - analysis.first_ms) / 1000, 0.001)
    for row, lane in enumerate(shown):
        lane_intervals = [i for i in intervals if (i.topic, i.partition) == lane]
        _draw_lane(
            axes,
            row,
            lane_intervals,
            chosen,
            analysis.first_ms,
            span,
        )
        _draw_frozen(axes, row, _frozen_bars(lane_intervals, analysis))
    _draw_marks(axes, analysis, span)
    _label(axes, shown, span)
    _legend(axes, chosen, frozen=bool(analysis.frozen))
    left_out = f", {len(lanes) - len(shown)} more not shown" if len(lanes) > len(shown) else ""
    title = f"Who owned what in group {group!r}: {len(shown)} partitions{left_out}"
    _title(figure, axes, _text(title))
    out = io.BytesIO()
    figure.savefig(out, format="png", bbox_inches="tight")
    return out.getvalue()


def looks(owners: Iterable[str]) -> dict[str, Look]:
    """Choose how each owner is drawn, by name, so that the same log always looks the same.

    There are few colours that all eyes tell apart; the next owners have them again, with a pattern.
    """
    count = len(PALETTE)
    return {
        owner: Look(PALETTE[at % count], _PATTERNS[at // count % len(_PATTERNS)])
        for at, owner in enumerate(sorted(set(owners)))
    }


def _draw_lane(
    axes: Axes,
    row: int,
    intervals: Sequence[Interval],
    chosen: dict[str, Look],
    first_ms: int,
    span: float,
) -> None:
    axes.broken_barh([(0, span)], (row - 0.4, 0.8), facecolors=_LANE_COLOUR)
    bars = _bars(intervals, first_ms)
    for pattern in _PATTERNS:
        mine = [i for i in intervals if chosen[i.owner].pattern == pattern]
        axes.broken_barh(
            _bars(mine, first_ms),
            (row - 0.4, 0.8),
            facecolors=[chosen[i.owner].colour for i in mine],
            edgecolors=_PATTERN_LINES,
            hatch=pattern,
            linewidth=0.5,
        )
    gaps = [(start, max(end - start, span * _VISIBLE)) for start, end in _gaps(bars)]
    axes.broken_barh(gaps, (row - 0.4, 0.8), facecolors=_GAP_COLOUR)


def _bars(intervals: Sequence[Interval], first_ms: int) -> list[tuple[float, float]]:
    """Convert intervals to places on the axis, as (start, length) in seconds."""
    return [((i.start_ms - first_ms) / 1000, (i.end_ms - i.start_ms) / 1000) for i in intervals]


def _gaps(bars: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Find the gaps between owners, as (start, end) in seconds."""
    gaps, reached = [], None
    for start, length in sorted(bars):
        if reached is not None and start > reached:
            gaps.append((reached, start))
        reached = max(reached or 0.0, start + length)
    return gaps


def _frozen_bars(intervals: Sequence[Interval], analysis: Analysis) -> list[tuple[float, float]]:
    """Find when a lane's owners did not run though they owned it, as (start, length) in seconds."""
    bars = []
    for frozen in analysis.frozen:
        start, end = (_seconds(ms, analysis) for ms in (frozen.wall_ms, frozen.until_wall_ms))
        theirs = [interval for interval in intervals if interval.owner == frozen.owner]
        for since, length in _bars(theirs, analysis.first_ms):
            began, ended = max(start, since), min(end, since + length)
            if began < ended:
                bars.append((began, ended - began))
    return bars


def _draw_frozen(axes: Axes, row: int, bars: Sequence[tuple[float, float]]) -> None:
    axes.broken_barh(
        bars,
        (row - 0.4, 0.8),
        facecolors="none",
        edgecolors=_FROZEN_LINES,
        hatch=_FROZEN_HATCH,
        linewidth=0,
    )


def _draw_marks(axes: Axes, analysis: Analysis, span: float) -> None:
    """Draw vertical lines with labels above the lanes; labels that would overlap are shifted."""
    free = 0.0
    for mark in analysis.marks:
        at = _seconds(mark.wall_ms, analysis)
        axes.axvline(at, color=_MARK_COLOUR, linewidth=1.1, linestyle=(0, (3, 2)))
        place = max(at, free)
        free = place + span * _LABEL_SHARE
        axes.annotate(
            _text(mark.label),
            xy=(at, 1.0),
            xytext=(place, _LABEL_HEIGHT),
            xycoords=("data", "axes fraction"),
            textcoords=("data", "axes fraction"),
            rotation=40,
            ha="left",
            va="bottom",
            fontsize=8.5,
            color=_MARK_COLOUR,
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": _MARK_COLOUR, "linewidth": 0.6, "shrinkB": 0},
        )


def _seconds(wall_ms: int, analysis: Analysis) -> float:
    """Convert a wall time to a place on the axis of log time, in seconds."""
    return (log_ms(wall_ms, analysis) - analysis.first_ms) / 1000


def _label(axes: Axes, lanes: Sequence[Lane], span: float) -> None:
    axes.set_yticks(range(len(lanes)), [_text(f"{topic}/{number}") for topic, number in lanes])
    axes.tick_params(axis="y", labelsize=8, length=0)
    axes.set_ylim(len(lanes) - 0.4, -0.6)
    axes.set_xlim(0, span)
    axes.set_xlabel("seconds since the first record (log time)")
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)


def _text(given: str) -> str:
    """Escape text for matplotlib: a dollar sign would begin a formula."""
    return readable(given).replace("$", r"\$")


def _title(figure: Figure, axes: Axes, title: str) -> None:
    """Put the title above everything else: the labels of marks are as high as their text."""
    box = axes.get_tightbbox()
    top = 1.0 if box is None else box.ymax / figure.bbox.height
    figure.suptitle(title, x=0.01, y=top + 0.04, ha="left", fontsize=12, fontweight="bold")


def _legend(axes: Axes, chosen: dict[str, Look], *, frozen: bool) -> None:
    named = list(chosen.items())[:NAMED_OWNERS_MAX]
    patches = [
        Patch(
            facecolor=look.colour,
            edgecolor=_PATTERN_LINES,
            hatch=look.pattern,
            linewidth=0,
            label=_text(owner),
        )
        for owner, look in named
    ]
    if len(chosen) > len(named):
        patches.append(Patch(facecolor="none", label=f"and {len(chosen) - len(named)} more"))
    patches.append(Patch(facecolor=_GAP_COLOUR, label="nobody"))
    if frozen:
        patches.append(
            Patch(
                facecolor="#808080",
                edgecolor=_FROZEN_LINES,
                hatch=_FROZEN_HATCH,
                linewidth=0,
                label="frozen",
            )
        )
    axes.legend(
        handles=patches,
        title="owner",
        loc="upper left",
        bbox_to_anchor=(1.005, 1.0),
        frameon=False,
        fontsize=8.5,
    )

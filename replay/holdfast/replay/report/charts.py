"""Draw rebalances per minute by cause as SVG: bars on top of each other, with a title each.

Knows the analysis, not Spark. Colours are those of the page's style.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Final

from holdfast.coordinator.model.text import readable
from holdfast.replay.analyse.analysis import Analysis, Bar
from holdfast.replay.report.tables import duration

CAUSES_MAX: Final = 7
"""Causes with a colour of their own; the others share one."""
_OTHERS: Final = "other causes"
_WIDTH, _HEIGHT = 1_000, 180
_MINUTE_MS: Final = 60_000


def rates(analysis: Analysis) -> str:
    """Make the chart and its key; "" if there was no rebalance."""
    if not analysis.bars:
        return ""
    colours = _colours(analysis.bars)
    bars = _stacked(analysis.bars, colours)
    each = duration(analysis.bar_ms)
    about = (
        f"Each bar is {each}; its height is rebalances per minute. "
        f"{sum(bar.rebalances for bar in analysis.bars):,} rebalances, all of them."
    )
    return (
        f'<section><h2>Rebalances per minute by cause</h2><p class="about">{escape(about)}</p>'
        f"{_chart(analysis, bars, colours)}{_key(analysis.bars, colours)}</section>"
    )


def _colours(bars: Sequence[Bar]) -> dict[str, str]:
    """Give the most frequent causes a colour, and one more to all others together."""
    counts: dict[str, int] = {}
    for bar in bars:
        counts[bar.cause] = counts.get(bar.cause, 0) + bar.rebalances
    order = sorted(counts, key=lambda cause: (-counts[cause], cause))
    named = {cause: f"c{at}" for at, cause in enumerate(order[:CAUSES_MAX])}
    return named if len(order) <= CAUSES_MAX else named | {_OTHERS: "many"}


def _stacked(bars: Sequence[Bar], colours: Mapping[str, str]) -> dict[int, dict[str, int]]:
    """Sum up each span of time by cause, in the order of the key."""
    found: dict[int, dict[str, int]] = {}
    for bar in bars:
        span = found.setdefault(bar.at, dict.fromkeys(colours, 0))
        span[bar.cause if bar.cause in colours else _OTHERS] += bar.rebalances
    return found


def _chart(
    analysis: Analysis, bars: Mapping[int, Mapping[str, int]], colours: Mapping[str, str]
) -> str:
    count = max(1, -(-(analysis.last_ms - analysis.first_ms) // analysis.bar_ms), max(bars) + 1)
    width = _WIDTH / count
    most = max(sum(span.values()) for span in bars.values())
    rects = []
    for at, span in sorted(bars.items()):
        floor = float(_HEIGHT)
        for cause, number in span.items():
            high = number / most * _HEIGHT
            floor -= high
            if number:
                title = _title(analysis, at, cause, number)
                rects.append(
                    f'<rect x="{at * width:.1f}" y="{floor:.1f}" '
                    f'width="{max(width - 0.6, 0.6):.1f}" height="{max(high, 0.8):.1f}" '
                    f'fill="var(--{colours[cause]})"><title>{escape(title)}</title></rect>'
                )
    svg = (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="none" role="img" '
        f'aria-label="Rebalances per minute">{"".join(rects)}</svg>'
    )
    return _axes(svg, most * _MINUTE_MS / analysis.bar_ms, count * analysis.bar_ms)


def _title(analysis: Analysis, at: int, cause: str, number: int) -> str:
    since = duration(at * analysis.bar_ms)
    rate = number * _MINUTE_MS / analysis.bar_ms
    return f"+{since}: {number:,} by {readable(cause)} ({rate:,.1f} a minute)"


def _axes(svg: str, rate: float, whole_ms: int) -> str:
    """Put texts around the bars: they keep their size where the bars shrink."""
    times = "".join(f"<span>+{duration(whole_ms * at // 2)}</span>" for at in range(3))
    return (
        f'<div class="rates"><span class="rate"><span>{rate:,.1f}</span><span>0</span></span>'
        f'{svg}<span class="when">{times}</span></div>'
    )


def _key(bars: Sequence[Bar], colours: Mapping[str, str]) -> str:
    others = len({bar.cause for bar in bars} - set(colours))
    items = (
        f'<li><i style="background: var(--{colour})"></i>'
        f"<bdi>{escape(readable(cause) or 'unknown')}</bdi>"
        f"{f' ({others:,})' if cause == _OTHERS else ''}</li>"
        for cause, colour in colours.items()
    )
    return f'<ul class="key">{"".join(items)}</ul>'

"""Rebalances per minute: every rebalance is in a bar, whatever its cause is called."""

from __future__ import annotations

import re
from dataclasses import replace

from holdfast.replay.analyse.analysis import Analysis, Bar
from holdfast.replay.report.charts import CAUSES_MAX, rates
from unit.replay.report.reports import analysis


def told(*bars: Bar) -> Analysis:
    return replace(analysis(), bars=bars, bar_ms=5_000)


def test_a_bar_is_as_high_as_its_share_of_the_highest() -> None:
    """Two spans of 5 s: four rebalances, and one; 12 of a cause in a minute are one each 5 s."""
    svg = rates(told(Bar(0, "joined", 3), Bar(0, "left", 1), Bar(1, "joined", 1)))
    heights = [float(each) for each in re.findall(r'height="([0-9.]+)" fill', svg)]

    assert [round(each / heights[1], 1) for each in heights] == [3.0, 1.0, 1.0]
    assert "+5.0 s: 1 by joined (12.0 a minute)" in svg
    assert "5 rebalances, all of them" in svg


def test_causes_beyond_the_colours_are_drawn_together_and_counted() -> None:
    bars = [Bar(0, f"cause {n}", 20 - n) for n in range(CAUSES_MAX + 3)]
    svg = rates(told(*bars))

    drawn = sum(int(n) for n in re.findall(r"<title>\+0 ms: ([0-9]+) by", svg))
    assert drawn == sum(bar.rebalances for bar in bars)
    assert "other causes</bdi> (3)" in svg


def test_a_cause_stays_text() -> None:
    svg = rates(told(Bar(0, "</title><script>\u202e", 1)))

    assert "<script" not in svg
    assert "&lt;/title&gt;&lt;script&gt;\\u202e" in svg


def test_without_a_rebalance_there_is_no_chart() -> None:
    assert rates(told()) == ""

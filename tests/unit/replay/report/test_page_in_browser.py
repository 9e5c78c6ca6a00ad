"""The page in a browser: it chooses and zooms timelines, and sorts and filters tables.

Run where a Chromium is on PATH. A script at the end of the page does what a reader would do, and
writes what it then finds into the page.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.replay.analyse.analysis import Analysis
from holdfast.replay.analyse.intervals import Interval
from holdfast.replay.report.page import page
from unit.replay.report.browser import BROWSER, opened, run, with_scripts
from unit.replay.report.reports import analysis, owned, summary, timeline

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no chromium on PATH")


def found(told: Analysis, folder: Path, script: str) -> Any:  # noqa: ANN401 - any JSON
    """What a script returns that runs at the end of the page, whose policy would forbid that."""
    result = run(with_scripts(page(told)), folder, script)
    assert result is not None
    return result


READ = """
const section = document.querySelector('section.table'), rows = () => [...section.querySelectorAll(
  'tbody tr')].filter((row) => !row.hidden).map((row) => row.cells[0].textContent);
const heads = section.querySelectorAll('th button');
"""


def test_a_table_sorts_by_numbers_and_names_and_filters(tmp_path: Path) -> None:
    """The time without an owner sorts by its length, though 2.0 s stands before 300 ms as text."""
    told = analysis(
        groups=(summary("b", 9, 2_000), summary("</script>", 10, 300), summary("a", 1, 90_000))
    )
    script = f"""{READ}
    const seen = [rows()];
    heads[1].click(); seen.push(rows());
    heads[6].click(); seen.push(rows());
    heads[6].click(); seen.push(rows());
    heads[0].click(); seen.push(rows());
    const filter = section.querySelector('input');
    filter.value = 'SCRIPT'; filter.dispatchEvent(new Event('input'));
    seen.push(rows(), section.querySelector('output').textContent);
    return seen;"""

    assert found(told, tmp_path, script) == [
        ["b", "</script>", "a"],
        ["a", "b", "</script>"],
        ["</script>", "b", "a"],
        ["a", "b", "</script>"],
        ["</script>", "a", "b"],
        ["</script>"],
        "1 of 3 rows",
    ]


def test_a_link_a_search_and_the_buttons_choose_and_zoom_a_timeline(tmp_path: Path) -> None:
    told = analysis(
        timeline("</script><b>", owned("x"), intervals=5, gaps=2, gaps_below=1, gap_ms=40),
        timeline("other", owned("y"), intervals=3),
        timeline("", owned(""), groups=7, intervals=2),
        groups=(summary("other"), summary("</script><b>")),
    )
    script = """
    const told = () => [document.getElementById('group').selectedOptions[0].textContent,
      document.getElementById('honest').textContent];
    const seen = [told()];
    document.querySelector('a[data-timeline="1"]').click();
    seen.push(told());
    document.getElementById('in').click();
    seen.push(document.getElementById('out').disabled);
    document.getElementById('all').click();
    seen.push(document.getElementById('out').disabled);
    const find = document.getElementById('find');
    find.value = 'all 7'; find.dispatchEvent(new Event('input'));
    seen.push(told(), document.querySelectorAll('#key b').length);
    return seen;"""

    first, linked, zoomed, whole, searched, tags = found(told, tmp_path, script)

    assert first[0].startswith("</script><b> — 1 partition, 5 intervals")
    assert "2 gaps, 40 ms over all partitions, 1 shorter than a column" in first[1]
    assert linked[0].startswith("other — ")
    assert (zoomed, whole) == (False, True)
    assert searched[0].startswith("all 7 other groups in one strip")
    assert tags == 0


def test_zooming_in_leads_to_each_interval(tmp_path: Path) -> None:
    """A gap of 2 ms in ten seconds: its middle is without an owner, and 1 ms beside it is not."""
    grants = (("x", 0, 5_000), ("y", 5_002, 10_000))
    told = replace(
        analysis(timeline("g", owned("x"), intervals=2, gaps=1)),
        intervals=tuple(
            Interval("g", "t", 0, owner, owner, 1, start, end, "left", 0)
            for owner, start, end in grants
        ),
    )
    script = """
    const canvas = document.getElementById('chart'), left = Number(canvas.dataset.gutter);
    const width = canvas.clientWidth - left;
    for (let at = 0; at < 12; at++) document.getElementById('in').click();
    const told = (share) => {
      canvas.dispatchEvent(new PointerEvent('pointermove', {clientX: canvas.getBoundingClientRect()
        .left + left + width * share, clientY: canvas.getBoundingClientRect().top + 40}));
      return document.getElementById('told').textContent;
    };
    return [document.getElementById('honest').textContent, told(0.3), told(0.6), told(0.9)];"""

    honest, before, between, after = found(told, tmp_path, script)

    assert "each interval is drawn here, to the millisecond" in honest
    assert before.endswith("owner x for 5.0 s")
    assert between.endswith("no owner")
    assert after.endswith("owner y for 5.0 s")


def test_a_cell_is_told_with_the_times_at_which_it_begins_and_ends(tmp_path: Path) -> None:
    """Columns of 40 ms in a log of 100 s."""
    cells = timeline("g", owned("x", 0, 2_500), intervals=1)
    script = """
    const canvas = document.getElementById('chart'), box = canvas.getBoundingClientRect();
    canvas.dispatchEvent(new PointerEvent('pointermove', {clientX: box.left + 300,
      clientY: box.top + 40}));
    return document.getElementById('told').textContent;"""

    whole = replace(analysis(replace(cells, column_ms=40)), last_ms=100_000)
    told = found(whole, tmp_path, script)

    times = re.search(r"\+([0-9.]+) s to \+([0-9.]+) s", told)
    assert times is not None, told
    assert round(float(times[2]) - float(times[1]), 3) == 0.04


def test_times_are_rounded_before_they_are_split(tmp_path: Path) -> None:
    """A minute has no sixtieth second, and an hour no sixtieth minute."""
    times = [(1_139_960, 100), (1_139_940, 100), (3_599_999, 100), (3_599_999, 1), (59_500, 1_000)]
    script = f"return {json.dumps(times)}.map(([ms, step]) => tick(ms, step, 4000000));"

    assert found(analysis(), tmp_path, script) == [
        "+0:19:00.0",
        "+0:18:59.9",
        "+1:00:00.0",
        "+0:59:59.999",
        "+0:01:00",
    ]


def test_a_cell_is_told_in_words_that_fit_its_numbers_and_ends_with_the_log(
    tmp_path: Path,
) -> None:
    """One gap begins, two overlaps begin; the last column of 40 ms is of a log of 100.01 s."""
    cell = owned("x", 0, 2_501)._replace(gap_ms=1, gaps=1, overlap_ms=2, overlaps=2)
    whole = replace(
        analysis(replace(timeline("g", cell, intervals=1), column_ms=40)), last_ms=100_010
    )
    script = """
    const canvas = document.getElementById('chart'), box = canvas.getBoundingClientRect();
    const width = canvas.clientWidth;
    canvas.dispatchEvent(new PointerEvent('pointermove', {clientX: box.left + width - 0.001,
      clientY: box.top + 40}));
    return document.getElementById('told').textContent;"""

    told = found(whole, tmp_path, script)

    assert " to +100.010 s" in told
    assert "1 gap begins here" in told
    assert "2 overlaps begin here" in told


def test_each_gap_is_at_least_a_pixel_of_the_canvas(tmp_path: Path) -> None:
    """Cells of an hour's log in which 1 ms has no owner: the colour of gaps is on the canvas."""
    gap = owned("x", 3, 1)._replace(owned_ms=999, gap_ms=1, gaps=1)
    with_gap = analysis(timeline("g", owned("x", 0, 3), gap, owned("x", 4, 6), intervals=2, gaps=1))
    script = """
    const canvas = document.getElementById('chart'), c = canvas.getContext('2d');
    const left = Number(canvas.dataset.gutter);
    const {data} = c.getImageData(left, 30, canvas.width - left, 60);
    let black = 0;
    for (let at = 0; at < data.length; at += 4) {
      if (data[at] + data[at + 1] + data[at + 2] === 0 && data[at + 3] === 255) black++;
    }
    return black;"""

    assert found(with_gap, tmp_path, script) > 0
    assert found(analysis(timeline("g", owned("x"), intervals=1)), tmp_path, script) == 0


def test_a_script_that_got_into_the_page_would_not_run(tmp_path: Path) -> None:
    """The policy names the hash of the page's own script, which the tests above see at work."""
    assert run(page(analysis(groups=(summary("g"),))), tmp_path, "return 1;") is None


def test_the_policy_lets_the_page_s_own_script_run(tmp_path: Path) -> None:
    """It fills the choice of groups."""
    text = page(analysis(timeline("only one", owned("x"), intervals=1)))

    assert '<option value="0">only one' in opened(text, tmp_path)

"""The page: it is whole without a network, hostile names stay text, and what it hides it counts."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from typing import Any

import pytest

from holdfast.replay.analyse.analysis import Analysis, Listed
from holdfast.replay.analyse.intervals import Interval
from holdfast.replay.analyse.timeline import Totals
from holdfast.replay.report import page as pages
from holdfast.replay.report.page import PAGE_MAX, page
from holdfast.replay.report.timeline_data import embedded
from unit.replay.report.reports import analysis, owned, summary, timeline

HOSTILE = [
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "\"onmouseover='x'",
    "&lt;b&gt;",
    "\u05e9\u05dc\u05d5\u05dd \u202etxt.exe",
    "x" * 249,
    "]]>\u2028\\u003c",
]


class Read(HTMLParser):
    """The tags, attributes and cells of a page as a browser's parser has them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def data_of(text: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    content: dict[str, Any] = json.loads(found[1])
    return content


def hostile(name: str) -> Analysis:
    return analysis(timeline(name, owned(name), intervals=1), groups=(summary(name),))


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_adds_no_tag_and_no_attribute(name: str) -> None:
    plain, found = Read(page(hostile("g"))), Read(page(hostile(name)))

    assert [tag for tag, _ in found.tags] == [tag for tag, _ in plain.tags]
    assert [sorted(of) for _, of in found.tags] == [sorted(of) for _, of in plain.tags]
    assert "\u202e" not in "".join(found.texts)


@pytest.mark.parametrize("name", ["</script>", "\"'&<b>", "x" * 249])
def test_a_name_arrives_whole_in_tables_and_timelines(name: str) -> None:
    text = page(hostile(name))
    (drawn,) = data_of(text)["timelines"]

    assert (drawn["group"], drawn["owners"]) == (name, [name])
    assert name in Read(text).texts


def test_the_page_asks_no_network_for_anything() -> None:
    text = page(hostile("g"), picture=b"png")

    loaded = [of for _, of in Read(text).tags if "src" in of or "href" in of]
    assert {str(of.get("src", of.get("href")))[:5] for of in loaded} <= {"data:", "#time"}
    assert not re.search(r"\bfetch\(|XMLHttp|@import|url\(|import\(|https?://", text)


def test_the_policy_of_the_page_allows_its_own_script_and_no_network() -> None:
    text = page(hostile("g"))
    (policy,) = [str(of["content"]) for _, of in Read(text).tags if "http-equiv" in of]
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digest = base64.b64encode(sha256(script.encode()).digest()).decode()

    assert policy.split("; ") == [
        "default-src 'none'",
        f"script-src 'sha256-{digest}'",
        "style-src 'unsafe-inline'",
        "img-src data:",
    ]


def test_a_group_in_a_table_links_to_its_own_timeline_and_others_do_not() -> None:
    told = analysis(
        timeline("a", owned("x"), intervals=2),
        timeline("b", owned("x"), intervals=1),
        timeline("", owned(""), groups=7, intervals=3),
        groups=(summary("b"), summary("elsewhere"), summary("a")),
    )
    links = [of for tag, of in Read(page(told)).tags if tag == "a"]

    assert [link["data-timeline"] for link in links] == ["1", "0"]


def test_the_page_counts_the_groups_that_share_a_strip() -> None:
    told = analysis(
        timeline("a", owned("x"), intervals=2),
        timeline("", owned(""), groups=7, partitions=21, intervals=30, gaps=4, gap_ms=1_500),
    )
    text = page(told)

    assert (
        "7 other groups share one strip: 30 intervals of ownership of 21 partitions in 7 groups, "
        "4 gaps of 1.5 s in all, 0 overlaps of 0 ms." in text
    )
    assert "32 intervals of ownership of 22 partitions in 8 groups" in text


def test_timelines_beyond_the_budget_are_counted_and_nothing_is_lost() -> None:
    """The strip of all others stays; of the groups the least busy go first."""
    told = analysis(
        *(timeline(f"g{n}", owned("x" * 200), intervals=9 - n, gaps=n) for n in range(5)),
        timeline("", owned(""), groups=3, intervals=2),
    )
    found = embedded(told, budget=2_000)

    assert [each.group for each in found.timelines] == ["g0", "g1", "g2", ""]
    shown = Totals()
    for each in found.timelines:
        shown = shown.plus(each.totals)
    assert shown.plus(found.left_out) == told.whole
    assert "2 groups are not drawn" in " ".join(pages.counts(told, found))


def test_intervals_are_on_the_page_to_the_millisecond_if_there_is_room() -> None:
    """Relative to the first record; an owner that no cell names has its name, too."""
    grants = [("x", 1_000, 4_000), ("short", 4_000, 4_003), ("x", 4_003, 11_000)]
    told = replace(
        analysis(timeline("g", owned("x"), intervals=3), timeline("h", owned("x"), intervals=1)),
        first_ms=1_000,
        last_ms=11_000,
        intervals=tuple(
            Interval("g", "t", 0, owner, owner, at, start, end, "generation", 0)
            for at, (owner, start, end) in enumerate(grants)
        ),
    )
    with_them, without = data_of(page(told))["timelines"]

    x, short = (with_them["owners"].index(name) for name in ("x", "short"))
    assert with_them["exact"] == [[0, 3_000, x, 3_000, 3, short, 3_003, 6_997, x]]
    assert "exact" not in without
    assert len(embedded(told, budget=len(json.dumps(without)) * 2).timelines) == 2


def test_rows_that_are_not_listed_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that the analysis cut, and those for which the page has no room."""
    groups = tuple(summary(f"g{n}") for n in range(100))
    told = replace(analysis(groups=groups), listed=Listed(groups=5_000))
    assert "100 of 5,000 are listed, 4,900 are not." in page(told)

    monkeypatch.setattr(pages, "TABLES_MAX", 40_000)
    listed = page(told)
    rows = listed.count("<tr>") - 1
    assert 0 < rows < 100
    assert f"{rows} of 5,000 are listed, {5_000 - rows:,} are not." in listed


def test_the_longest_names_in_every_row_make_no_page_beyond_its_limit() -> None:
    """249 bytes that each take six in HTML, a thousand groups, thirty thousand cells."""
    names = [f"{n:04}" + "&" * 245 for n in range(1_000)]
    drawn = [
        timeline(name, *(owned(f"{at}{name}", at, 1) for at in range(300)), intervals=300)
        for name in names[:200]
    ]
    told = analysis(*drawn, groups=tuple(map(summary, names)))

    assert len(page(told, picture=b"p" * 300_000).encode()) <= PAGE_MAX

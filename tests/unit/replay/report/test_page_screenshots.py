"""Photographs of the page: what a reader sees of a group of 5 members, and of one of 5,000.

On a wide screen in both themes, and on a phone. Run where a Chromium is on PATH.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from itertools import combinations, pairwise
from typing import Any, Final

import pytest
from PIL import Image

from holdfast.replay.report.page import page
from unit.replay.report.browser import BROWSER, camera, run, with_scripts
from unit.replay.report.crew import BACK_MS, FIRST_MS, LOST_MS, SPAN_MS, crew
from unit.replay.report.seen_colours import Rgb, contrast, parsed

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no chromium on PATH")

SIZES: Final = {5: 12, 5_000: 20_000}
"""Members, and partitions."""
OWNERS: Final = tuple(f"c{n}" for n in range(8))
LANES: Final = {5: 12, 5_000: 96}
ABOVE: Final = 26
BELOW: Final = 22
"""Pixels of the timeline's canvas for the labels of marks, and for the times."""
WIDE: Final = (1_280, 2_400)
PHONE: Final = (390, 3_000)
SIGHTS: Final = [(members, scheme, WIDE) for members in SIZES for scheme in ("light", "dark")]
ALL: Final = [*SIGHTS, *((members, "light", PHONE) for members in SIZES)]

HEAD: Final = """<head><script>
const names = ['page', 'gap', 'many', 'lane', ...Array.from({length: 8}, (_, at) => `c${at}`)];
const said = [], paint = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
  const width = this.measureText(text).width;
  const left = x - width * {left: 0, center: 0.5, right: 1}[this.textAlign];
  said.push([text, left, left + width, y]);
  paint.call(this, text, x, y);
};
window.look = () => {
  said.length = 0;
  window.dispatchEvent(new Event('resize'));
  const clear = (colour) => /, 0\\)$/.test(colour);
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (!clear(colour)) return colour;
    }
  };
  const own = (element) => [...element.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
  const texts = [...document.body.querySelectorAll('*')].filter((each) =>
    !each.disabled && (own(each) || each.matches('input')) && each.getClientRects().length);
  const canvas = document.getElementById('chart'), box = canvas.getBoundingClientRect();
  const style = getComputedStyle(document.documentElement);
  const named = names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]);
  const broken = [...document.querySelectorAll('th button')].filter((head) =>
    head.getBoundingClientRect().height > 1.5 * parseFloat(getComputedStyle(head).lineHeight));
  return {
    said, canvas: [box.left, box.top, box.width, box.height],
    gutter: Number(canvas.dataset.gutter), named: Object.fromEntries(named),
    honest: document.getElementById('honest').textContent, window: innerWidth,
    page: document.documentElement.scrollWidth,
    broken: broken.map((head) => head.textContent),
    small: texts.filter((each) => parseFloat(getComputedStyle(each).fontSize) < 11).length,
    texts: texts.map((each) => [each.textContent.slice(0, 30) || each.tagName,
      getComputedStyle(each).color, behind(each)]),
  };
};
</script>"""
"""Before the page's own script: notes what is painted as text, and tells what is to be seen."""


@dataclass(frozen=True)
class Sight:
    """A photograph, and what the browser tells of it."""

    picture: Image.Image
    told: dict[str, Any]

    def lanes(self, ms: int, *names: str) -> int:
        """How many lanes of the timeline have one of the named colours at a time."""
        wanted = {parsed(self.told["named"][name]) for name in names}
        left, top, width, height = self.told["canvas"]
        gutter = self.told["gutter"]
        x = left + gutter + (width - gutter) * ms / SPAN_MS
        lanes = range(ABOVE, int(height) - BELOW)
        found = [self.pixel(x, top + down) in wanted for down in lanes]
        return sum(now and not before for before, now in pairwise([False, *found]))

    def pixel(self, x: float, y: float) -> Rgb:
        """One colour of the photograph."""
        found = self.picture.getpixel((int(x), int(y)))
        assert isinstance(found, tuple)
        return Rgb(*found[:3])


def framed(text: str, width: int, height: int) -> str:
    """A page within one of a phone's width: no window of a browser is so narrow."""
    style = f"border: 0; width: {width}px; height: {height}px"
    frame = f'<iframe style="{style}" srcdoc="{escape(text)}"></iframe>'
    return (
        f'<!doctype html><html><meta charset="utf-8"><body style="margin: 0">{frame}</body></html>'
    )


Taken = dict[tuple[int, str, tuple[int, int]], Sight]


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory) -> Taken:
    """All photographs, each with one start of the browser."""
    folder = tmp_path_factory.mktemp("sights")
    found: Taken = {}
    for members, scheme, window in ALL:
        file = folder / "sight.png"
        text = with_scripts(page(crew(members, SIZES[members]))).replace("<head>", HEAD, 1)
        shown = text if window == WIDE else framed(text, *window)
        told = run(
            shown, folder, "return (window[0] ?? window).look();", *camera(file, *window, scheme)
        )
        assert told is not None
        picture = Image.open(file).convert("RGB")
        found[members, scheme, window] = Sight(picture, told)
    return found


@pytest.mark.parametrize("members", SIZES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_each_lane_shows_when_it_had_an_owner_and_when_it_had_none(
    taken: Taken, members: int, scheme: str
) -> None:
    """Before the first owner, with one, without one, with the next: a colour of its own each."""
    sight, lanes = taken[members, scheme, WIDE], LANES[members]
    owners = OWNERS if members == 5 else ("many",)

    assert sight.lanes(FIRST_MS // 2, "lane") == lanes
    assert sight.lanes((FIRST_MS + LOST_MS) // 2, *owners) == lanes
    assert sight.lanes((LOST_MS + BACK_MS) // 2, "gap") == lanes
    assert sight.lanes((BACK_MS + SPAN_MS) // 2, *owners) == lanes
    assert sight.lanes((LOST_MS + BACK_MS) // 2, *owners, "lane") == 0


def test_neighbours_of_different_owners_have_different_colours(taken: Taken) -> None:
    """Five members take turns in twelve lanes: each colour is in two of them, or in three."""
    sight = taken[5, "light", WIDE]
    lanes = [sight.lanes((FIRST_MS + LOST_MS) // 2, name) for name in OWNERS]

    assert sorted(lanes) == [0, 0, 0, 2, 2, 2, 3, 3]


@pytest.mark.parametrize("members", SIZES)
def test_dark_is_dark_and_light_is_light(taken: Taken, members: int) -> None:
    light, dark = (taken[members, scheme, WIDE] for scheme in ("light", "dark"))

    for sight, far in ((light, "#000000"), (dark, "#ffffff")):
        corner = sight.pixel(3, 3)
        assert corner == parsed(sight.told["named"]["page"])
        assert contrast(corner, parsed(far)) >= 15


@pytest.mark.parametrize(("members", "scheme", "window"), ALL)
def test_nothing_is_wider_than_the_window(
    taken: Taken, members: int, scheme: str, window: tuple[int, int]
) -> None:
    """A table may be: it scrolls within the page. No head of a column is broken for that."""
    told = taken[members, scheme, window].told

    assert told["window"] == window[0]
    assert told["page"] <= window[0]
    assert told["broken"] == []


@pytest.mark.parametrize(("members", "scheme", "window"), ALL)
def test_no_text_is_fainter_or_smaller_than_can_be_read(
    taken: Taken, members: int, scheme: str, window: tuple[int, int]
) -> None:
    """WCAG 2.2, level AA: 4.5 to 1, against what lies behind the text."""
    told = taken[members, scheme, window].told

    assert len(told["texts"]) > 50
    faint = [
        (text, front, behind)
        for text, front, behind in told["texts"]
        if contrast(computed(front), computed(behind)) < 4.5
    ]
    assert faint == []
    assert told["small"] == 0


@pytest.mark.parametrize(("members", "scheme", "window"), ALL)
def test_texts_on_the_timeline_are_whole_and_do_not_overlap(
    taken: Taken, members: int, scheme: str, window: tuple[int, int]
) -> None:
    """Names of lanes, times and marks: each within the canvas, and no two on one place."""
    told = taken[members, scheme, window].told

    assert len(told["said"]) > 12
    assert [each for each in told["said"] if each[1] < 0 or each[2] > told["canvas"][2]] == []
    near = [
        (one, other)
        for one, other in combinations(told["said"], 2)
        if abs(one[3] - other[3]) < 10 and one[1] < other[2] and other[1] < one[2]
    ]
    assert near == []


def test_a_mark_whose_name_has_no_room_is_counted(taken: Taken) -> None:
    """The second is half a second after the first: its name would stand on that one's."""
    for sight in taken.values():
        assert "n2 leads" not in [text for text, *_ in sight.told["said"]]
        assert "1 mark without a name" in sight.told["honest"]


def test_times_on_the_axis_are_round(taken: Taken) -> None:
    """A reader looks for 20 s and 40 s: times lie 1, 2 or 5 times a power of ten apart."""
    for sight in taken.values():
        said = [re.fullmatch(r"\+([0-9.]+) s", text) for text, *_ in sight.told["said"]]
        times = [float(each[1]) for each in said if each]
        assert 3 <= len(times) <= 15
        assert {then - now for now, then in pairwise(times)} <= {10, 20, 50}


def computed(text: str) -> Rgb:
    """A colour as a browser tells it."""
    return Rgb(*map(float, re.findall(r"[0-9.]+", text)[:3]))

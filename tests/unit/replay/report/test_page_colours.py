"""Colours of a report: whoever reads it, a gap is no owner, and no owner looks like another."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path
from typing import Final

import pytest

from holdfast.replay.report import grid_picture, page
from unit.replay.report.seen_colours import READERS, Matrix, apart, contrast, parsed

CSS: Final = (Path(page.__file__).parent / "page.css").read_text(encoding="utf-8")
OWNERS: Final = tuple(f"c{n}" for n in range(8))
TOLD_APART: Final = 12
"""About five times what is just noticed."""


def theme(name: str) -> dict[str, str]:
    """The named colours of the page: the light ones stand first, the dark ones after them."""
    light, dark = CSS.split("prefers-color-scheme: dark", 1)
    return dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", light if name == "light" else dark))


@pytest.mark.parametrize("name", ["light", "dark"])
@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_all_readers_tell_owners_gaps_and_overlaps_apart(name: str, reader: Matrix) -> None:
    """On the timeline any two of them may touch."""
    colours = theme(name)
    for one, other in combinations(("gap", "over", "many", "lane", *OWNERS), 2):
        far = apart(parsed(colours[one]), parsed(colours[other]), reader)
        assert far >= TOLD_APART, (one, other, colours[one], colours[other])


@pytest.mark.parametrize("name", ["light", "dark"])
def test_a_gap_is_lighter_or_darker_than_every_owner_not_only_another_colour(name: str) -> None:
    """A mark of one pixel has no colour that an eye could name; twice the light it sees."""
    colours = theme(name)
    for each in ("over", "many", *OWNERS):
        assert contrast(parsed(colours["gap"]), parsed(colours[each])) >= 2, each


@pytest.mark.parametrize("name", ["light", "dark"])
def test_texts_stand_out_from_the_page(name: str) -> None:
    """WCAG 2.2, level AA: 4.5 to 1. These colours are texts on the canvas, too."""
    colours = theme(name)
    for each in ("text", "quiet", "link", "mark"):
        assert contrast(parsed(colours[each]), parsed(colours["page"])) >= 4.5, each


def test_pictures_have_the_colours_of_the_light_page() -> None:
    light = theme("light")

    drawn = (grid_picture.GAP, grid_picture.OVERLAP, grid_picture.MANY, grid_picture.BARE)
    assert dict(zip(("gap", "over", "many", "lane"), drawn, strict=True)).items() <= light.items()
    assert dict(zip(OWNERS, grid_picture.PALETTE, strict=True)).items() <= light.items()

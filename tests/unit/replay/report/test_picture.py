"""The picture of who owned what: each owner looks different, to any kind of eye."""

from __future__ import annotations

import io
from collections import Counter

import pytest
from PIL import Image

from holdfast.replay.report.grid_picture import PALETTE
from holdfast.replay.report.picture import NAMED_OWNERS_MAX, draw, looks
from unit.replay.report.crew import crew


def test_all_owners_that_are_named_look_different() -> None:
    """By a colour that colour-blind readers tell apart; where these end, by a pattern as well."""
    owners = [f"owner {number:02}" for number in range(NAMED_OWNERS_MAX)]

    chosen = looks(reversed(owners))

    assert list(chosen) == owners
    assert len(set(chosen.values())) == NAMED_OWNERS_MAX
    assert {look.colour for look in chosen.values()} == set(PALETTE)
    assert {chosen[name].pattern for name in owners[: len(PALETTE)]} == {""}


@pytest.mark.parametrize("members", [8, 20, 60])
def test_a_picture_has_all_of_these_colours_however_many_owners_there_are(members: int) -> None:
    """Between them and white lie the edges of patterns."""
    told = crew(members, 60)

    picture = Image.open(io.BytesIO(draw(told, told.timelines[0].group))).convert("RGB")
    pixels = Counter(zip(*[iter(picture.tobytes())] * 3, strict=True))

    common = {f"#{bytes(colour).hex()}" for colour, count in pixels.items() if count > 2_000}
    assert set(PALETTE) <= common

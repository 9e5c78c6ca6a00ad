"""The files of a report, in a folder that may have an earlier one."""

from __future__ import annotations

from pathlib import Path

from holdfast.replay.report.writer import write
from unit.replay.report.reports import analysis, owned, timeline


def test_pictures_of_an_earlier_report_do_not_stay_beside_a_new_one(tmp_path: Path) -> None:
    """Two groups, then one, then none: a folder never shows what its page does not tell of."""
    mine = tmp_path / "ownership-notes.png"
    mine.write_bytes(b"not of a report")

    two = [timeline(group, owned("a"), intervals=1) for group in ("g", "h")]
    names = ["ownership.png", "ownership-2.png"]
    for number in (2, 1, 0):
        write(analysis(*two[:number]), tmp_path)
        assert {path.name for path in tmp_path.glob("*.png")} == {*names[:number], mine.name}

"""What the demo ends with: its judgement, and where the report lies that one may look at."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from demo import phases
from demo.diary import Diary
from demo.group import CLASSIC
from demo.measure import Window
from demo.run import conclude
from demo.settings import Place
from demo.store import Store
from holdfast.replay.report.writer import write
from unit.replay.report.reports import analysis, owned, timeline


def finished(place: Place) -> phases.Stage:
    """A run in which nothing happened, with every phase: nothing was claimed, nothing moved."""
    cluster = cast("Any", SimpleNamespace(protocol=CLASSIC))
    store, diary = Store.create(place.store, []), Diary.create(place.diary)
    stage = phases.Stage(cluster, cast("Any", None), store, diary, lambda _: None)
    stage.phases += [phases.Phase(name, Window(0.0, 1.0), 0, 0) for name in phases.MOVED]
    return stage


def test_the_last_lines_are_the_files_of_the_report_whatever_was_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A name that the report did not write would be a dead end for whoever follows it."""
    place = Place(tmp_path)
    write(analysis(timeline("g", owned("x"), intervals=1)), place.folder)
    stage = finished(place)
    stage.check("all that was promised", "nothing", held=False)

    assert not conclude(stage, place, 1.0)

    picture, page = capsys.readouterr().out.splitlines()[-2:]
    assert (picture, page) == (f"picture: {place.picture}", f"page: {place.page}")
    assert Path(page.removeprefix("page: ")).read_text().startswith("<!doctype html>")
    assert Path(picture.removeprefix("picture: ")).read_bytes().startswith(b"\x89PNG")

"""Anchors of a made-up history tell what its records lead to, and change nothing in it (S3)."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from io import StringIO
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from holdfast.coordinator.kernel.apply import replay
from holdfast.coordinator.model.state import State
from holdfast.replay.generate.anchors import Anchors
from holdfast.replay.generate.plan import Plan
from holdfast.replay.generate.write import ANCHORS, write_history
from holdfast.replay.read.anchor_files import Anchor, read_anchors
from holdfast.storage.codec.event_codec import CHAIN_START, chain_hash, decode_record, split_chain
from holdfast.storage.codec.state_image import digest_of
from unit.replay.generate.logs import files_of, rows_of

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.replay.generate.leader import Leader

PLAN = Plan(2_000, groups=12, seed=3, nodes=1, segment_events=1_000, witness=False, anchors=9)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A history with anchors, which tests only read."""
    return write_history(PLAN, tmp_path_factory.mktemp("made") / "cluster").folder


def led_to(folder: Path, anchor: Anchor) -> tuple[bytes, int]:
    """Chain and digest at an anchor's index, from the records of the files alone."""
    rows = [row for row in rows_of(folder / "node-1") if row.position.index <= anchor.index]
    contents = [split_chain(row.content)[0] for row in rows]
    head = CHAIN_START
    for content in contents:
        head = chain_hash(head, content)
    state = replay(State(), [decode_record(row.content) for row in rows])
    state = state._replace(applied_index=anchor.index, log_time_ms=anchor.log_time_ms)
    return head, digest_of(state)


def test_each_anchor_tells_what_the_records_up_to_it_lead_to(made: Path) -> None:
    """Also behind an entry without a record, as after a change of leaders."""
    anchors = read_anchors([made / ANCHORS])

    assert len({anchor.index for anchor in anchors}) == PLAN.anchors
    assert [(a.chain, a.digest) for a in anchors] == [led_to(made, a) for a in anchors]


def test_they_change_nothing_in_the_history(made: Path, tmp_path: Path) -> None:
    without = write_history(replace(PLAN, anchors=0), tmp_path / "without").folder
    other = shutil.copytree(made, tmp_path / "with")
    (other / ANCHORS).unlink()

    assert files_of(without) == files_of(other)


def test_a_history_with_fewer_entries_has_an_anchor_for_each(tmp_path: Path) -> None:
    """If each record is chosen: each entry behind those that found the cluster tells once."""
    folder = write_history(replace(PLAN, events=60, anchors=60), tmp_path / "made").folder
    entries = sorted({row.position.index for row in rows_of(folder / "node-1")})
    told = [anchor.index for anchor in read_anchors([folder / ANCHORS])]

    assert len(entries) // 2 < len(told) < 60
    assert told == entries[-len(told) :]


def test_of_several_chosen_places_in_an_entry_one_is_told() -> None:
    """The entries behind it are no chosen places: `--anchors` gives so many at most."""
    file, leader = StringIO(), SimpleNamespace(count=2, state=State(), whole=CHAIN_START)
    anchors = Anchors(replace(PLAN, events=10, anchors=10), cast("Leader", leader), file)

    anchors.entry_is_there()
    anchors.entry_is_there()
    assert [json.loads(line)["records"] for line in file.getvalue().splitlines()] == [2]
    leader.count = 3
    anchors.entry_is_there()
    anchors.entry_is_there()
    assert [json.loads(line)["records"] for line in file.getvalue().splitlines()] == [2, 3]

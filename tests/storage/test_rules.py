"""What the disk refuses although every file is sound: no course of the log leads to it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from holdfast.storage.errors import StateContradicted, WriteRefused
from holdfast.storage.journal import rules
from holdfast.storage.journal.journal import JournalBatch
from holdfast.storage.journal.rules import Outline, advance
from holdfast.storage.state.rules import StateMeta
from holdfast.storage.state.state_store import EventRecord, StateStore
from storage.stores import content, events, filled, meta, snapshot_changes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SEVEN = meta(7)
EIGHT = replace(meta(8), term=SEVEN.term)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[StateStore]:
    """A store that holds the state of entry 7, of term 1 and log time 7 s."""
    made = filled(tmp_path / "state", [7])
    yield made
    made.close()


@pytest.mark.parametrize(
    ("new", "records", "sentence"),
    [
        pytest.param(
            replace(EIGHT, term=0), [], "is of term 0, the stored one of 7 is of term 1", id="term"
        ),
        pytest.param(
            replace(EIGHT, log_time_ms=6_999), [], "is 6999 ms, stored for 7 is 7000 ms", id="S8"
        ),
        pytest.param(
            replace(SEVEN, chain=b"\x07" * 32), [], "have the chain 0707070707070707", id="S3"
        ),
        pytest.param(EIGHT, events(9), "snapshot 8 has an event of entry 9", id="S18"),
    ],
)
def test_a_snapshot_that_no_log_leads_to_is_refused_whole(
    store: StateStore, new: StateMeta, records: list[EventRecord], sentence: str
) -> None:
    """The state on disk is still the whole one; whoever wrote must stop."""
    before = content(store)

    with pytest.raises(StateContradicted, match=sentence) as refused:
        store.write_snapshot(snapshot_changes(8), records, new)

    assert "Nothing was written. This is a defect in Holdfast: stop the node" in str(refused.value)
    assert content(store) == before
    store.write_snapshot(snapshot_changes(8), events(8), EIGHT)


def test_the_same_snapshot_again_is_no_contradiction(store: StateStore) -> None:
    store.write_snapshot(snapshot_changes(7), [], SEVEN)

    assert store.meta() == SEVEN


def test_an_older_snapshot_is_refused_and_stops_nobody(store: StateStore) -> None:
    """A newer one may have been installed between the two looks."""
    with pytest.raises(WriteRefused) as refused:
        store.write_snapshot(snapshot_changes(6), [], meta(6))

    assert not isinstance(refused.value, StateContradicted)


# --- the journal ---


def no_term(index: int) -> int:
    raise AssertionError(index)


def test_s18_a_reset_never_goes_back_to_an_older_term() -> None:
    before = Outline(anchor=(5, 3), last=(5, 3), commit_index=5)

    with pytest.raises(WriteRefused, match="a reset to term 2 goes back behind term 3"):
        advance(before, JournalBatch(reset_to=(9, 2)), no_term)
    assert advance(before, JournalBatch(reset_to=(9, 3)), no_term).last == (9, 3)


@pytest.mark.parametrize(
    ("step", "broken", "sentence"),
    [
        (
            "_commit",
            lambda old, _new: replace(old, commit_index=9),
            "9 was committed, but the last",
        ),
        ("_commit", lambda old, _new: replace(old, commit_index=4), "cut up to 5, but 4 committed"),
    ],
)
def test_e2_s18_what_was_cut_is_committed_and_what_is_committed_is_there(
    monkeypatch: pytest.MonkeyPatch, step: str, broken: Callable[..., Outline], sentence: str
) -> None:
    """Each step sees to it by itself; the whole is judged once more before it is written."""
    before = Outline(anchor=(5, 3), last=(6, 3), commit_index=5)
    monkeypatch.setattr(rules, step, broken)

    with pytest.raises(WriteRefused, match=sentence):
        advance(before, JournalBatch(commit_index=6), no_term)

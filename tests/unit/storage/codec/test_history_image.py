"""Rebalance histories as records of their own: what was written restores (S18)."""

from __future__ import annotations

import pytest

from holdfast.coordinator.kernel.group_types import new_group
from holdfast.coordinator.model.ids import Position
from holdfast.coordinator.projections.history import Histories, Rebalance
from holdfast.coordinator.structures.pmap import PMap
from holdfast.storage.codec.event_codec import StateItem, encode_state
from holdfast.storage.codec.history_image import history_changes, is_misfiled, restore_histories
from holdfast.storage.codec.state_image import Change, key_bytes
from holdfast.storage.state.state_records import DATABASE_NAMES


def told(number: int, reason: str = "why") -> Rebalance:
    return Rebalance(number, reason, "m", Position(number, 0), 5)


def written(*steps: Histories) -> dict[bytes, bytes]:
    """What a store holds that was brought from nothing through these histories."""
    kept: dict[bytes, bytes] = {}
    before: Histories = PMap()
    for after in steps:
        for change in history_changes(before, after):
            if change.content is None:
                kept.pop(change.key, None)
            else:
                kept[change.key] = change.content
        before = after
    return kept


NINE = tuple(told(number) for number in range(2, 11))
HISTORIES: Histories = PMap({"g": NINE, "h": (told(1),)})


def test_what_was_written_restores() -> None:
    assert restore_histories(written(HISTORIES).items()) == HISTORIES


def test_each_rebalance_has_a_record_and_the_oldest_goes() -> None:
    """S18: a new one costs its own record; a store must not keep what a group has forgotten."""
    after = HISTORIES.set("g", (*NINE[1:], told(11)))

    changes = list(history_changes(HISTORIES, after))
    assert sorted(change.content is None for change in changes) == [False, True]
    assert restore_histories(written(HISTORIES, after).items()) == after


def test_a_rebalance_that_goes_on_is_written_anew() -> None:
    after = HISTORIES.set("h", (told(1, "another reason"),))

    assert len(list(history_changes(HISTORIES, after))) == 1
    assert restore_histories(written(HISTORIES, after).items()) == after


def test_a_deleted_groups_records_go() -> None:
    after = HISTORIES.remove("g")

    assert written(HISTORIES, after) == written(after)


def test_its_database_is_one_that_a_state_has() -> None:
    """And none of the state's own: the digest is taken over those."""
    databases = {change.database for change in history_changes(PMap(), HISTORIES)}

    assert databases == {DATABASE_NAMES[-1]}


def test_only_rebalances_among_their_group_are_misfiled() -> None:
    """Members and offsets are filed in the same database; "b" was the kind of a rebalance."""
    assert is_misfiled("groups", key_bytes("b", ("g", "3")))
    assert not is_misfiled("groups", key_bytes("m", ("b", "b")))
    assert not is_misfiled("rebalances", key_bytes("b", ("g", "3")))


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(encode_state(StateItem(("g",), new_group("g"))), id="something else"),
        pytest.param(b"\xff", id="no record"),
    ],
)
def test_s6_a_record_that_is_no_rebalance_is_left_out_and_told_of(
    content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is decided on a history, so it must not stop a start."""
    good = [*written(HISTORIES).items()]

    assert restore_histories([(b"g", content), *good]) == HISTORIES
    assert len(caplog.records) == 1


def test_s6_a_rebalance_that_has_no_form_on_disk_is_left_out_and_told_of_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It must not stop the snapshots, or the journal would grow for ever."""
    unstorable = told(12)._replace(came=-1)
    bad = HISTORIES.set("g", (*NINE, unstorable))
    later = bad.set("g", (*NINE, unstorable, told(13)))

    assert restore_histories(written(bad).items()) == HISTORIES
    assert restore_histories(written(HISTORIES, bad, later).items()) == HISTORIES.set(
        "g", (*NINE, told(13))
    )
    assert len(caplog.records) == 2, "one for each store that was written"


def test_s6_no_older_form_of_a_rebalance_that_cannot_be_stored_stays() -> None:
    bad = HISTORIES.set("h", (told(1)._replace(came=-1),))

    assert restore_histories(written(HISTORIES, bad).items()) == HISTORIES.remove("h")


@pytest.mark.parametrize(
    ("key", "item"),
    [
        (("h", "1"), StateItem(("g", "1"), told(1))),
        (("g", "2"), StateItem(("g", "1"), told(1))),
        (("g", "2"), StateItem(("g", "2"), told(1))),
    ],
)
def test_a_record_under_anothers_key_is_left_out(
    key: tuple[str, str], item: StateItem, caplog: pytest.LogCaptureFixture
) -> None:
    """S21: one group must not be told the life of another; the rest is told as it was."""
    other: Histories = PMap({"i": (told(1),)})
    records = written(other) | {key_bytes("b", key): encode_state(item)}

    assert restore_histories(records.items()) == other
    assert "it is left out" in caplog.text


def test_of_two_records_of_a_rebalance_the_last_counts() -> None:
    """Whoever reads both places gives the old one first."""
    old, new = (encode_state(StateItem(("g", "1"), told(1, reason))) for reason in ("old", "new"))

    key = key_bytes("b", ("g", "1"))
    assert restore_histories([(key, old), (key, new)]) == PMap({"g": (told(1, "new"),)})
    assert isinstance(next(history_changes(PMap(), HISTORIES)), Change)

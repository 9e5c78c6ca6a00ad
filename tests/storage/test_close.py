"""Closing the state waits for who reads, but not for ever, and then it says who that is."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from holdfast.storage.errors import StateBusy
from holdfast.storage.state.state_store import StateStore
from storage.stores import filled

if TYPE_CHECKING:
    from pathlib import Path

DEADLINE = 20.0


def test_a_reader_that_does_not_leave_is_named_and_not_waited_for(tmp_path: Path) -> None:
    """It goes on unharmed: a map that is closed under a reader would end the process."""
    store = filled(tmp_path / "state", [1, 2])
    whole = list(store.load())
    reader = store.load()
    found = [next(reader)]

    with pytest.raises(StateBusy) as caught:
        store.close(within_s=0.0)

    assert caught.value.path == tmp_path / "state"
    assert [user.operation for user in caught.value.users] == ["load"]
    assert threading.current_thread().name in str(caught.value)
    assert [*found, *reader] == whole
    store.close()


def test_a_writer_in_its_transaction_is_named_as_well(tmp_path: Path) -> None:
    """It holds the lock of writers, too: nobody may wait for that without a limit either."""
    store = filled(tmp_path / "state", [1, 2])
    with (
        store._writing,
        store._shared.using("snapshot"),
        pytest.raises(StateBusy, match="snapshot"),
    ):
        store.close(within_s=0.0)
    store.close()


def test_a_reader_that_leaves_in_time_is_waited_for(tmp_path: Path) -> None:
    store = filled(tmp_path / "state", [1, 2])
    reader = store.load()
    next(reader)
    closing = threading.Thread(target=store.close, args=(DEADLINE,))
    closing.start()

    reader.close()  # type: ignore[attr-defined]  # a generator
    closing.join(DEADLINE)

    assert not closing.is_alive()
    with pytest.raises(Exception, match="closed"):
        store.meta()


def test_what_was_read_and_let_go_is_not_named(tmp_path: Path) -> None:
    store = filled(tmp_path / "state", [1, 2])
    store.meta()
    store.events((0, 0), 10)
    store.copy_to(tmp_path / "copy")
    store.close(within_s=0.0)
    StateStore(tmp_path / "state").close(within_s=0.0)

"""What a start says of a torn last batch: what the mark knows, and not more (S21)."""

from __future__ import annotations

import logging

import pytest

from holdfast.storage.journal.tail_file import BLOCK, file_name
from storage.tail_power import Machine, Started, entry, loaded


def torn_behind_one(machine: Machine) -> None:
    """Batch 1 is whole. The middle of batch 2 is not as it was written."""
    started = loaded(machine)
    started.journal.commit(entry(1))
    started.journal.commit(entry(2, 3 * BLOCK))
    machine.durable[file_name(1)][3 * BLOCK] ^= 1


def said_at_start(machine: Machine, caplog: pytest.LogCaptureFixture) -> logging.LogRecord:
    caplog.set_level(logging.INFO)
    assert len(Started(machine).journal.load().entries) == 1
    (record,) = [each for each in caplog.records if "is torn" in each.getMessage()]
    return record


def test_a_torn_batch_is_told_with_what_the_mark_knows(
    machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    """S21: the mark names the batch before it, so the torn one's sync had not returned."""
    torn_behind_one(machine)
    machine.mark = 1

    said = said_at_start(machine, caplog)

    assert said.levelno == logging.INFO
    assert "names batch 1, the one before, as the last that was durable" in said.getMessage()
    assert "nobody was told of it. Only a power cut" in said.getMessage()


def test_a_torn_batch_without_a_mark_is_told_as_what_it_may_be(
    machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    """S21: it may have been acknowledged and damaged later, and the sentence must not deny that."""
    torn_behind_one(machine)
    machine.mark = 0

    said = said_at_start(machine, caplog)

    assert said.levelno == logging.WARNING
    assert "last-batch beside it names none. " in said.getMessage()
    assert "or it was durable and is damaged" in said.getMessage()


def test_a_torn_batch_behind_an_old_mark_is_told_as_what_it_may_be(
    machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    """S21: a mark that a power cut took back knows nothing of the batches behind it."""
    started = loaded(machine)
    for index in (1, 2):
        started.journal.commit(entry(index))
    started.journal.commit(entry(3, 3 * BLOCK))
    machine.durable[file_name(1)][4 * BLOCK] ^= 1
    machine.mark = 1
    caplog.set_level(logging.INFO)

    assert len(Started(machine).journal.load().entries) == 2
    assert "last-batch beside it names batch 1. " in caplog.text
    assert "or it was durable and is damaged" in caplog.text

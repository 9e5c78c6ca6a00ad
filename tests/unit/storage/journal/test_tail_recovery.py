"""S21: each kind of damage to the tail is told in a sentence, and a torn end is not damage."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from holdfast.storage.errors import JournalDamaged
from holdfast.storage.journal.journal import Entry, JournalBatch, JournalImage
from holdfast.storage.journal.tail_batch import encode_batch
from holdfast.storage.journal.tail_file import BLOCK, file_head, file_name, mark_of, pack_batch
from holdfast.storage.journal.tail_recovery import (
    Checkpoint,
    Recovered,
    recover,
    refuse_lost_batch,
    refuse_tail_before_checkpoint,
    replayed,
)
from storage.tail_power import Machine, ModelFiles

PATH = Path("raft")
JOURNAL = bytes(range(16))
CHECKPOINT = Checkpoint(JOURNAL.hex(), 10, 4)
"""The environment holds batches 1 to 10; files 5, 6, … hold what follows."""


def batch(sequence: int) -> JournalBatch:
    return JournalBatch(append=(Entry(sequence, 1, b"payload %d" % sequence),))


def content(serial: int, *sequences: int, journal: bytes = JOURNAL) -> bytes:
    mark = mark_of(journal, serial)
    batches = [pack_batch(mark, number, encode_batch(batch(number))) for number in sequences]
    return b"".join([file_head(journal, serial), *batches]).ljust(8 * BLOCK, b"\0")


def disk(**contents: bytes) -> ModelFiles:
    """Files by the number in their argument's name."""
    machine = Machine(Random(0))
    for name, each in contents.items():
        machine.durable[file_name(int(name.removeprefix("f")))] = bytearray(each)
    return ModelFiles(machine)


def damage(files: ModelFiles) -> str:
    with pytest.raises(JournalDamaged) as damaged:
        recover(PATH, CHECKPOINT, files)
    return damaged.value.reason


def test_batches_are_taken_in_sequence_over_all_files() -> None:
    files = disk(f5=content(5, 11, 12), f6=content(6, 13), f7=content(7))

    found = recover(PATH, CHECKPOINT, files)

    assert found == Recovered((batch(11), batch(12), batch(13)), 13, used=6, newest=7, torn=False)


def test_files_before_the_checkpoint_are_not_read() -> None:
    """A crash came between the checkpoint and their removal; what they hold does not matter."""
    files = disk(f3=b"anything", f4=content(4, 9), f5=content(5))

    assert recover(PATH, CHECKPOINT, files) == Recovered((), 10, used=4, newest=5, torn=False)


@pytest.mark.parametrize("at", [BLOCK + 8, BLOCK + 30, 2 * BLOCK - 1])
def test_a_torn_last_batch_is_left_out(at: int) -> None:
    """Its sync never returned, so nobody was told of it; padding does not count."""
    broken = bytearray(content(5, 11))
    broken[at] ^= 1

    found = recover(PATH, CHECKPOINT, disk(f5=bytes(broken), f6=content(6)))

    whole = at == 2 * BLOCK - 1
    assert (found.sequence, found.torn) == ((11, False) if whole else (10, True))
    assert found.used == 5, "nothing may be appended where a torn batch stands"


def test_a_broken_batch_before_a_whole_one_in_its_file_is_damage() -> None:
    broken = bytearray(content(5, 11, 12))
    broken[BLOCK + 30] ^= 1

    reason = damage(disk(f5=bytes(broken)))

    assert reason == (
        "batch 11 of its tail, at byte 512 of the file tail-0000000000000005, is damaged, and a "
        "whole one stands behind it at byte 1024"
    )


def test_a_broken_batch_before_a_whole_one_in_a_later_file_is_damage() -> None:
    broken = bytearray(content(5, 11, 12))
    broken[2 * BLOCK + 30] ^= 1

    assert damage(disk(f5=bytes(broken), f6=content(6, 13))).startswith(
        "batch 12 of its tail is damaged or missing, and batch 13 after it is whole"
    )


@pytest.mark.parametrize("kept", [(), (11,)])
def test_a_torn_batch_before_another_torn_one_is_damage(kept: tuple[int, ...]) -> None:
    """A file is gone on with when the last batch of the one before is durable: it was acknowledged.

    Only the batch behind it was being written when the node ended.
    """
    last, torn = len(kept) + 11, (len(kept) + 1) * BLOCK
    acknowledged, begun = bytearray(content(5, *kept, last)), bytearray(content(6, last + 1))
    acknowledged[torn + 30] ^= 1
    begun[BLOCK + 30] ^= 1

    assert damage(disk(f5=bytes(acknowledged), f6=bytes(begun))) == (
        f"batch {last} of its tail is damaged or missing, and something was written after it, in "
        "the file tail-0000000000000006"
    )


def test_a_file_of_any_number_is_told_of_at_once() -> None:
    """A stray file, or a flip in a folder: a start must not count up to its number."""
    files = disk(f5=content(5), f9999999999999999=content(9_999_999_999_999_999))

    assert damage(files) == "the file tail-0000000000000006 of its tail is missing"


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        (disk(), "the file tail-0000000000000005 of its tail is missing"),
        (disk(f6=content(6)), "the file tail-0000000000000005 of its tail is missing"),
        (
            disk(f5=content(5, 11), f7=content(7)),
            "the file tail-0000000000000006 of its tail is missing",
        ),
        (disk(f5=content(5, 12)), "batch 11 of its tail is damaged or missing"),
        (disk(f5=content(5, 11, 11)), "batch 12 of its tail is damaged or missing"),
        (disk(f5=content(5, journal=bytes(16))), "belongs to another journal"),
        (disk(f5=content(6)), "the head of the file tail-0000000000000005"),
        (disk(f5=b""), "the head of the file tail-0000000000000005"),
    ],
)
def test_what_is_not_as_it_was_written_is_damage(files: ModelFiles, reason: str) -> None:
    """A missing file, a gap, a file of another disk, one in another one's place."""
    assert reason in damage(files)


def test_a_whole_batch_that_no_version_wrote_is_damage() -> None:
    packed = pack_batch(mark_of(JOURNAL, 5), 11, [b"\xff"])

    reason = damage(disk(f5=file_head(JOURNAL, 5) + packed))

    assert reason.startswith("batch 11 in the file tail-0000000000000005 of its tail: ")


def test_a_batch_that_does_not_follow_on_the_environment_is_damage() -> None:
    """The checkpoint and the entries are of one transaction, so this cannot be a crash."""
    found = recover(PATH, CHECKPOINT, disk(f5=content(5, 11)))
    held = JournalImage(tuple(Entry(n, 1, b"") for n in range(1, 11)))

    assert replayed(PATH, held, found).entries[-1] == batch(11).append[0]
    with pytest.raises(JournalDamaged, match="batch 11 of its tail contradicts"):
        replayed(PATH, JournalImage(), found)


def test_a_lost_last_batch_is_found_by_the_mark() -> None:
    refuse_lost_batch(PATH, 11, 11)
    refuse_lost_batch(PATH, 0, 11)
    with pytest.raises(JournalDamaged, match="batch 12 of its tail was durable"):
        refuse_lost_batch(PATH, 12, 11)


def test_an_environment_that_forgot_its_checkpoint_is_damaged() -> None:
    """Its first file is made before its first checkpoint, and nothing is written there before."""
    refuse_tail_before_checkpoint(PATH, disk())
    refuse_tail_before_checkpoint(PATH, disk(f1=content(1)))
    for files in (disk(f1=content(1, 1)), disk(f1=b"")):
        with pytest.raises(JournalDamaged, match="it has no checkpoint"):
            refuse_tail_before_checkpoint(PATH, files)

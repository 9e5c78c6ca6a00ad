"""S21: which bytes of a file of the tail are batches, and which only look like some."""

from __future__ import annotations

import struct
from hashlib import sha256
from zlib import crc32

import pytest

from holdfast.storage.journal.tail_file import (
    BLOCK,
    batch_bytes,
    file_head,
    file_name,
    journal_id_of,
    mark_of,
    pack_batch,
    read_file,
    serial_of,
)

JOURNAL = bytes(range(16))
MARK = mark_of(JOURNAL, 3)
BODIES = (b"one", b"two" * 400, b"three")
SIZE = 16 * BLOCK


def file_of(*batches: bytes) -> bytearray:
    """A file of zeros with its head and these batches."""
    return bytearray(b"".join([file_head(JOURNAL, 3), *batches]).ljust(SIZE, b"\0"))


def packed(sequence: int, body: bytes, mark: bytes = MARK) -> bytes:
    return pack_batch(mark, sequence, [body[:1], body[1:]])


def whole() -> bytearray:
    return file_of(*(packed(sequence, body) for sequence, body in enumerate(BODIES, start=7)))


def test_the_bytes_are_those_that_the_format_says() -> None:
    """The files outlive the version that wrote them, so this must not change unnoticed."""
    head = b"hf-tail\x01" + JOURNAL + struct.pack(">Q", 3)
    mark = sha256(head).digest()[:8]
    place = mark + struct.pack(">QI", 7, 3)

    assert file_head(JOURNAL, 3) == (head + struct.pack(">I", crc32(head))).ljust(512, b"\0")
    assert packed(7, b"one") == (place + struct.pack(">I", crc32(place + b"one")) + b"one").ljust(
        512, b"\0"
    )
    assert file_name(3) == "tail-0000000000000003"


def test_whole_batches_are_found_up_to_the_end() -> None:
    found = read_file(bytes(whole()), MARK)

    assert found.batches == tuple(enumerate(BODIES, start=7))
    assert found.end == BLOCK + sum(batch_bytes([body]) for body in BODIES)
    assert (found.stranded, found.torn, found.touched) == (None, False, True)


def test_each_batch_begins_at_a_block_of_its_own() -> None:
    """A disk writes a sector whole or not at all, so a torn write spares what is acknowledged."""
    for size in (0, 1, BLOCK - 25, BLOCK - 24, BLOCK - 23, BLOCK, 5 * BLOCK):
        batch = packed(1, bytes(size))
        assert len(batch) == batch_bytes([bytes(size)])
        assert len(batch) % BLOCK == 0
        assert len(batch) - size - 24 < BLOCK


def test_every_flipped_bit_of_the_last_batch_makes_it_look_torn() -> None:
    """No flip is taken for another batch; the mark beside the tail tells them from torn ones."""
    content = file_of(packed(7, b"one"), packed(8, b"two"))
    at = 2 * BLOCK

    for bit in range(8 * (24 + len(b"two"))):
        content[at + bit // 8] ^= 1 << bit % 8
        found = read_file(bytes(content), MARK)
        content[at + bit // 8] ^= 1 << bit % 8
        assert (found.batches, found.stranded) == (((7, b"one"),), None)
        assert found.torn == (bit >= 64), "with its mark gone, nothing begins there"


def test_a_broken_batch_before_a_whole_one_strands_it() -> None:
    """The whole one was written after the sync of the broken one had returned."""
    content = whole()
    second = BLOCK + batch_bytes([BODIES[0]])
    for at in range(second, second + 24 + len(BODIES[1])):
        content[at] ^= 0x10
        found = read_file(bytes(content), MARK)
        content[at] ^= 0x10
        assert found.batches == ((7, BODIES[0]),)
        assert found.stranded == second + batch_bytes([BODIES[1]])


@pytest.mark.parametrize("other", [mark_of(JOURNAL, 2), mark_of(bytes(16), 3)])
def test_batches_of_another_use_or_another_journal_are_none(other: bytes) -> None:
    """A file that is used again is not emptied; a copied one is not ours."""
    found = read_file(bytes(file_of(packed(7, b"ours"), packed(8, b"theirs", other))), MARK)

    assert found.batches == ((7, b"ours"),)
    assert (found.stranded, found.torn) == (None, False)
    assert not read_file(bytes(file_of(packed(8, b"theirs", other))), MARK).touched


def test_a_file_that_ends_within_a_batch_has_a_torn_one() -> None:
    content = bytes(whole())
    found = read_file(content[: 3 * BLOCK], MARK)

    assert found.batches == ((7, BODIES[0]),)
    assert found.torn


def test_a_flipped_bit_in_the_head_or_another_number_is_not_believed() -> None:
    head = bytearray(file_head(JOURNAL, 3))
    assert journal_id_of(bytes(head), 3) == JOURNAL
    assert journal_id_of(bytes(head), 4) is None
    assert journal_id_of(b"", 3) is None

    for bit in range(8 * BLOCK):
        head[bit // 8] ^= 1 << bit % 8
        assert journal_id_of(bytes(head), 3) is None
        head[bit // 8] ^= 1 << bit % 8


@pytest.mark.parametrize("name", ["tail-1", "tail-000000000000000x", "tail.new", "data.mdb", ""])
def test_other_names_have_no_serial_number(name: str) -> None:
    assert serial_of(name) is None
    assert serial_of(file_name(1)) == 1

"""A batch of the journal's tail as bytes: what was written is read, and nothing else is."""

from __future__ import annotations

import json
import struct
from dataclasses import replace
from random import Random

import pytest

from holdfast.storage.disk.records import RecordDamaged
from holdfast.storage.journal.journal import Entry, HardState, JournalBatch, NotedMembership
from holdfast.storage.journal.tail_batch import decode_batch, encode_batch
from storage.histories import WHO, History

FULL = JournalBatch(
    reset_to=(6, 2),
    truncate_from=8,
    append=(Entry(7, 2, b"one"), Entry(8, 3, b"")),
    cut_to=(7, 2),
    hard_state=HardState(4, "né"),
    commit_index=7,
    identity=WHO,
    membership=NotedMembership(7, "né"),
)


def body(batch: JournalBatch) -> bytes:
    return b"".join(encode_batch(batch))


def test_the_bytes_are_those_that_the_format_says() -> None:
    """The files outlive the version that wrote them, so this must not change unnoticed."""
    text = json.dumps(
        {
            "cluster_id": "cluster-1",
            "formed": [["node-1", "disk-1"]],
            "incarnation": "disk-1",
            "node_id": "node-1",
            "promise_ms": 800,
            "stage": "member",
        },
        separators=(",", ":"),
    ).encode()
    expected = [
        struct.pack(">BB", 0b1111_1111, 1),
        struct.pack(">QQ", 6, 2),
        struct.pack(">Q", 8),
        struct.pack(">IQ", 2, 7) + struct.pack(">QQ", 2, 3) + struct.pack(">II", 3, 0) + b"one",
        struct.pack(">QQ", 7, 2),
        struct.pack(">QI", 4, 3) + b"n\xc3\xa9",
        struct.pack(">Q", 7),
        struct.pack(">I", len(text)) + text,
        struct.pack(">QI", 7, 3) + b"n\xc3\xa9",
    ]

    assert body(FULL) == b"".join(expected)


def test_batches_of_every_kind_are_read_as_they_were_written() -> None:
    batches = [FULL, JournalBatch(), *History(Random(7), 300).batches]

    assert [decode_batch(body(batch)) for batch in batches] == [
        replace(batch, append=tuple(batch.append)) for batch in batches
    ]


@pytest.mark.parametrize("vote", ["", None])
def test_an_empty_name_is_not_the_same_as_no_vote(vote: str | None) -> None:
    batch = JournalBatch(hard_state=HardState(1, vote))

    assert decode_batch(body(batch)) == batch


def test_a_batch_that_ends_early_is_damage_at_every_byte() -> None:
    whole = body(FULL)

    for size in range(len(whole)):
        with pytest.raises(RecordDamaged):
            decode_batch(whole[:size])


@pytest.mark.parametrize(
    ("damaged", "reason"),
    [
        (body(FULL) + b"\0", "1 bytes follow"),
        (b"\x80\x02", "unknown flags: 0x2"),
        (b"\x80\x00", "unknown flags: 0x0"),
        (b"\x80", "ends within a value"),
        (b"\x80\x01" + struct.pack(">QI", 1, 1) + b"\xff", "not UTF-8"),
        (b"\x04" + struct.pack(">IQ", 0, 1), "cannot hold 0 entries"),
        (b"\x04" + struct.pack(">IQ", 1 << 31, 1), "cannot hold"),
        (b"\x10" + struct.pack(">QI", 1, 1) + b"\xff", "not UTF-8"),
        (b"\x40" + struct.pack(">I", 1) + b"{", "not JSON"),
        (b"\x40" + struct.pack(">I", 2) + b"{}", "an identity was expected"),
    ],
)
def test_what_no_node_writes_is_damage(damaged: bytes, reason: str) -> None:
    with pytest.raises(RecordDamaged, match=reason):
        decode_batch(damaged)

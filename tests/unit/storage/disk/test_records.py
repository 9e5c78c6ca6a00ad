"""S21: the quick test of a record, by which a start checks the event log, believes no damage."""

from __future__ import annotations

import pytest

from holdfast.storage.disk.records import (
    KEY_BYTES_MAX,
    RecordDamaged,
    disk_key,
    pack_record,
    quick_test,
    unpack_record,
)

RECORDS = {
    "short": (b"k", b"content"),
    "empty": (b"key", b""),
    "longest key that is stored whole": (b"k" * (KEY_BYTES_MAX - 1), b"content"),
}


def is_refused(key: bytes, stored: bytes) -> bool:
    try:
        unpack_record("events", key, stored)
    except RecordDamaged:
        return True
    return False


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
def test_s21_a_sound_record_is_sound_and_one_with_any_flipped_bit_is_not(
    record: tuple[bytes, bytes],
) -> None:
    key, content = record
    stored = pack_record("events", key, content)
    is_sound = quick_test("events")
    assert is_sound(key, stored)
    for place in range(8 * len(stored)):
        flipped = bytearray(stored)
        flipped[place // 8] ^= 1 << place % 8
        assert not is_sound(key, bytes(flipped))
        assert is_refused(key, bytes(flipped))
    for end in range(len(stored)):
        assert not is_sound(key, stored[:end])


def test_s21_a_record_in_another_place_is_not_sound() -> None:
    """Under another key of the same or another length, or in another database."""
    stored = pack_record("events", b"one", b"content")
    is_sound = quick_test("events")
    assert is_sound(b"one", stored)
    assert not is_sound(b"two", stored)
    assert not is_sound(b"on", stored)
    assert not quick_test("groups")(b"one", stored)


def test_a_record_whose_key_is_shortened_is_left_to_the_full_test() -> None:
    """Its value holds the whole key, which the quick test does not look at."""
    key = b"k" * KEY_BYTES_MAX
    stored = pack_record("events", key, b"content")
    assert not quick_test("events")(disk_key(key), stored)
    assert unpack_record("events", disk_key(key), stored) == (key, b"content")

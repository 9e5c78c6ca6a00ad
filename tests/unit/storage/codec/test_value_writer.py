"""A message of a value is the same whichever of the three functions makes it (S3)."""

from typing import NamedTuple

import pytest

from holdfast.storage.codec.shapes import Shape
from holdfast.storage.codec.value_writer import value_writer
from holdfast.v1 import events_pb2 as ev

NAMES = ("topic", "partition", "offset", "leader_epoch", "metadata")
ONE = ("t", 3, 41, -1, "m")
MESSAGE = ev.OffsetCommitted(topic="t", partition=3, offset=41, leader_epoch=-1, metadata="m")


class _Offset(NamedTuple):
    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str


class _Offsets(NamedTuple):
    offsets: tuple[_Offset, ...]


def test_plain_fields_find_theirs_by_name() -> None:
    of_tuple = value_writer(None, NAMES, (), ())
    of_other = value_writer(lambda value: value["all"], NAMES, (), ())

    assert of_tuple(ev.OffsetCommitted, ONE) == MESSAGE
    assert of_other(ev.OffsetCommitted, {"all": ONE}) == MESSAGE


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_list_is_filled_in_its_order(count: int) -> None:
    offsets = [(*ONE[:2], number, *ONE[3:]) for number in range(count)]
    add = value_writer(None, NAMES, (), ())
    single = value_writer(lambda value: (value,), ("offsets",), (), ((0, add),))
    general = value_writer(None, ("offsets",), (), ((0, add),))
    made = single(ev.OffsetsCommitted, offsets)

    assert [each.offset for each in made.offsets] == list(range(count))
    assert general(ev.OffsetsCommitted, (offsets,)) == made


def test_a_field_that_is_converted_is_converted_once() -> None:
    twice = value_writer(None, NAMES, ((2, lambda offset: 2 * offset),), ())

    assert twice(ev.OffsetCommitted, ONE).offset == 82


def test_a_value_that_does_not_fit_raises_from_within_a_list_too() -> None:
    """Else a number too large would be cut off on the log unnoticed."""
    shape = Shape(_Offsets, ev.OffsetsCommitted.DESCRIPTOR)
    large = _Offset("t", 1 << 40, 0, 0, "")

    with pytest.raises(ValueError, match=r"int32|range"):
        shape.to_message(_Offsets((large,)))

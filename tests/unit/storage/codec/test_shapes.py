"""A value whose fields always go together has, flattened, the bytes of its fields one by one.

Else a class of the core could not be cut in two without a change of every log and snapshot (S3).
"""

from typing import NamedTuple

import pytest

from holdfast.coordinator.model.events import OffsetCommitted
from holdfast.coordinator.structures.flattened import flattened
from holdfast.storage.codec.shapes import Shape
from holdfast.v1 import events_pb2

MESSAGE = events_pb2.OffsetCommitted.DESCRIPTOR


@flattened
class Place(NamedTuple):
    topic: str
    partition: int


@flattened
class Rest(NamedTuple):
    leader_epoch: int
    metadata: str


class Whole(NamedTuple):
    """Not in the order of its message: fields find each other by name."""

    rest: Rest
    offset: int
    place: Place


class Twice(NamedTuple):
    place: Place
    topic: str
    offset: int
    rest: Rest


class Lacking(NamedTuple):
    place: Place
    offset: int


def test_a_flattened_value_is_written_as_fields_of_what_holds_it() -> None:
    plain = Shape(OffsetCommitted, MESSAGE).to_message(OffsetCommitted("t", 3, 41, 2, "m"))
    shape = Shape(Whole, MESSAGE)
    value = Whole(Rest(2, "m"), 41, Place("t", 3))

    assert shape.to_message(value) == plain
    assert shape.to_value(plain) == value


def test_a_field_that_stands_twice_is_found_when_the_shape_is_made() -> None:
    with pytest.raises(TypeError, match=r"Twice has \['topic'\] twice"):
        Shape(Twice, MESSAGE)


def test_a_field_that_only_the_message_has_is_found_when_the_shape_is_made() -> None:
    with pytest.raises(TypeError, match=r"differ in \['leader_epoch', 'metadata'\]"):
        Shape(Lacking, MESSAGE)


def test_the_fields_of_a_value_are_told_in_the_order_of_its_message() -> None:
    value = Whole(Rest(2, "m"), 41, Place("t", 3))

    assert list(Shape(Whole, MESSAGE).fields(value).items()) == [
        ("topic", "t"),
        ("partition", 3),
        ("offset", 41),
        ("leader_epoch", 2),
        ("metadata", "m"),
    ]

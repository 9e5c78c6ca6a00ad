"""A reader that is made once for a class reads as the rule says: field by field, then the class.

The rule is written here a second time, without any table that was made before.
"""

from __future__ import annotations

from operator import attrgetter
from types import SimpleNamespace
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from holdfast.storage.codec.value_reader import Flat, Turned, getter, maker, value_reader


class Pair(NamedTuple):
    """A value that is flattened in what holds it."""

    left: object
    right: object


class Plain:
    """A class that is no tuple."""

    def __init__(self, *fields: object) -> None:
        self.fields = fields


NAMES = ("a", "b", "c", "d", "e")
MESSAGES = st.fixed_dictionaries(dict.fromkeys(NAMES, st.integers())).map(
    lambda fields: SimpleNamespace(**fields)
)
FLATS = st.sampled_from([(), (Flat(0, 2, Pair),), (Flat(3, 5, Pair), Flat(0, 2, Pair))])


def negated(message: SimpleNamespace, raw: int) -> tuple[object, int]:
    """Convert with the message at hand, as an optional field does."""
    return (message.a, -raw)


def by_the_rule(message: SimpleNamespace, turned: set[int], flat: tuple[Flat, ...]) -> list[object]:
    """Read each field, convert it where that is asked for, and join the flattened ones."""
    fields = [attrgetter(name)(message) for name in NAMES]
    fields = [negated(message, raw) if i in turned else raw for i, raw in enumerate(fields)]
    for start, end, made in flat:
        fields = [*fields[:start], made(*fields[start:end]), *fields[end:]]
    return fields


@given(MESSAGES, st.sets(st.integers(0, 4)), FLATS)
def test_a_reader_reads_as_the_rule_says(
    message: SimpleNamespace, turned: set[int], flat: tuple[Flat, ...]
) -> None:
    read = value_reader(list, NAMES, [Turned(i, negated) for i in sorted(turned)], flat)
    assert read(message) == by_the_rule(message, turned, flat)


@given(MESSAGES, st.booleans())
def test_a_class_with_a_single_field_is_read_alike(message: SimpleNamespace, turned: bool) -> None:  # noqa: FBT001 - drawn
    read = value_reader(tuple, ("b",), [Turned(0, negated)] if turned else [], ())
    assert read(message) == (negated(message, message.b) if turned else message.b,)


def test_a_class_without_fields_is_read_alike() -> None:
    assert value_reader(tuple, (), [], ())(SimpleNamespace()) == ()


def test_a_getter_reads_any_number_of_paths_as_a_tuple() -> None:
    source = SimpleNamespace(a=1, b=SimpleNamespace(c=2))
    assert getter([])(source) == ()
    assert getter(["b.c"])(source) == (2,)
    assert getter(["a", "b.c"])(source) == (1, 2)


def test_a_value_is_made_of_its_class_be_it_a_tuple_or_not() -> None:
    pair, plain = maker(Pair)([1, 2]), maker(Plain)([1, 2])
    assert type(pair) is Pair
    assert pair == Pair(1, 2)
    assert type(plain) is Plain
    assert plain.fields == (1, 2)

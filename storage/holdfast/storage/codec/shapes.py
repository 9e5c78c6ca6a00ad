"""Turns values of the core into their protobuf messages and back, by field name.

The core's values are dataclasses and NamedTuples; their messages have the same fields by the same
names. A `Shape` compares the two once, when it is made, and raises if a field is missing on either
side: a field that was added to a value and forgotten in its message would be lost on the log
unnoticed. After that it only moves tuples of attributes, because each event of each entry
passes here on every node. A field whose class is declared flattened has no message: its own fields
stand in the message of what holds it. Knows neither events nor files.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import partial
from types import NoneType, UnionType
from typing import Any, Generic, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message_factory import GetMessageClass

from holdfast.coordinator.structures.flattened import is_flattened
from holdfast.storage.codec.value_reader import Flat, Turn, Turned, getter, maker, value_reader
from holdfast.storage.codec.value_writer import Add, value_writer

T = TypeVar("T")

_SCALARS = (str, int, bytes, bool)

_ToMessage = Callable[[Any], Any]


class _Leaf(NamedTuple):
    """A field of the message."""

    path: str
    """Where the value has it: `a`, or `a.b` in a flattened value."""
    name: str
    """Its name in the message."""
    hint: Any
    """The type of the value's field."""


class Shape(Generic[T]):
    """Turns values of one class into messages of one type and back."""

    __slots__ = (
        *("_fields", "_get", "_is_tuple", "_made", "_message", "_names", "_order", "_parts"),
        *("_whole", "add", "read"),
    )

    def __init__(
        self,
        made: type[T],
        descriptor: Descriptor,
        without: tuple[str, ...] = (),
        beside: Collection[str] = (),
    ) -> None:
        """Pair a class with a message. Raises TypeError if their fields differ.

        Fields in `without` are not part of the message and get their defaults when read, or what
        the reader gives. Fields in `beside` are part of the message, and not of the value.
        """
        hints = {k: v for k, v in get_type_hints(made).items() if k not in without}
        leaves, fields = tuple(_leaves(hints)), descriptor.fields_by_name
        _compare(made, leaves, descriptor, frozenset(beside))
        self._made: Callable[..., T] = made
        self._message: Callable[..., Any] = GetMessageClass(descriptor)
        self._names = tuple(hints)
        self._fields = tuple(leaf.name for leaf in leaves)
        self._order = tuple(field.name for field in descriptor.fields if field.name not in beside)
        self._get = getter([leaf.path for leaf in leaves])
        flat = tuple(_flat(hints, leaves))
        self._is_tuple = issubclass(made, tuple) and not without and not flat
        turns = [(i, _turn(leaf.hint, fields[leaf.name])) for i, leaf in enumerate(leaves)]
        writes = [(i, turn[0]) for i, turn in turns if turn is not None and turn[0] is not _same]
        lists = [(i, _adder(leaf.hint, fields[leaf.name])) for i, leaf in enumerate(leaves)]
        self.add: Add = value_writer(
            None if self._is_tuple else self._get,
            self._fields,
            tuple(writes),
            tuple((i, add) for i, add in lists if add is not None),
        )
        """Adds a value's message by a function that makes it of its fields."""
        read = tuple(Turned(i, turn[1]) for i, turn in turns if turn is not None)
        self._parts = value_reader(list, self._fields, read, flat)
        self._whole = not without
        self.read: Callable[[Any], T] = value_reader(maker(made), self._fields, read, flat)
        """Makes a value of a message, if all fields of the value are fields of the message."""

    def to_message(self, value: T, **more: object) -> Any:  # noqa: ANN401 - a message of the type given at making
        """Turn a value into its message, with `more` fields that are beside the value.

        Raises TypeError or ValueError if a field does not fit.
        """
        return self.add(partial(self._message, **more) if more else self._message, value)

    def fields(self, value: T) -> dict[str, Any]:
        """Return the values of the message's fields by name, in the message's order."""
        found = dict(zip(self._fields, self._get(value), strict=True))
        return {name: found[name] for name in self._order}

    def to_value(self, message: Any, **more: object) -> T:  # noqa: ANN401 - as above
        """Turn a message into its value, with `more` fields that the message is without."""
        if self._whole:
            return self.read(message)
        return self._made(**dict(zip(self._names, self._parts(message), strict=True)), **more)


def _leaves(hints: Mapping[str, Any]) -> Iterator[_Leaf]:
    """Yield the message's fields in the order of the value's; flattened values are expanded."""
    for name, hint in hints.items():
        if is_flattened(hint):
            yield from (_Leaf(f"{name}.{n}", n, each) for n, each in get_type_hints(hint).items())
        else:
            yield _Leaf(name, name, hint)


def _flat(hints: Mapping[str, Any], leaves: tuple[_Leaf, ...]) -> Iterator[Flat]:
    """Yield the flattened values, the last one first: joining one moves the fields after it."""
    paths = [leaf.path for leaf in leaves]
    for name, hint in reversed(tuple(hints.items())):
        if is_flattened(hint):
            places = [i for i, path in enumerate(paths) if path.startswith(f"{name}.")]
            yield Flat(places[0], places[-1] + 1, hint)


def _compare(
    made: type[Any], leaves: tuple[_Leaf, ...], descriptor: Descriptor, beside: AbstractSet[str]
) -> None:
    """Raise TypeError if a class and its message differ in fields, or a name is used twice."""
    ours, theirs = [leaf.name for leaf in leaves], set(descriptor.fields_by_name) - beside
    twice = {name for name in ours if ours.count(name) > 1}
    if twice:
        raise TypeError(f"{made.__qualname__} has {sorted(twice)} twice, once in a flattened value")
    if set(ours) != theirs:
        raise TypeError(
            f"{made.__qualname__} and message {descriptor.full_name} differ in "
            f"{sorted(set(ours) ^ theirs)}: add the field where it is missing "
            "(a new number in the .proto, then ./dev proto)"
        )


def _turn(hint: Any, field: FieldDescriptor) -> tuple[_ToMessage, Turn] | None:  # noqa: ANN401 - a type hint
    """Return how to convert one field both ways; None if both sides hold the same plain value."""
    if hint in _SCALARS:
        return None
    if get_origin(hint) in {Union, UnionType}:
        (inner,) = (each for each in get_args(hint) if each is not NoneType)
        return _optional(inner, field)
    if get_origin(hint) is tuple:
        return _many(get_args(hint)[0], field)
    shape: Shape[Any] = Shape(hint, message_of(field))
    read = shape.read
    return shape.to_message, lambda _, raw: read(raw)


def _adder(hint: Any, field: FieldDescriptor) -> Add | None:  # noqa: ANN401 - as above
    """Return how to add an item to a field that is a list of messages; None if it is none."""
    if get_origin(hint) is not tuple or (item := get_args(hint)[0]) in _SCALARS:
        return None
    shape: Shape[Any] = Shape(item, message_of(field))
    return shape.add


def _many(item: Any, field: FieldDescriptor) -> tuple[_ToMessage, Turn]:  # noqa: ANN401 - as above
    """Return how to convert a list; one of messages is filled by `_adder`, item by item."""
    if item in _SCALARS:
        return _same, lambda _, raw: tuple(raw)
    read = Shape(item, message_of(field)).read
    return _same, lambda _, raw: tuple([read(m) for m in raw])


def _optional(inner: Any, field: FieldDescriptor) -> tuple[_ToMessage, Turn]:  # noqa: ANN401 - as above
    """Return how to convert an optional field: None is an unset field.

    An optional tuple is a message with the one field `items`.
    """
    name = field.name
    if inner in _SCALARS:
        return _same, lambda message, raw: raw if message.HasField(name) else None
    if get_origin(inner) is tuple:
        wrap = GetMessageClass(message_of(field))
        to_message: _ToMessage = lambda items: wrap(items=items)  # noqa: E731 - one of a pair
        to_value: Callable[[Any], Any] = lambda raw: tuple(raw.items)  # noqa: E731 - its other half
    else:
        shape: Shape[Any] = Shape(inner, message_of(field))
        to_message, to_value = shape.to_message, shape.read
    return (
        lambda value: None if value is None else to_message(value),
        lambda message, raw: to_value(raw) if message.HasField(name) else None,
    )


def message_of(field: FieldDescriptor) -> Descriptor:
    """Return the message type of a field. Raises TypeError if the field is of a plain type."""
    if field.message_type is None:
        raise TypeError(f"{field.full_name} is a plain field, but its value has fields of its own")
    return field.message_type


def _same(value: object) -> object:
    return value

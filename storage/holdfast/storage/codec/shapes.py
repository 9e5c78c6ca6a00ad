"""How a value of the core and its protobuf message are turned into each other, by field name.

The core's values are dataclasses and NamedTuples; their messages have the same fields by the same
names. A `Shape` compares the two once, when it is made, and raises if a field is missing on either
side: a field that was added to a value and forgotten in its message would be lost on the log
without a sign. After that it only moves tuples of attributes, because each event of each entry
passes here on every node. Knows neither events nor files.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from types import NoneType, UnionType
from typing import Any, Generic, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message_factory import GetMessageClass

T = TypeVar("T")

_SCALARS = (str, int, bytes, bool)

_ToMessage = Callable[[Any], Any]
_ToValue = Callable[[Any, Any], Any]
"""From (the whole message, the raw field)."""


class _Turn(NamedTuple):
    """A field that is not the same on both sides."""

    place: int
    to_message: _ToMessage
    to_value: _ToValue


class Shape(Generic[T]):
    """Turns values of one class into messages of one type and back."""

    __slots__ = ("_get", "_is_tuple", "_made", "_message", "_names", "_turns", "_whole")

    def __init__(
        self, made: type[T], descriptor: Descriptor, without: tuple[str, ...] = ()
    ) -> None:
        """Pair a class with a message. Raise TypeError if their fields differ.

        Fields in `without` are not part of the message and get their defaults when read.
        """
        hints = {k: v for k, v in get_type_hints(made).items() if k not in without}
        fields = descriptor.fields_by_name
        if hints.keys() != set(fields.keys()):
            raise TypeError(
                f"{made.__qualname__} and message {descriptor.full_name} differ in "
                f"{sorted(hints.keys() ^ set(fields.keys()))}: add the field where it is missing "
                "(a new number in the .proto, then ./dev proto)"
            )
        self._made: Callable[..., T] = made
        self._message: Callable[..., Any] = GetMessageClass(descriptor)
        self._names = tuple(hints)
        self._whole = not without
        self._get = _getter(self._names)
        self._is_tuple = issubclass(made, tuple) and self._whole
        turns = ((i, _turn(hint, fields[n])) for i, (n, hint) in enumerate(hints.items()))
        self._turns = tuple(_Turn(i, *turn) for i, turn in turns if turn is not None)

    def to_message(self, value: T) -> Any:  # noqa: ANN401 - a message of the type given at making
        """The message of a value. Raise TypeError or ValueError if a field does not fit."""
        parts: Any = value if self._is_tuple else self._get(value)
        if self._turns:
            parts = list(parts)
            for place, turn, _ in self._turns:
                parts[place] = turn(parts[place])
        return self._message(**dict(zip(self._names, parts, strict=True)))

    def to_value(self, message: Any) -> T:  # noqa: ANN401 - as above
        """The value of a message."""
        parts = self._get(message)
        if self._turns:
            parts = list(parts)
            for place, _, turn in self._turns:
                parts[place] = turn(message, parts[place])
        if self._whole:
            return self._made(*parts)
        return self._made(**dict(zip(self._names, parts, strict=True)))


def _getter(names: tuple[str, ...]) -> Callable[[Any], Any]:
    """Read all names of an object at once, as a tuple also where they are fewer than two."""
    if not names:
        return lambda _: ()
    if len(names) == 1:
        one = attrgetter(names[0])
        return lambda source: (one(source),)
    return attrgetter(*names)


def _turn(hint: Any, field: FieldDescriptor) -> tuple[_ToMessage, _ToValue] | None:  # noqa: ANN401 - a type hint
    """How to turn one field; None if both sides hold the same plain value."""
    if hint in _SCALARS:
        return None
    if get_origin(hint) in {Union, UnionType}:
        (inner,) = (each for each in get_args(hint) if each is not NoneType)
        return _optional(inner, field)
    if get_origin(hint) is tuple:
        return _many(get_args(hint)[0], field)
    shape: Shape[Any] = Shape(hint, message_of(field))
    return shape.to_message, lambda _, raw: shape.to_value(raw)


def _many(item: Any, field: FieldDescriptor) -> tuple[_ToMessage, _ToValue]:  # noqa: ANN401 - as above
    if item in _SCALARS:
        return _same, lambda _, raw: tuple(raw)
    shape: Shape[Any] = Shape(item, message_of(field))
    one, back = shape.to_message, shape.to_value
    return lambda values: [one(v) for v in values], lambda _, raw: tuple([back(m) for m in raw])


def _optional(inner: Any, field: FieldDescriptor) -> tuple[_ToMessage, _ToValue]:  # noqa: ANN401 - as above
    """Absence is an unset field; an optional tuple is a message with the one field `items`."""
    name = field.name
    if inner in _SCALARS:
        return _same, lambda message, raw: raw if message.HasField(name) else None
    if get_origin(inner) is tuple:
        wrap = GetMessageClass(message_of(field))
        to_message: _ToMessage = lambda items: wrap(items=items)  # noqa: E731 - one of a pair
        to_value: Callable[[Any], Any] = lambda raw: tuple(raw.items)  # noqa: E731 - its other half
    else:
        shape: Shape[Any] = Shape(inner, message_of(field))
        to_message, to_value = shape.to_message, shape.to_value
    return (
        lambda value: None if value is None else to_message(value),
        lambda message, raw: to_value(raw) if message.HasField(name) else None,
    )


def message_of(field: FieldDescriptor) -> Descriptor:
    """The message type of a field. Raise TypeError if it is of a plain type."""
    if field.message_type is None:
        raise TypeError(f"{field.full_name} is a plain field, but its value has fields of its own")
    return field.message_type


def _same(value: object) -> object:
    return value

"""Random values of the core's classes, built from their fields and the ranges of their messages."""

from __future__ import annotations

from types import NoneType, UnionType
from typing import Any, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from hypothesis import strategies as st

from holdfast.coordinator.model.events import LevelRaised
from holdfast.coordinator.model.levels import LEVEL_MAX
from holdfast.coordinator.model.state import Settings, State
from holdfast.coordinator.structures.flattened import is_flattened
from holdfast.coordinator.structures.pmap import PMap
from holdfast.storage.codec.shapes import message_of

T = TypeVar("T")
Strategy: TypeAlias = st.SearchStrategy[Any]

RANGES = {
    FieldDescriptor.TYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.TYPE_SINT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.TYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.TYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.TYPE_UINT64: (0, 2**64 - 1),
}

LEVELS: dict[type[Any], dict[str, Strategy]] = {
    LevelRaised: {"level": st.integers(2, LEVEL_MAX)},
    State: {"raised_to": st.just(0) | st.integers(2, LEVEL_MAX)},
}
"""Fields that are levels: bytes of a level that is unknown here are refused, not read."""


def values_of(kind: type[T], message: Descriptor, **known: Strategy) -> st.SearchStrategy[T]:
    """Values of one class; classes named in `known` come from there."""
    if kind.__name__ in known:
        return known[kind.__name__]
    return parts_of(kind, message, **known).map(lambda fields: kind(**fields))


def parts_of(
    kind: type[Any], message: Descriptor, **known: Strategy
) -> st.SearchStrategy[dict[str, Any]]:
    """Keyword arguments of one class, without its maps, and without what may be of any class."""
    hints = {
        name: hint
        for name, hint in get_type_hints(kind).items()
        if get_origin(hint) is not PMap and hint is not Settings and not isinstance(hint, TypeVar)
    }
    fields = message.fields_by_name
    made = {
        name: _flat(hint, message, known)
        if is_flattened(hint)
        else _value(hint, fields[name], known)
        for name, hint in hints.items()
    }
    return st.fixed_dictionaries({**made, **LEVELS.get(kind, {})})


def _flat(kind: type[Any], holder: Descriptor, known: dict[str, Strategy]) -> Strategy:
    """A flattened value: the ranges of its fields are in the message of what holds it."""
    hints = get_type_hints(kind).items()
    parts = {name: _value(hint, holder.fields_by_name[name], known) for name, hint in hints}
    return st.fixed_dictionaries(parts).map(lambda fields: kind(**fields))


def _value(hint: type[Any], field: FieldDescriptor, known: dict[str, Strategy]) -> Strategy:
    if get_origin(hint) in {Union, UnionType}:
        (inner,) = (each for each in get_args(hint) if each is not NoneType)
        wrapped = message_of(field).fields_by_name["items"] if _is_tuple(inner) else field
        return st.none() | _value(inner, wrapped, known)
    if _is_tuple(hint):
        return st.lists(_value(get_args(hint)[0], field, known), max_size=3).map(tuple)
    if hint is int:
        return st.integers(*RANGES[field.type])
    if hint in {str, bytes, bool}:
        return st.from_type(hint)
    return values_of(hint, message_of(field), **known)


def _is_tuple(hint: object) -> bool:
    return get_origin(hint) is tuple

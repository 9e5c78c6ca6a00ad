"""Turns values of the state into messages of `state.proto` and back; a group is a head and a body.

A group's body and its members are of classes that its type names (`groups.group_type`), and have
messages of their own: the body one in the oneof of `GroupState` that is called like the type, a
member one in that of `StateRecord`. A type that lacks them is found when the shapes are made, not
when the first group is stored. Knows no bytes but tags, no schema version, and no type but by the
table it is given; but for one, since a group without a body is of schema version 1, and classic.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, get_origin, get_type_hints

from google.protobuf.descriptor import Descriptor
from google.protobuf.message_factory import GetMessageClass

from holdfast.coordinator.groups.group_type import Types
from holdfast.coordinator.model.access import Acl, Revocation
from holdfast.coordinator.model.events import SettingChange, TopicSize
from holdfast.coordinator.model.state import Group, Offset, RequestRecord, State
from holdfast.coordinator.projections.history import Rebalance
from holdfast.coordinator.structures.pmap import PMap
from holdfast.storage.codec.shapes import Shape, message_of
from holdfast.storage.codec.wire import varint

_BODY: Final = "body"
"""The field of a group, and the oneof of a message."""
_SIZED: Final = 2
"""Protobuf's wire type of messages."""
_V1_TYPE: Final = "classic"
"""The type of all groups of schema version 1, whose bodies' fields stood among the head's."""
_MEMBER_FIELDS: Final = {_V1_TYPE: "member"}
"""What a type's members are called in StateRecord, where that is not `<type>_member`."""
_PLAIN: Final[dict[str, type[Any]]] = {
    "offset": Offset,
    "topic": TopicSize,
    "request": RequestRecord,
    "rebalance": Rebalance,
    "acl": Acl,
    "revocation": Revocation,
}
"""Values that are stored as they are, by their field of StateRecord."""


class GroupShape:
    """Turns groups into messages and back, without what has records of its own."""

    def __init__(self, types: Types, group: Descriptor) -> None:
        """Pair heads with `group`, which is GroupState, and bodies with those in its oneof.

        Raises TypeError if a type has none there, or if fields differ.
        """
        messages = {name: _message(group, name) for name in types}
        every, of_body = (
            frozenset(group.fields_by_name),
            frozenset(messages[_V1_TYPE].fields_by_name),
        )
        flat = every & of_body
        self._head: Shape[Group[Any]] = Shape(
            Group, group, (_BODY, "offsets"), flat | _oneof(group)
        )
        self._bodies = {
            name: Shape(kind.body, messages[name], _maps(kind.body)) for name, kind in types.items()
        }
        self._derived = frozenset(name for name, kind in types.items() if kind.derived)
        """Types whose groups' states are not stored, but follow from what is."""
        made = types[_V1_TYPE].body
        newer = tuple(of_body - flat)
        self._v1_body: Shape[Any] = Shape(made, group, (*_maps(made), *newer), every - flat)

    def to_message(self, group: Group[Any]) -> Any:  # noqa: ANN401 - of the descriptor given
        """Turn a group into its message. Raises TypeError or ValueError if a field does not fit."""
        body = self._shape(group.group_type).to_message(group.body)
        if group.group_type in self._derived:
            group = group._replace(state="")
        return self._head.to_message(group, **{group.group_type: body})

    def to_value(self, message: Any) -> Group[Any]:  # noqa: ANN401 - as above
        """Turn a message into its group. Raises ValueError for an unknown type or another body."""
        kind, name = message.group_type, message.WhichOneof(_BODY)
        shape = self._shape(kind)
        if name == kind:
            body = shape.to_value(getattr(message, name))
        elif name is None and kind == _V1_TYPE:
            body = self._v1_body.to_value(message)
        else:
            raise ValueError(f"a group of type {kind!r} with a body of {name!r}")
        return self._head.to_value(message, body=body)

    def _shape(self, group_type: str) -> Shape[Any]:
        shape = self._bodies.get(group_type)
        if shape is None:
            raise ValueError(f"a group of type {group_type!r}, which this version does not know")
        return shape


class _Settings(NamedTuple):
    """A scope as it is stored: sorted by key, because a PMap's own order is by hash."""

    settings: tuple[SettingChange, ...]


class _ScopeShape:
    """Turns the settings of one scope into a message and back."""

    def __init__(self, scope: Descriptor) -> None:
        self._shape = Shape(_Settings, scope)

    def to_message(self, scope: PMap[str, str]) -> Any:  # noqa: ANN401 - of the descriptor given
        changes = tuple(SettingChange(key, text) for key, text in sorted(scope.items()))
        return self._shape.to_message(_Settings(changes))

    def to_value(self, message: Any) -> PMap[str, str]:  # noqa: ANN401 - as above
        changes = self._shape.to_value(message).settings
        return PMap((key, text) for key, text in changes if text is not None)


class StateShapes:
    """Turns whatever a record may hold into its message and back."""

    def __init__(self, types: Types, record: Descriptor) -> None:
        """Pair classes with the messages in the oneof of `record`, which is StateRecord.

        Raises TypeError as `GroupShape` does, and for a type whose members have no message.
        """
        self.record: Callable[..., Any] = GetMessageClass(record)
        self.tags = {
            field.name: varint(field.number << 3 | _SIZED)
            for field in record.oneofs_by_name[_BODY].fields
        }
        """What stands before the bytes of each body in those of a record."""
        maps = (
            *("groups", "topics", "settings", "requests", "requests_by_number"),
            *("acls", "revocations"),
        )
        self._by_class: dict[type[Any], tuple[str, Any]] = {
            State: ("cluster", Shape(State, _message(record, "cluster"), maps)),
            Group: ("group", GroupShape(types, _message(record, "group"))),
            PMap: ("settings", _ScopeShape(_message(record, "settings"))),
        }
        plain = dict(_PLAIN)
        for kind in types.values():
            plain[_MEMBER_FIELDS.get(kind.name, f"{kind.name}_member")] = kind.member
            plain.update((each.field, each.kind) for each in kind.beside)
        for name, made in plain.items():
            self._by_class[made] = (name, Shape(made, _message(record, name)))
        self._by_name = dict(self._by_class.values())

    def to_message(self, value: object) -> tuple[str, Any]:
        """Return the value's field in a record, and its message. Raises KeyError if it has none."""
        name, shape = self._by_class[type(value)]
        return name, shape.to_message(value)

    def to_value(self, name: str, message: Any) -> Any:  # noqa: ANN401 - whatever the field holds
        """Turn a record's field into its value. Raises ValueError as `GroupShape` does."""
        return self._by_name[name].to_value(message)


def _oneof(holder: Descriptor) -> frozenset[str]:
    return frozenset(field.name for field in holder.oneofs_by_name[_BODY].fields)


def _message(holder: Descriptor, name: str) -> Descriptor:
    """Return the message of a field in the oneof of another. Raises TypeError if none is there."""
    if name not in _oneof(holder):
        raise TypeError(f"{holder.full_name} has no body {name!r}: add it, then ./dev proto")
    return message_of(holder.fields_by_name[name])


def _maps(body: type[Any]) -> tuple[str, ...]:
    """Name the fields of a body that are not stored with it: its type restores them."""
    return tuple(n for n, hint in get_type_hints(body).items() if get_origin(hint) is PMap)

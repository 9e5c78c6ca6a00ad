"""Convert a message to plain data for `--json`: the contract's field names and usable values.

Numbers are numbers, also those of 64 bits; bytes are lower-case hexadecimal; an enum is its name
without the prefix; a field with presence is left out while it is unset. Protobuf's own JSON writes
large numbers as text and bytes in base64, which is for protobuf's own readers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor
    from google.protobuf.message import Message


def plain(message: Message) -> dict[str, Any]:
    """Return all fields of a message, by name, in the contract's order."""
    return {
        field.name: _value(field, getattr(message, field.name))  # type: ignore[arg-type]  # one class, two names
        for field in message.DESCRIPTOR.fields
        if not field.has_presence or message.HasField(field.name)
    }


def _value(field: FieldDescriptor, value: Any) -> Any:  # noqa: ANN401 - whatever a field holds
    if field.is_repeated:
        return [_one(field, each) for each in value]
    return _one(field, value)


def _one(field: FieldDescriptor, value: Any) -> Any:  # noqa: ANN401 - as above
    if field.message_type is not None:
        return plain(value)
    if field.enum_type is not None:
        return _enum(field.enum_type, value)
    return value.hex() if isinstance(value, bytes) else value


def _enum(enum: EnumDescriptor, number: int) -> str | int:
    """Return Kafka's name of a value; its number if this version has no name for it."""
    found = enum.values_by_number.get(number)
    return number if found is None else found.name.removeprefix("ERROR_CODE_")

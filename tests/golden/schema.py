"""The stored schema as lines, one a field, so that a change of it can be seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from google.protobuf.descriptor_pb2 import FileDescriptorProto

from holdfast.v1 import events_pb2, extras_pb2, state_pb2

if TYPE_CHECKING:
    from google.protobuf.descriptor import FileDescriptor

STORED = ("Position",)
"""Of the messages in extras.proto only this one is ever stored."""


def schema_lines() -> list[str]:
    """Each stored message's fields as `Message.field = number LABEL TYPE .type oneof`, sorted."""
    lines = [*_lines(events_pb2.DESCRIPTOR), *_lines(state_pb2.DESCRIPTOR)]
    lines += [line for line in _lines(extras_pb2.DESCRIPTOR) if line.startswith(STORED)]
    return sorted(lines)


def _lines(file: FileDescriptor) -> list[str]:
    described = FileDescriptorProto()
    file.CopyToProto(described)
    lines = []
    for message in described.message_type:
        lines.append(f"{message.name}")
        for field in message.field:
            label = "OPTIONAL" if field.proto3_optional else field.Label.Name(field.label)[6:]
            kind = field.Type.Name(field.type)[5:]
            words = (f"{message.name}.{field.name} = {field.number}", label, kind, field.type_name)
            lines.append(" ".join(filter(None, words)))
    return lines

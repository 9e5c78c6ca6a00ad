"""The neutral JSON of the transcripts as messages of `holdfast.v1`, and back.

Goes by the descriptors of the messages, so no API is spelled out here. Each transcript has a corner
of its own: its groups and topics carry the corner's name in front, on the wire only.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Any, Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError

from harness.kafka_json import KAFKAS_ASSIGNMENT
from holdfast.v1 import admin_pb2, errors_pb2, group_pb2, offset_pb2

if TYPE_CHECKING:
    from collections.abc import Iterable

    from google.protobuf.message import Message

Json = Any
Field = Any
"""A field's descriptor: one class in pure Python, another in C; both have the same attributes."""

FILES: Final = (group_pb2, offset_pb2, admin_pb2)
NAMED_FIELDS: Final = {
    *("group_id", "groups", "groups_names", "group_ids"),
    *("topic", "names", "subscribed_topic_names"),
}
"""Fields of text that name groups or topics wherever they stand."""
REGEX: Final = "subscribed_topic_regex"
REGEX_END: Final = ")"
OURS: Final = {"holdfast", "error_message", "client_host"}
"""Fields of answers that no transcript has."""
DEFAULTS: Final = {"JoinGroupRequest": {"rebalance_timeout_ms": -1}}
"""Kafka's defaults of fields whose default with us is zero."""


def message_class(name: str) -> type[Message]:
    """The class of a message by its name."""
    found: type[Message] = next(getattr(file, name) for file in FILES if hasattr(file, name))
    return found


def error_name(code: errors_pb2.ErrorCode.ValueType) -> str:
    """Kafka's name of an error."""
    return errors_pb2.ErrorCode.Name(code).removeprefix("ERROR_CODE_")


class Corner:
    """One transcript's names and bytes."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._told: dict[bytes, Json] = {}

    def request(self, api: str, body: Json) -> Message:
        """The message of a transcript's request; null fields stay unset."""
        name = f"{api}Request"
        made = message_class(name)()
        self._fill(made, {**DEFAULTS.get(name, {}), **body})
        return made

    def response(self, answer: Message) -> Json:
        """A transcript's form of an answer."""
        made = self._read(answer)
        if isinstance(answer, admin_pb2.ListGroupsResponse):  # other corners have groups, too
            listed = zip(answer.groups, made["groups"], strict=True)
            made["groups"] = [form for group, form in listed if self._is_ours(group.group_id)]
        return made

    # --- names ---

    def own(self, name: str) -> str:
        """A group or topic as the service knows it; an empty name stays empty."""
        return f"{self.name}.{name}" if name else ""

    def _is_ours(self, name: str) -> bool:
        return name.startswith(f"{self.name}.")

    def _neutral(self, name: str) -> str:
        return name.removeprefix(f"{self.name}.")

    # --- to the wire ---

    def _fill(self, message: Message, body: Json) -> None:
        fields = message.DESCRIPTOR.fields_by_name
        for key, value in body.items():
            if value is None:
                continue
            field = fields[key]
            if field.message_type is not None and not field.is_repeated:
                self._fill_list(getattr(message, key), value)
            elif field.message_type is not None:
                for each in value:
                    self._fill(getattr(message, key).add(), each)
            elif field.is_repeated:
                getattr(message, key).extend(self._written(field, each) for each in value)
            else:
                setattr(message, key, self._written(field, value))

    def _fill_list(self, message: Message, items: list[Json]) -> None:
        """A list that may be null stands in a message of its own, which is there if it is empty."""
        (only,) = message.DESCRIPTOR.fields
        message.SetInParent()
        self._fill(message, {only.name: items})

    def _written(self, field: Field, value: Json) -> Json:
        if field.type == FieldDescriptor.TYPE_BYTES:
            made = self._to_bytes(value)
            self._told[made] = value
            return made
        if field.name == REGEX:
            return f"{self._regex_begin}{value}{REGEX_END}" if value else ""
        return self.own(value) if _is_named(field) else value

    @property
    def _regex_begin(self) -> str:
        """How a regular expression begins that looks into this corner alone."""
        return f"{self.name}[.](?:"

    def _to_bytes(self, value: Json) -> bytes:
        if isinstance(value, str):
            return value.encode()
        if value.get("base64") == KAFKAS_ASSIGNMENT:
            return _assignment([("elsewhere", [0, 1])])
        if "assigned_partitions" in value:
            given = value["assigned_partitions"]
            return _assignment((self.own(each["topic"]), each["partitions"]) for each in given)
        if "base64" in value:
            return b64decode(value["base64"])
        topics = map(self.own, value["topics"])
        return group_pb2.ConsumerProtocolSubscription(topics=topics).SerializeToString()

    # --- from the wire ---

    def _read(self, message: Message) -> Json:
        return {
            field.name: self._field(message, field)
            for field in message.DESCRIPTOR.fields
            if field.name not in OURS
        }

    def _field(self, message: Message, field: Field) -> Json:
        value = getattr(message, field.name)
        if field.message_type is not None and not field.is_repeated:
            return self._read(value) if message.HasField(field.name) else None
        if field.message_type is not None:
            return [self._read(each) for each in value]
        if field.is_repeated:
            return [self._spoken(field, each) for each in value]
        if field.has_presence and not message.HasField(field.name):
            return None
        return self._spoken(field, value)

    def _spoken(self, field: Field, value: Json) -> Json:
        if field.enum_type is not None:
            return error_name(value)
        if field.type == FieldDescriptor.TYPE_BYTES:
            return self._text(value)
        if field.name == REGEX:
            return value.removeprefix(self._regex_begin).removesuffix(REGEX_END)
        return self._neutral(value) if _is_named(field) else value

    def _text(self, value: bytes) -> Json:
        """Bytes as the transcript wrote them; what it did not write, as text if it is text."""
        if value in self._told:
            return self._told[value]
        if written := self._by_service(value):
            return {"assigned_partitions": written}
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {"base64": b64encode(value).decode()}

    def _by_service(self, value: bytes) -> list[Json]:
        """What the coordinator assigned to a classic member of a consumer group (K-Q5)."""
        try:
            made = group_pb2.ConsumerProtocolAssignment.FromString(value)
        except DecodeError:
            return []
        return [
            {"topic": self._neutral(each.topic), "partitions": list(each.partitions)}
            for each in made.assigned_partitions
        ]


def _is_named(field: Field) -> bool:
    """Whether a field names a group or a topic."""
    if field.type != FieldDescriptor.TYPE_STRING:
        return False
    of_topic = field.name == "name" and "Topic" in field.containing_type.name
    return of_topic or field.name in NAMED_FIELDS


def _assignment(topics: Iterable[tuple[str, list[int]]]) -> bytes:
    """The bytes of an assignment in our format."""
    made = group_pb2.ConsumerProtocolAssignment()
    for topic, partitions in topics:
        made.assigned_partitions.add(topic=topic, partitions=partitions)
    return made.SerializeToString()

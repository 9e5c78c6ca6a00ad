"""The few messages of etcd's API that the comparison needs, declared here field by field.

Numbers are those of etcd's public rpc.proto and kv.proto (v3 API). Nothing else of etcd is known.
"""

from __future__ import annotations

from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_PACKAGE: Final = "etcdserverpb"
_F = descriptor_pb2.FieldDescriptorProto
_TYPES: Final = {
    "bytes": _F.TYPE_BYTES,
    "int64": _F.TYPE_INT64,
    "uint64": _F.TYPE_UINT64,
    "bool": _F.TYPE_BOOL,
    "enum": _F.TYPE_INT32,  # an enum's number travels as an int32
}
# message: {field: (number, type)}; a type that is not above is a message, `*`: repeated
_MESSAGES: Final[dict[str, dict[str, tuple[int, str]]]] = {
    "PutRequest": {"key": (1, "bytes"), "value": (2, "bytes"), "lease": (3, "int64")},
    "PutResponse": {},
    "LeaseGrantRequest": {"TTL": (1, "int64"), "ID": (2, "int64")},
    "LeaseGrantResponse": {"ID": (2, "int64"), "TTL": (3, "int64")},
    "LeaseKeepAliveRequest": {"ID": (1, "int64")},
    "LeaseKeepAliveResponse": {"ID": (2, "int64"), "TTL": (3, "int64")},
    "Compare": {
        "result": (1, "enum"),
        "target": (2, "enum"),
        "key": (3, "bytes"),
        "create_revision": (5, "int64"),
    },
    "RequestOp": {"request_put": (2, "PutRequest")},
    "TxnRequest": {"compare": (1, "*Compare"), "success": (2, "*RequestOp")},
    "TxnResponse": {"succeeded": (2, "bool")},
    "ResponseHeader": {"member_id": (2, "uint64")},
    "StatusRequest": {},
    "StatusResponse": {"header": (1, "ResponseHeader"), "leader": (4, "uint64")},
}


def _file() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(
        name="bench/etcd.proto", package=_PACKAGE, syntax="proto3"
    )
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, (number, kind) in fields.items():
            _add(message, field, number, kind)
    return file


def _add(message: descriptor_pb2.DescriptorProto, name: str, number: int, kind: str) -> None:
    bare = kind.lstrip("*")
    label = _F.LABEL_REPEATED if kind.startswith("*") else _F.LABEL_OPTIONAL
    field = message.field.add(name=name, number=number, label=label)
    if bare in _TYPES:
        field.type = _TYPES[bare]
    else:
        field.type, field.type_name = _F.TYPE_MESSAGE, f".{_PACKAGE}.{bare}"


_POOL: Final = descriptor_pool.DescriptorPool()
_POOL.Add(_file())


def message(name: str) -> Any:  # noqa: ANN401 - a message class that is made here, at run time
    """The class of a message, by its name in etcd's API."""
    found = _POOL.FindMessageTypeByName(f"{_PACKAGE}.{name}")
    return message_factory.GetMessageClass(found)

"""The columns that tell the rest of the state, by the class of event that has them.

Beside these, `segments` tells what each record has, and what happens to groups and owners. A column
is null for all events that are not named here. Pure functions over events; no Arrow, no files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Any, Final, TypeAlias

from holdfast.coordinator.model import consumer_events as beating
from holdfast.coordinator.model import events
from holdfast.coordinator.model.ids import Position
from holdfast.coordinator.model.member_profile import (
    ClassicProfile,
    ClientAssignor,
    ConsumerProfile,
    Protocol,
)

Reader: TypeAlias = Callable[[Any], Any]

_ACL: Final = ("principal", "role", "kind", "name")
_REVOCATION: Final = ("fingerprint", "principal", "expires_ms", "reason", "revoked_ms")


def _structs(several: Iterable[Any], *fields: str) -> list[dict[str, Any]]:
    return [{field: getattr(one, field) for field in fields} for one in several]


def _protocols(several: Iterable[Protocol]) -> list[dict[str, Any]]:
    return [
        {
            "name": each.name,
            "metadata": each.metadata,
            "topics": None if each.topics is None else list(each.topics),
        }
        for each in several
    ]


def _assignors(several: Iterable[ClientAssignor]) -> list[dict[str, Any]]:
    return _structs(several, *ClientAssignor._fields)


def said(told: Any) -> dict[str, Any]:  # noqa: ANN401 - of the two classes of profiles
    """Return what a member says of itself; what its protocol does not know is null."""
    beats = isinstance(told, ConsumerProfile)
    return {
        "client_id": told.client_id,
        "client_host": told.client_host,
        "rebalance_timeout_ms": told.rebalance_timeout_ms,
        "session_timeout_ms": None if beats else told.session_timeout_ms,
        "protocols": None if beats else _protocols(told.protocols),
        "rack_id": told.rack_id if beats else None,
        "server_assignor": told.server_assignor if beats else None,
        "client_assignors": _assignors(told.client_assignors) if beats else None,
    }


def said_classic(told: ClassicProfile | None) -> dict[str, Any] | None:
    """Return what a member says that speaks the classic protocol in a group of the other one."""
    if told is None:
        return None
    return {
        "session_timeout_ms": told.session_timeout_ms,
        "protocols": _protocols(told.protocols),
        "request_id": told.request_id,
    }


def _place(last: Position, log_time_ms: int | None, digest: bytes | None) -> dict[str, Any]:
    index, ordinal = last
    return {"idx": index, "ordinal": ordinal, "log_time_ms": log_time_ms, "digest": digest}


def _acls(event: events.AclsChanged) -> list[dict[str, Any]]:
    both = ((event.granted, True), (event.revoked, False))
    return [{**each, "granted": how} for acls, how in both for each in _structs(acls, *_ACL)]


def _revocations(event: events.RevocationsChanged) -> list[dict[str, Any]]:
    """Return the certificates that are revoked, and, without any more of it, those that are not."""
    lifted = [{**dict.fromkeys(_REVOCATION), "fingerprint": each} for each in event.lifted]
    return [*_structs(event.revoked, *_REVOCATION), *lifted]


def _sizes(event: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - of two classes
    return _structs(event.topics, "name", "num_partitions")


def _gone(event: events.TopicsDeleted) -> list[dict[str, Any]]:
    return [{"name": name, "num_partitions": None} for name in event.names]


def _settings(changes: Iterable[events.SettingChange]) -> list[dict[str, Any]]:
    return _structs(changes, "key", "value")


_JOIN: Final[dict[str, Reader]] = {
    "profile": lambda event: said(event.profile),
    "join_id": attrgetter("request_id"),
}
_SIZES: Final[dict[str, Reader]] = {"sizes": _sizes}

READERS: Final[Mapping[type, Mapping[str, Reader]]] = {
    events.ClusterFormed: {
        "name": attrgetter("cluster_id"),
        "scope": lambda _: "",
        "settings": lambda event: _settings(event.settings),
    },
    events.SettingsChanged: {
        "scope": attrgetter("group_id"),
        "settings": lambda event: _settings(event.changes),
    },
    events.TopicsCreated: _SIZES,
    events.PartitionsAdded: _SIZES,
    events.TopicsDeleted: {"sizes": _gone},
    events.SegmentSealed: {"place": lambda event: _place(event.last, None, None)},
    events.HistoryCut: {"place": lambda event: _place(event.last, event.log_time_ms, event.digest)},
    events.LevelRaised: {"number": attrgetter("level")},
    events.RecoveryNumberRaised: {"number": attrgetter("number")},
    events.BackupVerified: {"number": attrgetter("index")},
    events.AccessModeChanged: {"name": attrgetter("mode")},
    events.AclsChanged: {"acls": _acls},
    events.RevocationsChanged: {"revocations": _revocations},
    events.RequestRecorded: {
        "request": lambda e: {"request_id": e.request_id, "digest": e.digest, "answer": e.answer}
    },
    events.OffsetsCommitted: {
        "beside": lambda event: _structs(event.offsets, "leader_epoch", "metadata")
    },
    events.MemberJoined: {**_JOIN, "protocol_type": attrgetter("protocol_type")},
    events.MemberUpdated: _JOIN,
    events.StaticMemberReplaced: {**_JOIN, "predecessor_ms": attrgetter("predecessor_ms")},
    events.InstanceReleased: {"beat": attrgetter("beat"), "absence_ms": attrgetter("absence_ms")},
    events.RebalanceStarted: {
        "initial": attrgetter("initial"),
        "timeout_ms": attrgetter("timeout_ms"),
    },
    events.GenerationStarted: {
        "protocol_name": attrgetter("protocol_name"),
        "leader": attrgetter("leader"),
    },
    beating.GroupConverted: {
        "protocol_name": attrgetter("protocol_name"),
        "leader": attrgetter("leader"),
    },
    beating.MemberSubscribed: {
        "profile": lambda event: said(event.profile),
        "classic_profile": lambda event: said_classic(event.classic),
        "life": attrgetter("life"),
        "beat": attrgetter("beat"),
        "session_timeout_ms": attrgetter("session_timeout_ms"),
    },
    beating.MemberAdvanced: {"beat": attrgetter("beat")},
    beating.EpochRaised: {
        "predecessor_ms": attrgetter("predecessor_ms"),
        "topics_digest": attrgetter("digest"),
    },
    beating.RegexResolved: {"number": attrgetter("newest_index")},
}
"""How the value of each column is read."""

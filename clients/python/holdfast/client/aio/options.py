"""What members, connections and Admin take by name, once for both shells. Types only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypedDict

from holdfast.client._rpc.channel import Credentials
from holdfast.client._session.session_io import GroupProtocol
from holdfast.client._translate.acknowledged import OnAcknowledged
from holdfast.client._translate.client_assignor import ClientAssignor
from holdfast.coordinator.assignors import Assignor


class ConnectionOptions(TypedDict, total=False):
    """Meanings and defaults as in `aio.Connection`."""

    credentials: Credentials
    client_id: str | None
    on_acknowledged: OnAcknowledged | None


class SharedOptions(ConnectionOptions, total=False):
    """What several members of one process have alike; meanings and defaults as in `aio.Member`."""

    protocol: GroupProtocol
    topic_regex: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    heartbeat_interval_ms: int
    topics_refresh_ms: int
    start_timeout_ms: int | None
    assignors: Sequence[Assignor]
    takeover: Literal["now", "wait"]
    weight: int
    rack_id: str
    server_assignor: str
    work_timeout_ms: int
    absence_ms: int
    client_assignors: Sequence[ClientAssignor]


class MemberOptions(SharedOptions, total=False):
    """What `Member` takes beside topics and callbacks; as in `aio.Member`."""

    instance_id: str | None


class AdminOptions(TypedDict, total=False):
    """What `Admin` takes by name; meanings and defaults as in `aio.Admin`."""

    credentials: Credentials
    client_id: str | None
    timeout_ms: int
    on_acknowledged: OnAcknowledged | None

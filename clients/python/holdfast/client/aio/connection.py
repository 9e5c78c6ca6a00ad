"""One process's connection to a cluster: channels, request ids, streams of calls and heartbeats.

Each Member has one of its own unless it is given one; members that share one share all of that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self

from holdfast.client._rpc.caller import Caller
from holdfast.client._rpc.fork_guard import is_this_process, this_process
from holdfast.client._rpc.heartbeat_stream import HeartbeatStream
from holdfast.client._translate.arguments import check_callables, check_client_id

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from holdfast.client._rpc.channel import Credentials
    from holdfast.client._session.health import Health
    from holdfast.client._session.session_io import Settings
    from holdfast.client._translate.acknowledged import OnAcknowledged


class Attached(Protocol):
    """A member, as far as its connection knows it."""

    @property
    def settings(self) -> Settings:
        """What it was made with."""

    @property
    def instance_id(self) -> str | None:
        """Its instance id, if it is static."""

    @property
    def member_id(self) -> str:
        """The member id that it was given last."""

    def health(self) -> Health:
        """Where it stands; from any thread."""


class Connection:
    """`async with Connection(endpoints) as connection`; give it to members in place of endpoints.

    Close it after its members have stopped: one that still runs ends with Unavailable. Raises
    ValueError and TypeError for an argument that cannot be.
    """

    def __init__(
        self,
        endpoints: str | Sequence[str],
        *,
        credentials: Credentials = None,
        client_id: str | None = None,
        on_acknowledged: OnAcknowledged | None = None,
    ) -> None:
        self._process = this_process()
        check_client_id(client_id)
        check_callables(on_acknowledged=on_acknowledged)
        self.caller = Caller(
            endpoints,
            credentials=credentials,
            client_id=client_id,
            on_acknowledged=on_acknowledged,
            on_streams=True,
        )
        self.heartbeats = HeartbeatStream(self.caller)
        self.caller.on_connection_ages = self.heartbeats.connection_ages
        self._members: list[Attached] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    @property
    def instance_ids(self) -> tuple[str, ...]:
        """Instance ids of the members that run on it: what an operator removes together."""
        ids = (member.instance_id for member in self._members)
        return tuple(instance_id for instance_id in ids if instance_id is not None)

    def health(self) -> tuple[Health, ...]:
        """Where each of them stands; from any thread."""
        return tuple(member.health() for member in self._members)

    async def close(self) -> None:
        """End the stream and all channels; calls in flight are cancelled.

        Does nothing in the child of a fork, as the end of a member's or an Admin's block.
        """
        if not is_this_process(self._process):
            return
        self.heartbeats.close()
        await self.caller.close()

    def attach(self, member: Attached) -> None:
        """Add a member that starts."""
        self._members.append(member)

    def detach(self, member: Attached) -> None:
        """Remove a member that has stopped."""
        if member in self._members:
            self._members.remove(member)
            self.heartbeats.forget(member.settings.group, member.member_id)


def connection_of(
    endpoints: str | Sequence[str] | Connection,
    credentials: Credentials,
    client_id: str | None,
    on_acknowledged: OnAcknowledged | None,
) -> Connection:
    """Return the given connection, or a new one. Raises ValueError for options it has itself."""
    if not isinstance(endpoints, Connection):
        return Connection(
            endpoints,
            credentials=credentials,
            client_id=client_id,
            on_acknowledged=on_acknowledged,
        )
    if credentials is not None or client_id is not None or on_acknowledged is not None:
        raise ValueError(
            "credentials, client_id and on_acknowledged belong to the Connection: give them there."
        )
    return endpoints

"""Several members in one process, one for each thread of work, on one connection (KIP-345).

Instance ids are derived from the process's own: `indexer-0` with 4 members is `indexer-0-thread-1`
to `indexer-0-thread-4`. An operator who stops the process removes them together, by the prefix
`indexer-0-thread-`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Self, Unpack

from holdfast.client._text import abbreviate
from holdfast.client._translate.arguments import check_instance_id, topic_names
from holdfast.client._translate.member_settings import UNSET, Unset
from holdfast.client.aio.connection import Connection
from holdfast.client.aio.member import Member

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable, Iterator, Sequence
    from types import TracebackType

    from holdfast.client._session.health import Health
    from holdfast.client.aio.member import Listener, Positions
    from holdfast.client.aio.options import SharedOptions


def instance_ids_of(instance_id: str | None, count: int) -> tuple[str | None, ...]:
    """Make the instance ids of `count` members of one process; None for dynamic ones.

    Raises ValueError below one member, and for an instance id that the service would refuse.
    """
    check_instance_id(instance_id)
    if count < 1:
        raise ValueError(f"A process has at least one member, not {abbreviate(count)}.")
    if instance_id is None:
        return (None,) * count
    return tuple(f"{instance_id}-thread-{number}" for number in range(1, count + 1))


class Members:
    """`async with Members(endpoints, group=..., topics=..., count=4) as members`.

    A sequence of `Member`; `options` and callbacks are a Member's own and the same for each.
    Without an `instance_id` they are dynamic. Leaving the block restarts all of them, as a Member's
    does. Raises ValueError below one member, and as a Member does.
    """

    def __init__(  # noqa: PLR0913 - keyword-only, most with a default
        self,
        endpoints: str | Sequence[str],
        *,
        group: str,
        topics: Iterable[str] | Unset = UNSET,
        count: int,
        instance_id: str | None = None,
        on_assigned: Listener | None = None,
        on_revoked: Listener | None = None,
        on_lost: Listener | None = None,
        positions: Positions | None = None,
        **options: Unpack[SharedOptions],
    ) -> None:
        names = instance_ids_of(instance_id, count)
        wanted = topics if topics is UNSET else topic_names(topics)
        self._connection = Connection(
            endpoints,
            credentials=options.pop("credentials", None),
            client_id=options.pop("client_id", None),
            on_acknowledged=options.pop("on_acknowledged", None),
        )
        self._members = tuple(
            Member(
                self._connection,
                group=group,
                topics=wanted,
                instance_id=name,
                on_assigned=on_assigned,
                on_revoked=on_revoked,
                on_lost=on_lost,
                positions=positions,
                **options,
            )
            for name in names
        )

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._end(member.__aexit__(kind, error, traceback) for member in self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __getitem__(self, number: int) -> Member:
        return self._members[number]

    def __iter__(self) -> Iterator[Member]:
        return iter(self._members)

    @property
    def instance_ids(self) -> tuple[str, ...]:
        """The members' instance ids, running or not; empty if they are dynamic."""
        return tuple(member.instance_id for member in self._members if member.instance_id)

    def health(self) -> tuple[Health, ...]:
        """Where each member stands."""
        return tuple(member.health() for member in self._members)

    def start(self) -> None:
        """Begin to join; returns at once."""
        for member in self._members:
            member.start()

    async def leave(self) -> None:
        """Make all members leave the group for good.

        Raises, once all have ended, what the first of them raised that did.
        """
        await self._end(member.leave() for member in self._members)

    async def restart(self) -> None:
        """Stop all for a planned restart: static members keep their places. Raises as `leave`."""
        await self._end(member.restart() for member in self._members)

    async def _end(self, ends: Iterable[Awaitable[None]]) -> None:
        results = await asyncio.gather(*ends, return_exceptions=True)
        await self._connection.close()
        for result in results:
            if result is not None:
                raise result

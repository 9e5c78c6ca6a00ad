"""Several members in one process for threads: the names and methods of `aio.Members`."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Self, Unpack

from holdfast.client._translate.arguments import topic_names
from holdfast.client._translate.member_settings import UNSET, Unset
from holdfast.client.aio.members import instance_ids_of
from holdfast.client.sync.connection import Connection
from holdfast.client.sync.member import Member

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from types import TracebackType

    from holdfast.client._session.health import Health
    from holdfast.client.aio.options import SharedOptions
    from holdfast.client.sync.member import Listener, Positions


class Members:
    """`with Members(endpoints, group=..., topics=..., count=4) as members`; as `aio.Members`."""

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

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end(lambda member: member.__exit__(kind, error, traceback))

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

    def leave(self) -> None:
        """Make all members leave the group for good."""
        self._end(Member.leave)

    def restart(self) -> None:
        """Stop all for a planned restart: static members keep their places."""
        self._end(Member.restart)

    def _end(self, end: Callable[[Member], None]) -> None:
        """End all at once: one after another, each would wait for a rebalance of its own."""
        with ThreadPoolExecutor(len(self._members)) as threads:
            ends = [threads.submit(end, member) for member in self._members]
        self._connection.close()
        for ended in ends:
            ended.result()

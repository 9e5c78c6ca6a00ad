"""Connection for threads: made and closed in the loop's thread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self, Unpack

from holdfast.client import aio
from holdfast.client.sync.threads import THREAD

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from holdfast.client._session.health import Health
    from holdfast.client.aio.options import ConnectionOptions


class Connection:
    """`with Connection(endpoints) as connection`; arguments as `aio.Connection`."""

    def __init__(
        self, endpoints: str | Sequence[str], **options: Unpack[ConnectionOptions]
    ) -> None:
        self.shared = THREAD.make(lambda: aio.Connection(endpoints, **options))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def instance_ids(self) -> tuple[str, ...]:
        """Instance ids of the members that run on it: what an operator removes together."""
        return self.shared.instance_ids

    def health(self) -> tuple[Health, ...]:
        """Where each member that runs on it stands."""
        return self.shared.health()

    def close(self) -> None:
        """End the stream and all channels; calls in flight are cancelled."""
        THREAD.run(self.shared.close())

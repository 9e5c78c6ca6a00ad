"""What the tests of `Member.run` share: quick settings, a limit on time, a count of goodbyes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from unit.client.fake_cluster import FakeGroup

WITHIN_S = 20
QUICK: dict[str, Any] = {
    "group": "g",
    "topics": ["t"],
    "session_timeout_ms": 6_000,
    "heartbeat_interval_ms": 20,
}


def run(work: Coroutine[Any, Any, None]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(WITHIN_S):
            await work

    asyncio.run(limited())


def goodbyes(group: FakeGroup) -> int:
    releases = [one for one in group.requests["Heartbeat"] if one.holdfast.release]
    return len(releases) + len(group.requests["LeaveGroup"])

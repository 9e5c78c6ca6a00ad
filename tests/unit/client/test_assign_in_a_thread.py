"""What a plain `assign` may call from the thread that it runs in, against a real node (T-20)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from holdfast.client import ClientAssignor, GroupMember, Member, StickyAssignor, Targets
from unit.client.test_client_assignors import PARTITIONS, QUICK, node

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Meddling(ClientAssignor):
    """Tells its member of other metadata while it computes for the first time."""

    name = "meddling"

    def __init__(self) -> None:
        self.member: Any = None
        self.problems: list[str] = []

    def assign(
        self, members: Sequence[GroupMember], partition_counts: Mapping[str, int]
    ) -> Targets:
        if not self.problems:
            self.metadata = b"new"
            try:
                self.member.update_assignors()
            except RuntimeError as error:
                self.problems.append(str(error))
        return Targets(StickyAssignor().assign(members, partition_counts))


def test_t20_an_assign_that_calls_its_member_from_its_own_thread_costs_the_member_nothing() -> None:
    """The heartbeat that the session had decided was lost with the error, and so was the member."""
    assignor = Meddling()

    async def story(address: str) -> None:
        assignor.member = member = Member(address, client_assignors=[assignor], **QUICK)
        async with member:
            async for _ in member.owned():
                if len(member.assignment) == PARTITIONS:
                    return

    with node() as address:
        asyncio.run(asyncio.wait_for(story(address), 20))
    assert "update_assignors is called in another thread" in assignor.problems[0]
    assert "loop.call_soon_threadsafe(member.update_assignors)" in assignor.problems[0]

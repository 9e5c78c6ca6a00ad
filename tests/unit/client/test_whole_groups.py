"""Whole groups of members against a real node and its real rules; only its log is in memory.

Cooperative rebalances (KIP-429) and the ways from dynamic to static members and back (KIP-345).
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from harness.poll import until_async
from holdfast.client import Admin, CooperativeAssignor, Member, Members, WeightedAssignor
from unit.server.nodes import served

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from holdfast.client import Partition

ResultT = TypeVar("ResultT")
WITHIN_S = 30
PARTITIONS = 12
TURNS = 50
"""Of the event loop: enough for one to be told what another's answer has brought."""
QUICK: dict[str, Any] = {"session_timeout_ms": 60_000, "heartbeat_interval_ms": 50}
"""A session that no stall of a busy machine outlasts."""


def run(work: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Run with a limit that only a hang reaches."""

    async def limited() -> ResultT:
        async with asyncio.timeout(WITHIN_S):
            return await work

    return asyncio.run(limited())


@dataclass
class Diary:
    """Who was told what, and who owns what by that: two owners at once are found when told."""

    owners: dict[int, str] = field(default_factory=dict)
    assigned: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    revoked: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    lost: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    twice: list[tuple[int, str, str]] = field(default_factory=list)
    # Letting go takes its time: until this has held once. What is given away too early shows then.
    may_let_go: Callable[[], bool] = lambda: True
    quick: ClassVar[dict[str, Any]] = QUICK

    def member(self, address: str, name: str, **settings: Any) -> Member:  # noqa: ANN401 - Member's own
        def assigned(partitions: Sequence[Partition]) -> None:
            for partition in partitions:
                self.assigned[name].append(partition.number)
                if partition.number in self.owners:
                    self.twice.append((partition.number, self.owners[partition.number], name))
                self.owners[partition.number] = name

        def gone(book: dict[str, list[int]], partitions: Sequence[Partition]) -> None:
            for partition in partitions:
                book[name].append(partition.number)
                del self.owners[partition.number]

        async def revoked(partitions: Sequence[Partition]) -> None:
            await until_async(self.has_leave, "leave to let go")
            self.may_let_go = lambda: True
            for _ in range(TURNS):
                await asyncio.sleep(0)
            gone(self.revoked, partitions)

        return Member(
            address,
            group="g",
            topics=["t"],
            on_assigned=assigned,
            on_revoked=revoked,
            on_lost=lambda partitions: gone(self.lost, partitions),
            **(self.quick | settings),
        )

    def has_leave(self) -> bool:
        """Asked anew each time: what one member has seen to hold is leave for all of them."""
        return self.may_let_go()

    def shares(self) -> Counter[str]:
        return Counter(self.owners.values())


async def make_topic(address: str) -> None:
    async with Admin(address) as admin:
        await admin.create_topics({"t": PARTITIONS})


def test_kip429_a_third_member_gets_its_share_and_nobody_lets_go_of_anything_else() -> None:
    """12 partitions over 2, then 3 members: 4 move, 8 stay with whom they are, all the time."""

    async def scenario() -> None:
        async with served() as node, AsyncExitStack() as stack:
            await make_topic(node.address)
            diary = Diary()

            async def enter(name: str) -> Member:
                assignors = [CooperativeAssignor()]
                member = diary.member(node.address, name, assignors=assignors)
                return await stack.enter_async_context(member)

            first, second = await enter("a"), await enter("b")
            await until_async(lambda: diary.shares() == {"a": 6, "b": 6}, "two shares of six")
            kept = {p.number: p.fencing_token for p in first.assignment + second.assignment}
            before = {name: len(numbers) for name, numbers in diary.revoked.items()}
            third = diary.member(node.address, "c", assignors=[CooperativeAssignor()])
            diary.may_let_go = lambda: third.health().ready
            await stack.enter_async_context(third)
            await until_async(
                lambda: diary.shares() == {"a": 4, "b": 4, "c": 4}, "three shares of four"
            )
            moved = sum(map(len, diary.revoked.values())) - sum(before.values())
            assert moved == 4
            assert diary.twice == []
            assert not any(diary.lost.values())
            still = {p.number: p.fencing_token for p in first.assignment + second.assignment}
            assert still.items() <= kept.items()  # S13: the token that the user holds stays good

    run(scenario())


def test_kip429_members_that_come_and_go_never_leave_two_owners_or_none() -> None:
    async def scenario() -> None:
        async with served() as node, AsyncExitStack() as stack:
            await make_topic(node.address)
            diary = Diary()
            members = []
            for name in "abcd":
                member = diary.member(node.address, name, assignors=[CooperativeAssignor()])
                members.append(await stack.enter_async_context(member))
            await until_async(lambda: set(diary.shares().values()) == {3}, "four shares of three")
            await members[0].leave()
            await members[2].leave()
            await until_async(lambda: diary.shares() == {"b": 6, "d": 6}, "two shares of six")
            assert diary.twice == []
            assert not any(diary.lost.values())

    run(scenario())


def test_a_group_moves_from_eager_to_cooperative_by_two_rolling_restarts() -> None:
    """KIP-429: first both assignors everywhere, then only the new one; never two owners."""
    both = (CooperativeAssignor(), WeightedAssignor())

    async def scenario() -> None:
        async with served() as node, AsyncExitStack() as stack:
            await make_topic(node.address)
            diary = Diary()

            async def enter(name: str, assignors: Sequence[Any]) -> Member:
                member = diary.member(
                    node.address, name, instance_id=f"i-{name}", assignors=assignors
                )
                return await stack.enter_async_context(member)

            members = {name: await enter(name, both[1:]) for name in "ab"}
            await until_async(lambda: diary.shares() == {"a": 6, "b": 6}, "two shares")
            for assignors in (both, both[:1]):
                for name in "ab":
                    await members[name].restart()
                    members[name] = await enter(name, assignors)
                    await until_async(lambda: diary.shares() == {"a": 6, "b": 6}, "its share again")
            assert diary.twice == []
            async with Admin(node.address) as admin:
                group = (await admin.describe_groups("g"))["g"]
                await admin.trigger_rebalance("g", reason="look who is asked to let go")
            revoked = {name: len(numbers) for name, numbers in diary.revoked.items()}
            generation = members["a"].generation
            await until_async(lambda: members["a"].generation > generation, "the rebalance")
            await until_async(lambda: diary.shares() == {"a": 6, "b": 6}, "two shares")
            assert group.group_state == "Stable"
            assert {name: len(numbers) for name, numbers in diary.revoked.items()} == revoked

    run(scenario())


def test_kip345_dynamic_members_become_static_and_dynamic_again_one_by_one() -> None:
    """Upgrade and downgrade without a full stop: somebody owns every partition in between."""

    async def scenario() -> None:
        async with served() as node, AsyncExitStack() as stack:
            await make_topic(node.address)
            diary = Diary()
            members = {}
            for name in "ab":
                members[name] = await stack.enter_async_context(diary.member(node.address, name))
            await until_async(lambda: diary.shares() == {"a": 6, "b": 6}, "two shares")
            for instance_id in ("i-{}", None):
                for name in "ab":
                    await members[name].leave()  # told to: else a static one would keep its place
                    other = "b" if name == "a" else "a"
                    await until_async(lambda o=other: diary.shares() == {o: 12}, "one has all")  # type: ignore[misc]  # a default
                    chosen = None if instance_id is None else instance_id.format(name)
                    members[name] = await stack.enter_async_context(
                        diary.member(node.address, name, instance_id=chosen)
                    )
                    await until_async(lambda: diary.shares() == {"a": 6, "b": 6}, "two shares")
                async with Admin(node.address) as admin:
                    group = (await admin.describe_groups("g"))["g"]
                ids = {member.group_instance_id for member in group.members}
                assert ids == ({"i-a", "i-b"} if instance_id else {""})
            assert diary.twice == []

    run(scenario())


def test_h1_a_binding_that_lingers_after_a_downgrade_ends_with_its_session() -> None:
    """Not told to leave, the static place stays, and others wait for it until its session ends."""

    async def scenario() -> None:
        async with served() as node:
            await make_topic(node.address)
            diary = Diary()
            async with diary.member(
                node.address, "old", instance_id="i", session_timeout_ms=600
            ) as old:
                await until_async(lambda: diary.shares() == {"old": 12}, "all")
                await old.restart()
            async with Admin(node.address) as admin:
                group = (await admin.describe_groups("g"))["g"]
            assert [member.group_instance_id for member in group.members] == ["i"]
            async with diary.member(node.address, "new"):
                await until_async(lambda: diary.shares() == {"new": 12}, "all after the session")
            assert diary.twice == []

    run(scenario())


def test_the_longest_session_that_kip345_allows_is_in_force() -> None:
    """KIP-345: up to 30 minutes, so that a process can be away for long."""

    async def scenario() -> None:
        async with served() as node:
            await make_topic(node.address)
            async with Member(
                node.address,
                group="g",
                topics=["t"],
                instance_id="i",
                session_timeout_ms=1_800_000,
                rebalance_timeout_ms=1_800_000,
            ) as member:
                assert await member.next_owned() is not None
                left_ms = member.health().lease_left_ms
                assert left_ms is not None
                assert (
                    1_300_000 < left_ms <= 1_440_000
                )  # S11: 0.8 of it, from the last sign of life

    run(scenario())


def test_weights_are_shares() -> None:
    async def scenario() -> None:
        async with served() as node, AsyncExitStack() as stack:
            await make_topic(node.address)
            diary = Diary()
            for name, weight in (("small", 1), ("large", 3)):
                member = diary.member(
                    node.address, name, weight=weight, assignors=[WeightedAssignor()]
                )
                await stack.enter_async_context(member)
            await until_async(lambda: diary.shares() == {"small": 3, "large": 9}, "shares 1 to 3")

    run(scenario())


def test_kip345_members_of_one_process_are_listed_and_removed_together() -> None:
    async def scenario() -> None:
        async with served() as node, Admin(node.address) as admin:
            await make_topic(node.address)
            settings: dict[str, Any] = {"group": "g", "topics": ["t"], "count": 3}
            async with (
                Members(node.address, instance_id="indexer-0", **settings, **QUICK) as members,
                Members(node.address, instance_id="indexer-1", **settings, **QUICK) as others,
            ):
                everyone = [*members, *others]
                await until_async(
                    lambda: all(len(member.assignment) == 2 for member in everyone), "six shares"
                )
                assert members.instance_ids == tuple(f"indexer-0-thread-{n}" for n in (1, 2, 3))
                assert [health.instance_id for health in members.health()] == list(
                    members.instance_ids
                )
                assert all(health.ready and health.live for health in members.health())
                before = others[0].generation
                await members.restart()
                results = await admin.remove_members("g", instance_ids=members.instance_ids)
                assert set(results.values()) == {None}
                await until_async(
                    lambda: all(len(member.assignment) == 4 for member in others), "three shares"
                )
                assert others[0].generation == before + 1  # one rebalance for all three

    run(scenario())

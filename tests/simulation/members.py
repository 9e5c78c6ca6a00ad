"""A member of a group in a process of its own: the real client, and a program that uses it.

The program works on what it owns: it asks `check`, writes to the storage outside with its token
(S13), and commits offsets. Whether the member may act is read from the client by its own clock
after each turn of its loop, so that the history has the truth and not what was told late.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from holdfast.chaos.history import happenings as h
from holdfast.client._session.session_io import Stage
from holdfast.client.aio import Member
from holdfast.client.errors import Fenced, HoldfastError, OutcomeUnknown
from simulation.computing import Assigner
from simulation.populations import COMPUTING
from simulation.process import running

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.client._session.session_io import Grant, TopicPartition
    from holdfast.client.aio.partition import Partition
    from simulation.populations import Population
    from simulation.process import Process
    from simulation.recorder import Recorder
    from simulation.storage import OutsideStorage

STORAGE: Final = "storage"
COMMIT_TRIES: Final = 4


@dataclass(frozen=True, slots=True)
class MemberPlan:
    """What a member is: its group, its name if it is static, its times."""

    group: str
    topics: tuple[str, ...]
    instance_id: str | None
    session_ms: int
    rebalance_ms: int
    takeover: str
    work_s: float
    """About how often it does something with what it owns."""
    population: Population
    slot: int
    """Its number in its group, from 1."""

    def speaks(self, now_us: int) -> dict[str, Any]:
        """The arguments of `Member` that depend on the protocol of a process that starts now."""
        population = self.population
        if not population.speaks_heartbeats(self.slot, now_us):
            return {
                "topics": self.topics,
                "session_timeout_ms": self.session_ms,
                "heartbeat_interval_ms": self.session_ms // 6,
                "topics_refresh_ms": 2_000,
                "assignors": population.assignors,
            }
        chosen: dict[str, Any] = {"protocol": "consumer"}
        if population.by_pattern:
            chosen["topic_regex"] = "|".join(self.topics)
        else:
            chosen["topics"] = self.topics
        if population.server_assignor:
            chosen["server_assignor"] = population.server_assignor
        return chosen


class SimMember:
    """One process that is a member, from its start to its end."""

    def __init__(
        self,
        plan: MemberPlan,
        process: Process,
        recorder: Recorder,
        storage: OutsideStorage,
        endpoints: tuple[str, ...],
    ) -> None:
        """`endpoints`: the nodes that it is told of; it learns of others by itself."""
        self.plan, self.process, self._endpoints = plan, process, endpoints
        self._recorder, self._storage = recorder, storage
        self._random = process.random
        self._member: Member | None = None
        self._asked: str | None = None
        self._stop = ""
        self._owned: tuple[tuple[TopicPartition, int], ...] = ()
        self._held: Mapping[TopicPartition, Grant] = {}
        self._ends_at_ms: int | None = None
        self._token = 0
        self._revoked_token = 0
        self._offset = 0
        self._writing: set[asyncio.Future[None]] = set()
        self.error: BaseException | None = None
        process.on_turn = self._look
        if plan.population.kind == COMPUTING:
            process.assigner = self._assigner()
        process.on_death.append(self._died)
        process.start(self._life())

    @property
    def who(self) -> str:
        """Its name in the history."""
        return self.process.name

    @property
    def is_settled(self) -> bool:
        """Whether it is in a generation and may act on what that gave it."""
        member = self._member
        if member is None or not self.process.runs:
            return False
        session = member._session
        return session.phase_name == "stable"

    @property
    def acts_on(self) -> set[TopicPartition]:
        """What it may act on at this moment."""
        if self._member is None or not self.process.runs:
            return set()
        running.process = self.process  # its clock is asked
        try:
            return {partition.name for partition in self._member.assignment}
        finally:
            running.process = None

    @property
    def phase(self) -> str:
        """Where its session stands, for people."""
        return self._member._session.phase_name if self._member else "new"

    def _assigner(self) -> Assigner:
        plan = self.plan
        return Assigner(
            *(self.process, plan.group, plan.instance_id, plan.rebalance_ms / 1000, self._random),
            lambda: self._recorder.now_us >= plan.population.calm_us,
        )

    # --- life ---

    def ask_to_stop(self, how: str) -> None:
        """`leave` or `restart`, as its program would."""
        if self.process.alive:
            self.process.loop.call_soon(self._begin_to_stop, how)

    def _begin_to_stop(self, how: str) -> None:
        if not self._stop and self._member is not None:
            self._stop = how
            asyncio.ensure_future(self._end(how))  # noqa: RUF006 - the process ends with it

    async def _end(self, how: str) -> None:
        member = self._member
        if member is None:
            return
        try:
            await (member.leave() if how == "leave" else member.restart())
        except HoldfastError as error:
            self.error = error
        self._look()
        self.process.kill()

    async def _life(self) -> None:
        plan = self.plan
        member = self._member = Member(
            self._endpoints,
            group=plan.group,
            instance_id=plan.instance_id,
            rebalance_timeout_ms=plan.rebalance_ms,
            start_timeout_ms=None,  # under faults a cluster may be away for long
            takeover=plan.takeover,  # type: ignore[arg-type]  # a Literal
            client_id=self.process.machine,
            on_revoked=self._on_revoked,
            on_lost=self._on_lost,
            **plan.speaks(self._recorder.now_us),
        )
        member.start()
        work = asyncio.ensure_future(self._work(member))
        try:
            await member.wait_stopped()
        except HoldfastError as error:
            self.error = error
        if not self._stop:
            work.cancel()
            self._look()
            self.process.kill()

    async def _on_revoked(self, partitions: Sequence[Partition]) -> None:
        """Finish what is in hand; now and then that takes longer than is good."""
        self._revoked_token = max((p.fencing_token for p in partitions), default=0)
        slow = self._random.random() < 0.05
        longest_s = self.plan.rebalance_ms / 1000 if slow else 0.2
        await asyncio.sleep(self._random.uniform(0.0, longest_s))
        await self._writes_are_done()

    async def _on_lost(self, partitions: Sequence[Partition]) -> None:
        del partitions
        await self._writes_are_done()

    async def _writes_are_done(self) -> None:
        """Wait for what is on its way: whoever is next may write under the same token (ADR 49)."""
        while self._writing:
            await asyncio.wait(set(self._writing))

    # --- work ---

    async def _work(self, member: Member) -> None:
        while True:
            await asyncio.sleep(self.plan.work_s * self._random.uniform(0.3, 1.7))
            owned = member.assignment
            if not owned:
                continue
            if self._random.random() < 0.5:
                await self._write(self._random.choice(owned))
            else:
                await self._commit(member, owned)

    async def _write(self, partition: Partition) -> None:
        """Check, then write; a pause between the two is what the token is for (S13)."""
        if partition.revoking:
            return
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._writing.add(done)
        done.add_done_callback(self._writing.discard)
        await asyncio.sleep(self._random.uniform(0.0, 0.01))
        write = (self.who, self.plan.group, *partition.name, partition.fencing_token)
        self._storage.receive(self.process.machine, *write, lambda: self._written(done))

    def _written(self, done: asyncio.Future[None]) -> None:
        if self.process.alive:
            self.process.loop.call_soon(done.set_result, None)

    async def _commit(self, member: Member, owned: Sequence[Partition]) -> None:
        self._offset += 1
        chosen = self._random.sample(owned, self._random.randint(1, min(3, len(owned))))
        offsets: dict[Any, int] = {partition.name: self._offset for partition in chosen}
        request_id: str | None = None
        for _ in range(COMMIT_TRIES):
            try:
                await member.commit(offsets, request_id=request_id, timeout_ms=2_000)
            except OutcomeUnknown as error:
                request_id = error.request_id
                if request_id is None:
                    return
            except HoldfastError:
                return
            else:
                return

    # --- what the judge sees ---

    def _look(self) -> None:
        """Write down what has changed about what this member may do."""
        member = self._member
        if member is None:
            return
        held, ends_at_ms = member._session.held, member._session.lease_ends_at_ms
        same = ends_at_ms == self._ends_at_ms and len(held) == len(self._owned)
        if same and held == self._held:
            return
        self._held = held
        owned = member.assignment
        grants = tuple((partition.name, partition.fencing_token) for partition in owned)
        if grants != self._owned:
            self._owned, self._ends_at_ms = grants, ends_at_ms
            if owned:
                self._granted(owned, self._ends_us())
            else:
                self._surrendered(member)
        elif grants and ends_at_ms != self._ends_at_ms:
            self._ends_at_ms = ends_at_ms
            self._renewed(owned[0])

    def clock_changed(self) -> None:
        """The clock runs at another rate: what it has measured ends at another moment."""
        if self._owned and self._member is not None:
            self._renewed_to(self._member.member_id, self._ends_us())

    def _ends_us(self) -> int:
        ends_at_ms = self._ends_at_ms
        return 0 if ends_at_ms is None else self.process.clock.true_us(ends_at_ms / 1000)

    def _renewed(self, partition: Partition) -> None:
        self._renewed_to(partition.grant.member_id, self._ends_us())

    def _renewed_to(self, member_id: str, until_us: int) -> None:
        whose = (self._recorder.now_us, self.who, self.plan.group, member_id)
        self._recorder.add(h.Renewed(*whose, until_us))

    def _granted(self, owned: Sequence[Partition], until_us: int) -> None:
        """The newest grant; what was kept from an older one has that one's token still."""
        grant = max((partition.grant for partition in owned), key=lambda each: each.fencing_token)
        self._token = grant.fencing_token
        tokens = tuple(partition.fencing_token for partition in owned)
        self._recorder.add(
            h.Granted(
                self._recorder.now_us,
                self.who,
                self.plan.group,
                grant.member_id,
                self.plan.instance_id or "",
                grant.generation,
                tuple((partition.topic, partition.number) for partition in owned),
                grant.fencing_token,
                grant.predecessor_ms,
                until_us,
                () if set(tokens) == {grant.fencing_token} else tokens,
            )
        )

    def _surrendered(self, member: Member) -> None:
        self._give_up(member.member_id, self._reason(member))

    def _reason(self, member: Member) -> str:
        session = member._session
        if session.stage in {Stage.LEAVING, Stage.STOPPED}:
            if isinstance(self.error, Fenced) or not self._stop:
                return "fenced"
            leaves = self._stop == "leave" or self.plan.instance_id is None
            return "left" if leaves else "stopped"
        return "revoked" if self._revoked_token == self._token else "lost"

    def _give_up(self, member_id: str, reason: str) -> None:
        surrendered = (self._recorder.now_us, self.who, self.plan.group, member_id, reason)
        self._recorder.add(h.Surrendered(*surrendered))  # type: ignore[arg-type]  # a Literal

    def _died(self) -> None:
        if self._owned and self._member is not None:
            self._owned = ()
            self._give_up(self._member.member_id, "crashed")
        self._recorder.died(self.who)

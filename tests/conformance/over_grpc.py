"""Real nodes behind the interface of the replayer: the low-level stubs of `holdfast.v1`, real time.

A `Service` is a local cluster with one configuration; any number of transcripts run on it at once,
each through a `GrpcSession` of its own.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final

import grpc

from conformance.batches import Batches, takes
from conformance.in_process import profile
from conformance.messages import Corner, error_name
from conformance.replayer import Completion
from harness.poll import until_told
from holdfast.client._rpc.request_ids import RequestIds
from holdfast.client._rpc.session_stream import SessionStreams
from holdfast.v1 import (
    admin_pb2,
    admin_pb2_grpc,
    errors_pb2,
    group_pb2,
    group_pb2_grpc,
    offset_pb2_grpc,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from google.protobuf.message import Message

    from cluster.processes import RunningCluster

Json = Any
Answer = Any
"""A message of any API."""

PATIENCE_S: Final = 15.0
"""How long an answer that must come may take; far more than it ever does."""
CALL_S: Final = 3_600.0
"""How long a call on a stream may take: the steps of a transcript end it, not time."""
QUIET_S: Final = 0.06
"""How long nothing more must be answered for a step to be over, after the barrier.

It is also the time that deadlines of 0 ms have to fire: a round that nobody can join closes by one.
"""
ASIDE: Final = {"NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE"}
"""Answers that are about the cluster, not about the group: ask the leader again."""
OPTIONS: Final = (
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 500),
)
SLOW_ELECTIONS: Final = ("raft.election_min_ms=2000", "raft.election_max_ms=4000")
"""A busy machine must not elect a leader in the middle of a transcript: parked calls would end."""


def overrides(config: Mapping[str, str]) -> list[str]:
    """`--set` of a transcript's configuration over the base profile, in our names."""
    settings = [f"{change.key}={change.value}" for change in profile(config)]
    return [word for each in (*settings, *SLOW_ELECTIONS) for word in ("--set", each)]


def _boot_ms() -> int:
    return int(time.monotonic() * 1000)


class Stubs:
    """The three services of one node; `on_streams`: members' calls go on Session streams.

    Else the heartbeats of every other client go in batches on a HeartbeatStream.
    """

    def __init__(self, address: str, *, on_streams: bool) -> None:
        self.channel = grpc.aio.insecure_channel(address, OPTIONS)
        self._address, self._on_streams = address, on_streams
        self._sessions: dict[str, SessionStreams] = {}
        """By client: a stream is one caller's, whose name it begins with."""
        self._batches: dict[str, Batches] = {}
        self._services = (
            group_pb2_grpc.GroupServiceStub(self.channel),
            offset_pb2_grpc.OffsetServiceStub(self.channel),
            admin_pb2_grpc.AdminServiceStub(self.channel),
        )

    async def call(self, api: str, request: Message, client: str) -> Answer:
        """Send a request; raises grpc.RpcError."""
        sessions = self._sessions_of(client)
        if self._on_streams and sessions.carries(self._address, request):
            return await sessions.ask(self._address, request, CALL_S)
        if not self._on_streams and takes(request, client):
            return await self._batches_of(client).ask(request)
        stub = next(getattr(each, api) for each in self._services if hasattr(each, api))
        return await stub(request, metadata=_named(client))

    def _sessions_of(self, client: str) -> SessionStreams:
        if client not in self._sessions:
            self._sessions[client] = SessionStreams(
                lambda _: self._services[0].Session(metadata=_named(client))
            )
        return self._sessions[client]

    def _batches_of(self, client: str) -> Batches:
        if client not in self._batches:
            self._batches[client] = Batches(
                lambda: self._services[0].HeartbeatStream(metadata=_named(client))
            )
        return self._batches[client]

    @property
    def refused_streams(self) -> list[str]:
        """The clients that were to have a stream and got none."""
        return [client for client, sessions in self._sessions.items() if sessions._without]

    async def close(self) -> None:
        """Hang up."""
        for batches in self._batches.values():
            batches.close()
        for sessions in self._sessions.values():
            await sessions.close()
        await self.channel.close()


def _named(client: str) -> tuple[tuple[str, str], ...]:
    return (("holdfast-client-id", client),)


class Service:
    """One running cluster: follows its leader, and makes it forget what is not on its log."""

    def __init__(self, cluster: RunningCluster, *, on_streams: bool) -> None:
        """`on_streams`: as of `Stubs`."""
        self._cluster = cluster
        self._nodes = {
            address: Stubs(address, on_streams=on_streams) for address in cluster.addresses
        }
        self._leader = cluster.addresses[0]
        self._ids = RequestIds()
        self.refusals: dict[str, int] = {}
        """What was asked again, why, how often: for whoever has to explain what came of it."""

    async def call(self, api: str, request: Message, client: str = "replayer") -> Answer:
        """The leader's answer, whoever leads; raises grpc.RpcError for all other refusals."""
        answers: list[Any] = []

        async def answered() -> bool:
            try:
                got = await self._nodes[self._leader].call(api, request, client)
            except grpc.aio.AioRpcError as error:
                if error.code() is not grpc.StatusCode.UNAVAILABLE:
                    raise
                return await self._refused(f"{api}: {error.details()}")
            code = error_name(getattr(got, "error_code", errors_pb2.ERROR_CODE_NONE))
            if code in ASIDE:
                return await self._refused(f"{api}: {code}")
            answers.append(got)
            return True

        await until_told(answered, f"an answer to {api}")
        return answers[0]

    async def _refused(self, told: str) -> bool:
        self.refusals[told] = self.refusals.get(told, 0) + 1
        return await self._look_for_leader()

    async def change(self, api: str, request: Message) -> Answer:
        """A one-shot change under a request id: asked again, it is not done again (S14)."""
        await until_told(self._knows_log_time, "a log time to make a request id of")
        request.holdfast.request_id = self._ids.make(_boot_ms())  # type: ignore[attr-defined]  # all of them have it
        return await self.call(api, request)

    async def _knows_log_time(self) -> bool:
        return self._ids.ready or await self._look_for_leader() or self._ids.ready

    def alarms(self) -> list[str]:
        """What the nodes say loudest; a rule broken inside may still look right from outside."""
        words = (self._cluster.words(name) for name in self._cluster.names)
        return [line for text in words for line in text.splitlines() if "alarm" in line]

    def refused_streams(self) -> list[str]:
        """The clients whose calls went unary and were to go on a stream."""
        return [client for stubs in self._nodes.values() for client in stubs.refused_streams]

    async def _look_for_leader(self) -> bool:
        """Ask every node who leads. Always False: whoever called is not answered yet."""
        for stubs in self._nodes.values():
            try:
                seen = await stubs.call("FindCoordinator", group_pb2.FindCoordinatorRequest(), "")
            except grpc.aio.AioRpcError:
                continue
            if seen.holdfast.HasField("log_time_ms"):
                self._ids.observe(seen.holdfast.log_time_ms, _boot_ms())
            if seen.holdfast.leader_hint in self._nodes:
                self._leader = seen.holdfast.leader_hint
        return False

    async def forget(self) -> None:
        """Have what is not on the log forgotten: another leader, or the same process anew."""
        before = self._leader
        if len(self._nodes) == 1:
            await asyncio.to_thread(self._restart, self._cluster.names[0])
        else:
            await self.call("TransferLeadership", admin_pb2.TransferLeadershipRequest())
        await until_told(lambda: self._leads_other_than(before), "another leader")

    async def _leads_other_than(self, before: str) -> bool:
        await self._look_for_leader()
        return self._leader != before or len(self._nodes) == 1

    def _restart(self, node: str) -> None:
        self._cluster.stop_gracefully(node)
        self._cluster.bring_back(node)

    async def barrier(self, corner: Corner, number: int) -> None:
        """What was sent before has reached the log: this change stands behind it there."""
        change = admin_pb2.SettingToAlter(name="group.max_size", value=str(1_000 + number))
        await self.call(
            "AlterSettings",
            admin_pb2.AlterSettingsRequest(settings=[change], group_id=f"barrier-{corner.name}"),
        )

    async def close(self) -> None:
        """Hang up."""
        for stubs in self._nodes.values():
            await stubs.close()


class GrpcSession:
    """One transcript's corner of a service."""

    def __init__(self, service: Service, name: str) -> None:
        self._service, self._corner = service, Corner(name)
        self._open: dict[int, asyncio.Task[None]] = {}
        self._done: asyncio.Queue[Completion] = asyncio.Queue()
        self._found: list[Completion] = []
        self._answered: set[int] = set()
        self._barriers = 0

    async def start(self, topics: Mapping[str, int]) -> None:
        """Make the topics that exist from the beginning."""
        for name, count in topics.items():
            await self.admin({"create_topic": name, "partitions": count})

    async def call(self, of: int, client: str, api: str, request: Json) -> None:
        """Send a request, in the background."""
        message = self._corner.request(api, request)
        self._open[of] = asyncio.create_task(self._call(of, client, api, message))

    async def _call(self, of: int, client: str, api: str, message: Message) -> None:
        try:
            response = self._corner.response(await self._service.call(api, message, client))
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.ABORTED:
                return  # a later call took its place: it counts as never answered (S17)
            response = {"status": error.code().name, "details": error.details()}
        except Exception as error:  # noqa: BLE001 - what broke a call is a difference to be shown
            response = {"broken": repr(error)}
        self._done.put_nowait(Completion(of, client, api, response))

    async def settle(self, wanted: frozenset[int]) -> list[Completion]:
        """What is wanted, for as long as it takes; then what else comes until all is quiet."""
        until = asyncio.get_running_loop().time() + PATIENCE_S
        while wanted - {each.of for each in self._found}:
            if not await self._take(until):
                break
        self._barriers += 1
        await self._service.barrier(self._corner, self._barriers)
        while await self._take(asyncio.get_running_loop().time() + QUIET_S):
            pass
        found, self._found = self._found, []
        self._answered.update(each.of for each in found)
        return found

    @property
    def unanswered(self) -> set[int]:
        """The steps whose call has no answer yet; one that was superseded never gets any."""
        return self._open.keys() - self._answered

    async def wait(self, ms: int) -> None:
        """Let real time pass, and note what is answered meanwhile."""
        until = asyncio.get_running_loop().time() + ms / 1000
        while asyncio.get_running_loop().time() < until:
            await self._take(until)

    async def _take(self, until: float) -> bool:
        """Note the next answer; False if none comes in time."""
        try:
            async with asyncio.timeout_at(until):
                self._found.append(await self._done.get())
        except TimeoutError:
            return False
        return True

    async def admin(self, action: Mapping[str, Json]) -> None:
        """Topics, and the change of leader."""
        match dict(action):
            case {"create_topic": name, "partitions": count}:
                body = {"topics": [{"name": name, "num_partitions": count}]}
                await self._do("CreateTopics", body)
            case {"add_partitions": name, "partitions": count}:
                await self._do("CreatePartitions", {"topics": [{"name": name, "count": count}]})
            case {"delete_topic": name}:
                await self._do("DeleteTopics", {"topics": [{"name": name}]}, force=True)
            case {"restart": True}:
                await self._service.forget()
            case other:
                raise NotImplementedError(other)

    async def _do(self, api: str, body: Json, *, force: bool = False) -> None:
        """`force`: as Kafka, which deletes topics that groups subscribe to."""
        request: Any = self._corner.request(api, body)
        request.holdfast.force = force
        answer = await self._service.change(api, request)
        (result,) = next(value for _, value in answer.ListFields() if len(value))
        if result.error_code != errors_pb2.ERROR_CODE_NONE:
            told = error_name(result.error_code)
            raise RuntimeError(f"{api} {body}: {told}; before that {self._service.refusals}")

    async def close(self) -> None:
        """Drop what is still parked."""
        for task in self._open.values():
            task.cancel()
        await asyncio.gather(*self._open.values(), return_exceptions=True)

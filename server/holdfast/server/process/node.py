"""One node: puts its parts together, serves, and stops gracefully. Only this file knows all parts.

Start: bind the client port, open the replica, begin to serve. Stop: hand the leadership over,
answer what is parked, close within `node.shutdown_ms`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from holdfast.coordinator.cluster import settings
from holdfast.coordinator.kernel.form import are_compiled
from holdfast.coordinator.model.commands import (
    DeadlineFired,
    FormCluster,
    GrantAdmin,
    RaiseRecoveryNumber,
)
from holdfast.raft.api import RaftError
from holdfast.runtime.background.offset_retention import OffsetRetention
from holdfast.runtime.background.segment_roll import SegmentRoll
from holdfast.runtime.groups.actors import NEVER_RECOVERED, Actors
from holdfast.runtime.groups.target_maker import in_child
from holdfast.runtime.replica.catch_up import CatchUp
from holdfast.runtime.time.timers import Timers
from holdfast.server.access.admission import Admission
from holdfast.server.access.gate import Gate
from holdfast.server.access.principal_limits import PrincipalLimits
from holdfast.server.access.readable_topics import ReadableTopics
from holdfast.server.access.revocations import Revocations
from holdfast.server.access.table import CLUSTER_READ
from holdfast.server.audit.files import FOLDER, AuditFiles
from holdfast.server.audit.trail import Trail
from holdfast.server.guard.open_streams import OpenStreams
from holdfast.server.guard.pace import Pace
from holdfast.server.guard.request_guard import InForce, bytes_in_flight, checking
from holdfast.server.metrics.applied_counts import AppliedCounts
from holdfast.server.metrics.call_counts import CallCounts
from holdfast.server.metrics.node_facts import NodeFacts
from holdfast.server.rpc.admin_service import AdminService
from holdfast.server.rpc.arrived_heartbeats import ArrivedHeartbeats
from holdfast.server.rpc.backup_service import BackupService
from holdfast.server.rpc.callers import Callers
from holdfast.server.rpc.calls.assignments import Assignments
from holdfast.server.rpc.calls.heartbeat_batch import HeartbeatBatches
from holdfast.server.rpc.calls.member_calls import MemberCalls
from holdfast.server.rpc.group_service import GroupService
from holdfast.server.rpc.grpc_options import message_bytes_max
from holdfast.server.rpc.health import Health
from holdfast.server.rpc.heartbeat_stream import HeartbeatStreams
from holdfast.server.rpc.log_service import LogService
from holdfast.server.rpc.membership.known_nodes import ClientAddresses, KnownNodes
from holdfast.server.rpc.membership.node_changes import NodeChanges
from holdfast.server.rpc.nodes import Nodes
from holdfast.server.rpc.offset_service import OffsetService
from holdfast.server.rpc.pushes.carriers import Carriers
from holdfast.server.rpc.pushes.pushes import Pushes
from holdfast.server.rpc.reads import Reads
from holdfast.server.rpc.session.sessions import Sessions
from holdfast.server.rpc.session.stream import Desk
from holdfast.server.rpc.takeovers import Takeovers
from holdfast.server.traces.traces import Traces
from holdfast.v1 import (
    admin_pb2,
    admin_pb2_grpc,
    backup_pb2,
    backup_pb2_grpc,
    group_pb2,
    group_pb2_grpc,
    log_pb2,
    log_pb2_grpc,
    offset_pb2,
    offset_pb2_grpc,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from holdfast.raft.api import Build
    from holdfast.runtime.ports import ComputesTargets, HistoryLike, ReplicaLike
    from holdfast.server.config.node_config import NodeConfig
    from holdfast.server.rpc.backup_service import Copies

logger = logging.getLogger(__name__)


class Node:
    """A serving node on top of a replica; tests pass a stand-in for the replica."""

    def __init__(
        self,
        config: NodeConfig,
        replica: ReplicaLike,
        history: HistoryLike,
        copies: Copies,
        servers: Sequence[grpc.aio.Server],
        peer_troubles: Callable[[], Sequence[str]] = tuple,
        peer_builds: Callable[[], Mapping[str, Build]] = dict,
        recovering: RaiseRecoveryNumber = NEVER_RECOVERED,
    ) -> None:
        """`servers`: one for each port for clients, bound; they serve the same."""
        self.config, self.replica, self._history = config, replica, history
        self._known = known = KnownNodes(replica, config.peers)
        self._nodes = Nodes(replica, known, peer_troubles, peer_builds)
        self.facts = NodeFacts(config.data_dir, config.tls)
        self._servers = servers
        self.traces = Traces(config.traces.sample_ratio) if config.traces else None
        self.stopped_because: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._led_out = asyncio.Event()
        self._stopping = False
        arrived, self._pace = ArrivedHeartbeats(), Pace()
        self.open_streams = OpenStreams()
        self.call_counts, self.applied_counts = CallCounts(), AppliedCounts()
        self.timers = Timers(replica, self._submit, heard=arrived.heard)
        addresses = ClientAddresses(known)
        self._trail = Trail(_audit_files(config))
        self._callers, self._gate = Callers(), Gate(lambda: replica.state, self._trail)
        self.actors = Actors(
            *(replica, self.timers, addresses, self._forming, recovering),
            *(ReadableTopics(self._gate), self._compute()),
        )
        self._limits = PrincipalLimits(lambda: replica.state)
        self.revocations = Revocations(
            lambda: replica.state, self._callers, self.open_streams.end_where
        )
        self.catch_up = CatchUp(replica)
        self._reads = Reads(replica, self.actors, self.catch_up)
        self.takeovers = Takeovers(replica, history)
        self._calls = MemberCalls(
            *(replica, self.actors, self._callers, self.takeovers, self._gate, self.traces)
        )
        self.carriers = Carriers()
        self.pushes = Pushes(replica, self.carriers, self._calls.heartbeat.refusal)
        batches = HeartbeatBatches(
            *(self.actors, self._calls, self.carriers, arrived),
            *(self.call_counts, self._limits),
        )
        self.streams = HeartbeatStreams(
            batches, self._callers, self.carriers, self._pace, self.traces
        )
        self._desk = Desk(
            *(self.actors, self._callers, self._calls, arrived),
            *(self._pace, bytes_in_flight(), self._members_max, self.call_counts),
            *(self._limits, self.carriers, self.traces),
        )
        self._sessions = Sessions(replica, self._desk)
        self._offset_retention = OffsetRetention(replica, self.actors)
        self._backups = BackupService(*(replica, copies, self._reads, self._callers, self._gate))
        self._log = LogService(
            *(replica, self.actors, history, self._reads, self._callers),
            *(self._pace, self._gate, self._limits),
        )
        self._health = Health(replica, lambda: self.actors.is_serving)
        self._listen()

    def _listen(self) -> None:
        """Have the parts subscribe to the replica; they are called in this order."""
        self.takeovers.listen()
        self.actors.listen()
        self._reads.listen()
        self.pushes.listen()
        self._sessions.listen()
        self._health.listen()
        self._offset_retention.listen()
        SegmentRoll(self.replica, self.actors, self._history).listen()
        self._log.listen()
        self.revocations.listen(self.replica)
        self.applied_counts.listen(self.replica)
        self.replica.subscribe(
            on_leading=self.on_leading,
            on_not_leading=self.on_not_leading,
            on_stopped=self.on_stopped,
        )

    def gauges(self) -> dict[str, Callable[[], float]]:
        """Return metrics that are one look at what waits here (`metrics.catalogue`)."""
        return {
            "holdfast_calls_open": lambda: len(self.actors.calls),
            "holdfast_request_bytes_in_flight": lambda: self._desk.in_flight.sum,
            "holdfast_heartbeat_stream_members": lambda: self.carriers.carried,
            "holdfast_heartbeat_stream_waiting": lambda: self.streams.waiting,
            "holdfast_pushes_total": lambda: self.pushes.sent,
            "holdfast_pushes_left_out_total": lambda: self.pushes.left_out,
            **(self.traces.gauges() if self.traces else {}),
        }

    def metrics_refusal(self, principal: str) -> str:
        """Return why a principal may not see the metrics; "" if it may."""
        return self._gate.problem(principal, "/metrics", CLUSTER_READ)

    def _submit(self, command: DeadlineFired) -> None:
        self.actors.submit_fired(command)

    def _forming(self) -> FormCluster:
        """Return the command that creates the cluster, when this node leads it first (S19)."""
        level = self._nodes.first_level()
        return FormCluster(
            self.config.cluster_id,
            self.config.settings,
            level,
            self.config.administrators,
            self.config.access_mode,
        )

    def _compute(self) -> ComputesTargets:
        """Return what computes targets of large groups beside this node's work; a seam of tests."""
        return in_child

    def _message_bytes_max(self) -> int:
        """Return the bytes of the longest request that the settings in force allow (S7, S23)."""
        return message_bytes_max(settings.of_cluster(self.replica.state).entry_bytes_max)

    def _members_max(self) -> int:
        """Return how many members the largest group may have (S23)."""
        return settings.largest_group(self.replica.state)

    async def start(self) -> None:
        """Start to serve on the ports, which are bound already."""
        for server in self._servers:
            self._register(server)
        for server in self._servers:
            await server.start()
        self._trail.start()
        self.timers.start()
        self.takeovers.start()
        await self._health.begin()
        logger.info("serving clients on %s as %s", self.config.client_address, self.config.name)
        logger.info("the rules run %s", "compiled" if are_compiled() else "as source")

    def _register(self, server: grpc.aio.Server) -> None:
        """Have a server serve everything, each method behind a check."""
        in_force = InForce(self._message_bytes_max, self._members_max)
        admission = Admission(
            *(self._gate, self._callers, self.revocations.check),
            *(self._limits, self._trail),
        )
        door = checking(
            *(server, in_force, self._pace, self._desk.in_flight),
            *(self.open_streams, self.call_counts, admission, self.traces),
        )
        group_pb2_grpc.add_GroupServiceServicer_to_server(
            GroupService(
                *(self.replica, self.actors, self._calls, self.streams, self._sessions),
                Assignments(self.actors, self._reads, self._callers, self._gate),
            ),
            door,
        )
        offset_pb2_grpc.add_OffsetServiceServicer_to_server(
            OffsetService(
                *(self.actors, self._reads, self._callers, self._calls),
                *(self._pace, self.call_counts, self._gate, self._limits),
            ),
            door,
        )
        admin_pb2_grpc.add_AdminServiceServicer_to_server(
            AdminService(
                *(self.actors, self._reads, self._callers, self._nodes),
                *(self.takeovers, self._gate, self.facts),
                NodeChanges(self.replica, self.actors, self._trail.changed, self._known),
            ),
            door,
        )
        log_pb2_grpc.add_LogServiceServicer_to_server(self._log, door)
        backup_pb2_grpc.add_BackupServiceServicer_to_server(self._backups, door)
        health_pb2_grpc.add_HealthServicer_to_server(self._health.servicer, door)
        reflection.enable_server_reflection(_service_names(), server)

    async def stop(self) -> None:
        """Transfer the leadership, answer parked calls, and end, within `node.shutdown_ms`."""
        logger.info("stopping")
        self._stopping = True
        bound = self.config.shutdown_ms / 1000
        await self._health.end()
        self.timers.stop()
        self.takeovers.stop()
        self.revocations.stop()
        self._offset_retention.on_not_leading()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(bound / 2):
                await self._hand_over()
        self.actors.stop()
        self._sessions.stop()
        self._log.stop()
        await asyncio.gather(*(server.stop(bound / 4) for server in self._servers))
        await self._trail.stop()

    async def _hand_over(self) -> None:
        """Transfer the leadership to the most up-to-date peer, if one can take it; wait for it."""
        if not self.replica.leading_term:
            return
        ready = [p for p in self.replica.status().peers if p.connected and p.counted]
        best = max(ready, key=lambda peer: peer.acked_index, default=None)
        if best is None:
            return
        logger.info("handing the leadership to %s", best.peer)
        with contextlib.suppress(RaftError):
            self.replica.transfer(best.peer)
        await self._led_out.wait()

    # --- the replica's listener ---

    def on_leading(self, term: int) -> None:
        """Grant what this start asks for; warn of settings that are not in force (S23)."""
        del term
        self._led_out.clear()
        self._grant_admin()
        self._warn_of_settings()
        self._tell_access()

    def on_not_leading(self) -> None:
        """Let a graceful stop go on; the actors have answered every open call."""
        self._led_out.set()

    def on_stopped(self, reason: str) -> None:
        """End the process: its log stopped."""
        if self._stopping:
            return
        logger.critical("the replicated log of this node stopped: %s", reason)
        if not self.stopped_because.done():
            self.stopped_because.set_result(reason)

    def _grant_admin(self) -> None:
        """Let a principal in whom no administrator can: who owns this disk owns the cluster."""
        if self.config.grant_admin:
            logger.warning("--grant-admin: %r becomes an administrator", self.config.grant_admin)
            self.actors.submit(GrantAdmin(self.config.grant_admin))

    def _tell_access(self) -> None:
        """Warn if everybody may do everything, as in clusters that were there before grants."""
        state = self.replica.state
        if state.cluster_id and not state.access_mode and self.config.tls is not None:
            logger.warning(
                "the access mode is open: whoever has a certificate may do everything. Grant what "
                "is needed, then `holdfast acl mode dry-run` (docs/operations/permissions.md)"
            )

    def _warn_of_settings(self) -> None:
        if not self.replica.state.cluster_id:
            return
        for name, value in self.config.settings:
            current = str(settings.in_force(self.replica.state.settings, "", name).value)
            if value != current:
                logger.warning(
                    "the configuration says %s = %s, but %s is in force: settings count at the "
                    "bootstrap only. Change it with `holdfast settings set %s=%s`",
                    name, value, current, name, value,
                )  # fmt: skip


def _audit_files(config: NodeConfig) -> AuditFiles | None:
    most = config.audit_bytes_max
    return AuditFiles(config.data_dir / FOLDER, most) if most else None


def _service_names() -> list[str]:
    files = (group_pb2, offset_pb2, admin_pb2, log_pb2, backup_pb2, health_pb2)
    services = [s for file in files for s in file.DESCRIPTOR.services_by_name.values()]
    return [*(service.full_name for service in services), reflection.SERVICE_NAME]

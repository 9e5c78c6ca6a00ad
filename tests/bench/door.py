"""The row about the door: what a call pays to be admitted, and to be counted, each by itself.

Processor time of this process, no cluster. A real call comes over TLS, and while it is open the
node's own checks are made of it many times over: with them, and without. What gRPC takes to tell
who calls is in it where the checks ask for it, and not where the call reads that anyhow.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast

import grpc.aio

from bench.changes import TOPIC, commit
from bench.figures import Figure, most
from bench.rig import Bench
from holdfast.coordinator.cluster.settings_catalogue import REGISTRY
from holdfast.coordinator.kernel.apply import apply_entry
from holdfast.coordinator.model.access import DENY, Acl, Revocation, administrator
from holdfast.coordinator.model.events import (
    AccessModeChanged,
    AclsChanged,
    Cause,
    Event,
    LevelRaised,
    LogEntry,
    OffsetCommitted,
    OffsetsCommitted,
    Part,
    Proposed,
    Record,
    RevocationsChanged,
    SettingChange,
    SettingsChanged,
)
from holdfast.coordinator.model.ids import Position
from holdfast.coordinator.model.state import State
from holdfast.runtime.ports import ReplicaLike
from holdfast.server.access.admission import Admission
from holdfast.server.access.gate import Gate
from holdfast.server.access.principal_limits import PrincipalLimits
from holdfast.server.access.revocations import Revocations
from holdfast.server.metrics.applied_counts import AppliedCounts
from holdfast.server.metrics.call_counts import CallCounts, code_of
from holdfast.server.rpc.callers import Callers, Context
from holdfast.server.rpc.calls.commit import Commit
from holdfast.server.rpc.grpc_options import server_options
from holdfast.server.rpc.takeovers import Takeovers
from holdfast.server.security import certificates
from holdfast.server.security.client_port import ClientPort
from holdfast.server.security.credentials import read_credentials
from holdfast.storage.durations import Durations
from holdfast.v1 import offset_pb2 as o
from holdfast.v1 import offset_pb2_grpc

_OTHER_CALLS: Final = dict.fromkeys(("OffsetCommitStream", "OffsetFetch", "OffsetDelete"))
METHOD: Final = "OffsetService.OffsetCommit"
PRINCIPAL: Final = "holdfast://client/bench"
OTHERS: Final = 1_000
"""Grants to others, and certificates of others."""
AUTHORIZATION_US: Final = most(10)
METRICS_US: Final = most(5)


Way = Callable[[o.OffsetCommitRequest, Context], Awaitable[Any]]
"""What is done with a commit that has come, and returns when all of it is done."""


async def door(bench: Bench) -> None:
    """Processor time of a call: its authorization, and what metrics count of it."""
    folder = bench.folder / "run" / "door"
    shutil.rmtree(folder, ignore_errors=True)
    passes, calls = bench.sizes.door_passes, bench.sizes.door_calls
    state = State()
    for name, events, goal in (
        ("authorization of a commit", granting(OTHERS), AUTHORIZATION_US),
        (f"the same, {OTHERS:,} certificates are revoked", _revoking(OTHERS), AUTHORIZATION_US),
        ("the same, and callers are limited", _limiting(), None),
    ):
        state = applied(state, events)
        value = await over_tls(folder, partial(authorization_us, state, passes, calls))
        bench.add(Figure("door", name, value, "us/call", goal))
    value = counting_us(passes, calls)
    bench.add(Figure("door", "metrics of a commit", value, "us/call", METRICS_US))


# --- authorization ---


def granting(others: int) -> tuple[Event, ...]:
    """A cluster of many services, each with a grant on its groups and one on its topic."""
    grants = [administrator("holdfast://client/ops"), *_grants(PRINCIPAL, "commits-", TOPIC)]
    for number in range(others // 2):
        name = f"service-{number}"
        grants += _grants(f"spiffe://prod/{name}", f"{name}-", name)
    return LevelRaised(2), AclsChanged(tuple(grants), ()), AccessModeChanged(DENY)


def _grants(principal: str, groups: str, topic: str) -> tuple[Acl, Acl]:
    member = Acl(principal, "member", "group", f"{groups}*")
    return member, Acl(principal, "reader", "topic", topic)


def _revoking(count: int) -> tuple[Event, ...]:
    revoked = tuple(Revocation(f"{number:064x}") for number in range(count))
    return (RevocationsChanged(revoked, ()),)


def _limiting() -> tuple[Event, ...]:
    """Limits that are counted for every call, and that nobody reaches."""
    calls = SettingChange("principal.calls_per_second_max", "1000000")
    sizes = SettingChange("principal.bytes_per_second_max", "1000000000")
    return (SettingsChanged("", (calls, sizes)),)


def applied(state: State, events: Iterable[Event]) -> State:
    """The state after these events; a real one, so that whatever is looked up is there."""
    for event in events:
        made = (Proposed(event, Cause("bench", "bench")),)
        entry = LogEntry(1, 1, (Part("", 1, state.version_of(""), made),))
        state = apply_entry(state, state.applied_index + 1, 1, entry).state
    return state


async def over_tls(folder: Path, look: Callable[[Context], Awaitable[float]]) -> float:
    """What `look` finds while a call of a client with a certificate is open."""
    authority = certificates.make_authority("door")
    uri = "holdfast://door/node/door"
    node = certificates.issue(authority, folder / "node", "door", uri, ("127.0.0.1",))
    own = certificates.issue(authority, folder / "client", "bench", PRINCIPAL, ())
    found: list[float] = []

    async def commits(request: o.OffsetCommitRequest, context: Context) -> o.OffsetCommitResponse:
        del request
        found.append(await look(context))
        return o.OffsetCommitResponse()

    server = grpc.aio.server(options=server_options(REGISTRY["log.entry_bytes_max"].most))
    service = cast("Any", SimpleNamespace(OffsetCommit=commits, **_OTHER_CALLS))
    offset_pb2_grpc.add_OffsetServiceServicer_to_server(service, server)
    port = server.add_secure_port("127.0.0.1:0", ClientPort(read_credentials(node)).credentials)
    await server.start()
    shown = (own.ca.read_bytes(), own.key.read_bytes(), own.certificate.read_bytes())
    try:
        credentials = grpc.ssl_channel_credentials(*shown)
        async with grpc.aio.secure_channel(f"127.0.0.1:{port}", credentials) as channel:
            await offset_pb2_grpc.OffsetServiceStub(channel).OffsetCommit(commit(1, 1))
        return found[0]
    finally:
        await server.stop(None)


async def authorization_us(state: State, passes: int, calls: int, context: Context) -> float:
    """Microseconds by which the way of a commit is longer with the checks than without.

    The fastest pass of each: neighbours make any pass slower, and none faster.
    """
    ways = _way(state, admitted=True), _way(State(), admitted=False)
    request = commit(1, 1)
    best = [float("inf")] * len(ways)
    for _ in range(passes):
        for at, way in enumerate(ways):
            best[at] = min(best[at], await _us(way, request, context, calls))
    return best[0] - best[1]


async def _us(way: Way, request: o.OffsetCommitRequest, context: Context, calls: int) -> float:
    began = time.thread_time()
    for _ in range(calls):
        await way(request, context)
    return (time.thread_time() - began) / calls * 1e6


def _way(state: State, *, admitted: bool) -> Way:
    """Make a commit's way up to its command, which is not decided; as `MemberCalls.ask_as` goes."""
    callers, gate = Callers(), Gate(lambda: state)
    kind = Commit(cast("ReplicaLike", None), cast("Takeovers", None), gate)

    async def way(request: o.OffsetCommitRequest, context: Context) -> None:
        who = callers.asker(context)
        refused = kind.refusal(request, who.principal)
        command = kind.command(request, kind.caller(who.identity, 1, request), ())
        if refused is not None or command.forbidden:
            raise RuntimeError("the commit is refused, so what it takes to admit one is not known")

    if not admitted:
        return way
    revocations = Revocations(lambda: state, callers, lambda _: 0)
    limits = PrincipalLimits(lambda: state)
    return Admission(gate, callers, revocations.check, limits).unary(
        METHOD, way, o.OffsetCommitResponse
    )


# --- metrics ---


def counting_us(passes: int, calls: int) -> float:
    """Microseconds in which all is counted that metrics tell of one commit, on its leader."""
    codes, applied = CallCounts().of("OffsetCommit"), AppliedCounts()
    commits, syncs = Durations(), Durations()
    answer, records = o.OffsetCommitResponse(), (_record(),)
    found: list[float] = []
    for _ in range(passes):
        began = time.thread_time()
        for index in range(calls):
            codes[code_of(answer)] += 1
            applied.on_applied(records, index)
            commits.add(0.004)
            syncs.add(0.0002)
        found.append((time.thread_time() - began) / calls * 1e6)
    if codes[0] != passes * calls or applied.records != passes * calls:
        raise RuntimeError("not every commit was counted")
    return min(found)


def _record() -> Record:
    """A committed offset, as it is applied."""
    event = OffsetsCommitted((OffsetCommitted(TOPIC, 1, 1, -1, ""),))
    place = (Position(1, 0), "commits-1", 1, 1, 1, Cause("CommitOffsets", "J"), PRINCIPAL, "")
    return Record(*place, event)

"""A revoked certificate is out when the event is applied: what is open ends, and nothing begins."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import grpc
import pytest

from harness.twins import twin_files
from holdfast.coordinator.model.access import Revocation
from holdfast.coordinator.model.events import LevelRaised, RevocationsChanged
from holdfast.raft.fingerprints import fingerprints_in
from holdfast.server.access import revocations
from holdfast.server.rpc.errors import OUTCOME_KEY, RETRY_KEY
from holdfast.server.security.certificates import issue, make_authority
from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import errors_pb2 as e
from holdfast.v1 import events_pb2 as ev
from holdfast.v1 import group_pb2 as g
from holdfast.v1 import log_pb2 as lg
from holdfast.v1.admin_pb2_grpc import AdminServiceStub
from holdfast.v1.group_pb2_grpc import GroupServiceStub
from holdfast.v1.log_pb2_grpc import LogServiceStub
from unit.server.nodes import join, served, sync, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from unit.server.nodes import Served

UNAUTHENTICATED = grpc.StatusCode.UNAUTHENTICATED
WITHIN_S = 20.0


class Client(NamedTuple):
    """A caller with a certificate of its own."""

    fingerprint: str
    channel: grpc.aio.Channel
    group: Any
    admin: Any
    log: Any


class World(NamedTuple):
    """A node with TLS, and its callers."""

    node: Served
    thief: Client
    honest: Client
    twin: Client
    """The thief with the same certificate in its other form."""

    def revoke(self, *revoked: Revocation, lifted: tuple[str, ...] = ()) -> None:
        """Have the node apply the event, as any of its peers does."""
        self.node.replica.slip_in("", RevocationsChanged(revoked, lifted))


@asynccontextmanager
async def world(folder: Path) -> AsyncIterator[World]:
    """Nobody is revoked yet, and everybody may do everything."""
    authority = make_authority("c")
    tls = issue(authority, folder / "node", "node-1", "holdfast://c/node/node-1", ["127.0.0.1"])
    async with served(tls=tls) as node:
        node.replica.slip_in("", LevelRaised(2))
        shown = {
            name: issue(authority, folder / name, name, f"holdfast://client/{name}", [])
            for name in ("thief", "honest")
        }
        shown["twin"] = twin_files(shown["thief"], folder / "twin")
        clients = []
        for own in shown.values():
            pem = own.certificate.read_bytes()
            credentials = grpc.ssl_channel_credentials(
                tls.ca.read_bytes(), own.key.read_bytes(), pem
            )
            channel = grpc.aio.secure_channel(node.secure_address, credentials)
            stubs = (GroupServiceStub(channel), AdminServiceStub(channel), LogServiceStub(channel))
            clients.append(Client(fingerprints_in(pem)[0], channel, *stubs))
        try:
            yield World(node, *clients)
        finally:
            for client in clients:
                await client.channel.close()


async def ended(call: Any) -> tuple[grpc.StatusCode, str, dict[str, str]]:  # noqa: ANN401 - any call
    """How a call ended: status, sentence, trailing metadata.

    A stream's status stands behind its messages, and is told once these are read: a watch may be
    sent the very event that ends it.
    """
    async with asyncio.timeout(WITHIN_S):
        with suppress(grpc.aio.AioRpcError):
            while hasattr(call, "read") and await call.read() is not grpc.aio.EOF:
                pass
        status = await call.code()
        trailing = {str(key): str(value) for key, value in await call.trailing_metadata()}
        return status, await call.details(), trailing


def test_new_calls_are_refused_with_a_sentence_until_it_is_lifted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        async with world(tmp_path) as each:
            await each.thief.admin.ListGroups(a.ListGroupsRequest())
            each.revoke(Revocation(each.thief.fingerprint, reason="stolen laptop"))

            for _ in range(2):
                call = each.thief.admin.ListGroups(a.ListGroupsRequest())
                status, sentence, trailing = await ended(call)
                assert status is UNAUTHENTICATED
                assert each.thief.fingerprint in sentence
                assert "stolen laptop" in sentence
                assert trailing == {OUTCOME_KEY: "not-applied", RETRY_KEY: "no"}
            await each.honest.admin.ListGroups(a.ListGroupsRequest())
            refused = [r.getMessage() for r in caplog.records if "was refused" in r.getMessage()]
            assert len(refused) == 1, "the log tells of it once a minute, however often it calls"
            assert "holdfast://client/thief" in refused[0]

            each.revoke(lifted=(each.thief.fingerprint,))
            await each.thief.admin.ListGroups(a.ListGroupsRequest())

    asyncio.run(story())


def test_the_twin_of_a_revoked_certificate_is_refused_and_what_it_has_open_ends(
    tmp_path: Path,
) -> None:
    """A thief makes it without the authority; the sentence has the number on the list (ADR 46)."""

    async def story() -> None:
        async with world(tmp_path) as each:
            assert each.twin.fingerprint != each.thief.fingerprint
            watch = each.twin.log.Watch(lg.WatchRequest())
            await watch.read()

            each.revoke(Revocation(each.thief.fingerprint, reason="stolen laptop"))

            assert (await ended(watch))[0] is UNAUTHENTICATED
            call = each.twin.admin.ListGroups(a.ListGroupsRequest())
            status, sentence, _ = await ended(call)
            assert status is UNAUTHENTICATED
            assert each.thief.fingerprint in sentence
            await each.honest.admin.ListGroups(a.ListGroupsRequest())

            each.revoke(Revocation(each.twin.fingerprint), lifted=(each.thief.fingerprint,))
            refused = each.thief.admin.ListGroups(a.ListGroupsRequest())
            assert (await ended(refused))[0] is UNAUTHENTICATED, "nor the one whose twin is revoked"

    asyncio.run(story())


def test_streams_and_calls_that_are_open_end_with_the_event(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A stream of any kind, and a join that waits for others; nobody else's."""

    async def story() -> None:
        async with world(tmp_path) as each:
            first = await each.honest.group.JoinGroup(join())
            await each.honest.group.SyncGroup(sync(first))
            parked = each.thief.group.JoinGroup(join(instance_id="i2"))
            watch = each.thief.log.Watch(lg.WatchRequest())
            await watch.read()
            beats = each.thief.group.HeartbeatStream()
            await beats.write(g.HeartbeatBatch())
            await beats.read()
            session, spared = each.thief.group.Session(), each.honest.group.Session()
            await session.initial_metadata()
            await spared.initial_metadata()
            await until(lambda: len(each.node.node.actors.calls) == 1)
            assert not parked.done()

            each.revoke(Revocation(each.thief.fingerprint, "thief", reason="lost"))

            for call in (parked, watch, beats, session):
                status, sentence, trailing = await ended(call)
                assert status is UNAUTHENTICATED
                assert "is revoked" in sentence
                assert trailing[OUTCOME_KEY] == "unknown"
            assert not spared.done()
            spared.cancel()
            said = " ".join(record.getMessage() for record in caplog.records)
            assert f"{each.thief.fingerprint} of 'thief' (lost)" in said, "the log says who and why"

    asyncio.run(story())


def test_a_state_that_was_installed_brings_no_event_and_counts_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node that was far behind gets the state itself; it looks at it by the clock."""
    monkeypatch.setattr(revocations, "LOOK_S", 0.01)

    async def story() -> None:
        async with world(tmp_path) as each:
            refused: list[frozenset[str]] = []
            each.node.node.revocations.start(refused.append)
            stream = each.thief.log.Watch(lg.WatchRequest())
            await stream.read()

            found = Revocation(each.thief.fingerprint)
            state = each.node.replica.state
            each.node.replica.state = state._replace(
                revocations=state.revocations.set(found.fingerprint, found)
            )

            assert (await ended(stream))[0] is UNAUTHENTICATED
            assert refused == [frozenset(), frozenset({each.thief.fingerprint})]

    asyncio.run(story())


def test_a_call_revokes_and_shows_it_and_never_its_own_certificate(tmp_path: Path) -> None:
    """Its own answer could not be told, and the last administrator would be out by a slip."""

    async def story() -> None:
        async with world(tmp_path) as each:
            mine = ev.Revocation(fingerprint=each.honest.fingerprint)
            other = ev.Revocation(fingerprint=each.thief.fingerprint, reason="stolen")

            both = await each.honest.admin.AlterRevocations(
                a.AlterRevocationsRequest(revoked=[other, mine])
            )
            assert both.error_code == e.ERROR_CODE_INVALID_REQUEST
            assert "this call was made with" in both.holdfast.message
            assert not each.node.replica.state.revocations
            mine = ev.Revocation(fingerprint=each.thief.fingerprint)
            twin = await each.twin.admin.AlterRevocations(a.AlterRevocationsRequest(revoked=[mine]))
            assert twin.error_code == e.ERROR_CODE_INVALID_REQUEST, "its twin's would go with it"

            done = await each.honest.admin.AlterRevocations(
                a.AlterRevocationsRequest(revoked=[other])
            )
            assert done.error_code == e.ERROR_CODE_NONE
            shown = await each.honest.admin.DescribeRevocations(a.DescribeRevocationsRequest())
            assert [(it.fingerprint, it.reason) for it in shown.revocations] == [
                (each.thief.fingerprint, "stolen")
            ]
            refused = each.thief.admin.DescribeRevocations(a.DescribeRevocationsRequest())
            assert (await ended(refused))[0] is UNAUTHENTICATED

    asyncio.run(story())

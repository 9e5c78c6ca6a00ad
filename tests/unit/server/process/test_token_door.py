"""The port for tokens: who gets in, when streams end, and which addresses are told."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2_grpc

from harness.issuer import Issuer, token_settings
from holdfast.client import Admin, Forbidden, Tls
from holdfast.coordinator.model.access import Acl, administrator
from holdfast.coordinator.model.events import AccessModeChanged, AclsChanged, LevelRaised
from holdfast.server.security import certificates
from holdfast.server.security.token_keys import keys_in
from holdfast.server.security.tokens import Tokens
from holdfast.v1 import admin_pb2, extras_pb2, group_pb2
from holdfast.v1.admin_pb2_grpc import AdminServiceStub
from holdfast.v1.group_pb2_grpc import GroupServiceStub
from holdfast.v1.log_pb2 import WatchRequest
from holdfast.v1.log_pb2_grpc import LogServiceStub
from unit.server.nodes import TOLD, Served, join, served

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


SECONDS = 20.0
UNAUTHENTICATED = grpc.StatusCode.UNAUTHENTICATED


class World(NamedTuple):
    """A node with a port for tokens, and an issuer that it believes."""

    node: Served
    issuer: Issuer
    tokens: Tokens
    channel: grpc.aio.Channel
    ca: Path

    def known(self, **token: Any) -> dict[str, Any]:  # noqa: ANN401 - as of an issuer
        """What a call with a good token shows."""
        return {"metadata": (bearer(self.issuer.token(**token)),), "timeout": SECONDS}

    def withdraw(self, name: str) -> None:
        """Take a key of the issuer's away, and let the node see it."""
        del self.issuer.keys[name]
        self.issuer.keys.setdefault("left", next(iter(Issuer("left").keys.values())))
        self.tokens.replace_keys(keys_in(self.issuer.key_set())[0])
        assert self.node.door is not None
        self.node.door.end_untrusted()


def bearer(token: str) -> tuple[str, str]:
    return "authorization", f"Bearer {token}"


@asynccontextmanager
async def world(folder: Path, *, leading: bool = True) -> AsyncIterator[World]:
    issuer = Issuer("first", "second")
    tokens = Tokens(token_settings(), keys_in(issuer.key_set())[0])
    authority = certificates.make_authority("c")
    uri = "holdfast://c/node/node-1"
    tls = certificates.issue(authority, folder / "node", "node-1", uri, ["127.0.0.1"])
    async with served(leading=leading, tls=tls, tokens=tokens) as node:
        root = grpc.ssl_channel_credentials(tls.ca.read_bytes())
        async with grpc.aio.secure_channel(node.token_address, root) as channel:
            yield World(node, issuer, tokens, channel, tls.ca)


async def refusal(call: Any) -> grpc.aio.AioRpcError:  # noqa: ANN401 - of gRPC, untyped
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return caught.value


def trailing(error: grpc.aio.AioRpcError) -> dict[str, Any]:
    return dict(error.trailing_metadata() or ())


def test_a_good_token_makes_calls_as_its_principal(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as made:
            found = await AdminServiceStub(made.channel).DescribeAcls(
                admin_pb2.DescribeAclsRequest(), **made.known(name="indexer")
            )
            assert found.principal == "jwt:indexer"

    asyncio.run(run())


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        ((), "no metadata 'authorization'"),
        ((bearer("good"), bearer("good")), "2 times"),
        ((("authorization", "Basic dTpw"),), "another word than `Bearer`"),
        ((("authorization", "Bearer"),), "another word than `Bearer`"),
        ((("authorization", "Bearer "),), "no JWT"),
        ((("authorization", ""),), "another word than `Bearer`"),
        ((bearer("garbage"),), "no JWT"),
        ((bearer("x" * 7_500),), "characters"),
        ((bearer("good, Bearer good"),), "no JWT"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_without_one_good_token_no_call_gets_in(
    tmp_path: Path, metadata: tuple[tuple[str, str], ...], words: str
) -> None:
    """Unary calls and streams, ours and those of the library.

    Nothing is written to the streams: grpc.aio's client calls it INTERNAL, and not what the node
    says, if a message meets a stream whose end has not been read yet.
    """

    async def run() -> None:
        async with world(tmp_path) as made:
            good = made.issuer.token()
            shown = tuple((key, value.replace("good", good)) for key, value in metadata)
            more: dict[str, Any] = {"metadata": shown, "timeout": SECONDS}
            channel = made.channel
            calls = [
                AdminServiceStub(channel).DescribeCluster(
                    admin_pb2.DescribeClusterRequest(), **more
                ),
                GroupServiceStub(channel).Session(iter([]), **more).read(),
                LogServiceStub(channel).Watch(WatchRequest(), **more).read(),
                health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), **more),
                reflection_pb2_grpc.ServerReflectionStub(channel)
                .ServerReflectionInfo(iter([]), **more)
                .read(),
            ]
            for call in calls:
                error = await refusal(call)
                assert (error.code(), words in (error.details() or "")) == (UNAUTHENTICATED, True)
                assert good not in (error.details() or "")
                assert trailing(error)["holdfast-outcome"] == "not-applied"

    asyncio.run(run())


def test_a_refusal_tells_whether_another_token_may_help(tmp_path: Path) -> None:
    """A client renews a token that has expired; one for another cluster it need not try again."""

    async def run() -> None:
        async with world(tmp_path) as made:
            ask = AdminServiceStub(made.channel).DescribeCluster
            request = admin_pb2.DescribeClusterRequest()
            late = await refusal(ask(request, **made.known(lasts=-1)))
            foreign = await refusal(ask(request, **made.known(aud="other")))
            assert "holdfast-retry" not in trailing(late)
            assert trailing(foreign)["holdfast-retry"] == "no"

    asyncio.run(run())


def test_a_message_of_a_stranger_is_not_read(tmp_path: Path) -> None:
    """Else whoever reaches the port could have a node hold 65 MiB for each of 4,096 calls."""

    async def run() -> None:
        async with world(tmp_path) as made:
            filler = group_pb2.HeartbeatRequest(group_id="g" * 30_000)
            batch = group_pb2.HeartbeatBatch(requests=[filler] * 30)
            stream = GroupServiceStub(made.channel).HeartbeatStream(timeout=SECONDS)
            # gRPC's own window takes a little; the node takes nothing out of it
            with pytest.raises((grpc.aio.AioRpcError, asyncio.InvalidStateError)):
                await _write_all(stream, [batch] * 70)

    asyncio.run(run())


async def _write_all(stream: Any, messages: list[group_pb2.HeartbeatBatch]) -> None:  # noqa: ANN401 - of gRPC
    for message in messages:
        await stream.write(message)


def test_the_same_table_says_what_a_token_may_do(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as made:
            grants = (administrator("ops"), Acl("jwt:indexer", "member", "group", "own*"))
            made.node.replica.slip_in(
                "", LevelRaised(2), AclsChanged(grants, ()), AccessModeChanged("deny")
            )
            stub = GroupServiceStub(made.channel)
            shown = made.known(name="indexer")
            assert (await stub.Heartbeat(_beat("own-g"), **shown)).error_code == 25
            assert (await stub.Heartbeat(_beat("other"), **shown)).error_code == 30
            # the administrator is a certificate's principal: no token can be that one
            change = AdminServiceStub(made.channel).AlterAcls
            refused = await change(
                admin_pb2.AlterAclsRequest(mode="open"), **made.known(name="ops")
            )
            assert refused.error_code == 31

    asyncio.run(run())


def _beat(group_id: str) -> group_pb2.HeartbeatRequest:
    return group_pb2.HeartbeatRequest(group_id=group_id, member_id="m", generation_id=1)


def test_a_token_opens_no_connection_to_the_port_for_certificates(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as made:
            credentials = grpc.ssl_channel_credentials(made.ca.read_bytes())
            async with grpc.aio.secure_channel(made.node.secure_address, credentials) as channel:
                error = await refusal(
                    AdminServiceStub(channel).DescribeCluster(
                        admin_pb2.DescribeClusterRequest(), **made.known()
                    )
                )
            assert error.code() is grpc.StatusCode.UNAVAILABLE, "no handshake without a certificate"

    asyncio.run(run())


def test_clients_with_tokens_are_told_the_ports_for_tokens(tmp_path: Path) -> None:
    """Else they would follow the leader to a port that refuses them in the handshake."""

    async def run() -> None:
        async with world(tmp_path, leading=False) as made:
            made.node.replica.leader = "node-2"
            group = GroupServiceStub(made.channel)
            admin = AdminServiceStub(made.channel)
            told: set[str] = set()
            found = await group.FindCoordinator(
                group_pb2.FindCoordinatorRequest(coordinator_keys=["g"]), **made.known()
            )
            told.add(found.holdfast.leader_hint)
            told.add(f"{found.coordinators[0].host}:{found.coordinators[0].port}")
            told.add((await group.JoinGroup(join(), **made.known())).holdfast.leader_hint)
            stale = admin_pb2.DescribeGroupsRequest(
                groups=["g"], holdfast=extras_pb2.RequestExtras(stale_ok=True)
            )
            told.add((await admin.DescribeGroups(stale, **made.known())).holdfast.leader_hint)
            error = await refusal(
                admin.DescribeGroups(admin_pb2.DescribeGroupsRequest(groups=["g"]), **made.known())
            )
            told.add(trailing(error).get("holdfast-leader", ""))
            assert TOLD["127.0.0.1:2"] in (error.details() or "")
            session = group.Session(**made.known())
            await session.write(
                group_pb2.SessionRequest(
                    calls=[group_pb2.SessionCall(number=1, heartbeat=_beat("g"))]
                )
            )
            answer: Any = await session.read()
            told.add(answer.answers[0].heartbeat.holdfast.leader_hint)
            beats = group.HeartbeatStream(**made.known())
            await beats.write(group_pb2.HeartbeatBatch(batch=1, requests=[_beat("g")]))
            beaten: Any = await beats.read()
            told.add(beaten.responses[0].holdfast.leader_hint)
            assert told == {TOLD["127.0.0.1:2"]}
            cluster = await admin.DescribeCluster(
                admin_pb2.DescribeClusterRequest(), **made.known()
            )
            assert [node.client_address for node in cluster.nodes] == [*TOLD.values()]
            # and those with certificates, or without TLS, the others, as before
            seen = await made.node.group.FindCoordinator(group_pb2.FindCoordinatorRequest())
            assert seen.holdfast.leader_hint == "127.0.0.1:2"
            session.cancel()
            beats.cancel()

    asyncio.run(run())


def test_a_stream_ends_when_its_token_does(tmp_path: Path) -> None:
    """A token is looked at when a stream begins, and a stream would outlive it for ever."""

    async def run() -> None:
        async with world(tmp_path) as made:
            session = GroupServiceStub(made.channel).Session(**made.known(lasts=1))
            watch = LogServiceStub(made.channel).Watch(WatchRequest(), **made.known(lasts=1))
            for stream in (session, watch):
                error = await refusal(_to_its_end(stream))
                assert error.code() is UNAUTHENTICATED
                assert "expired" in (error.details() or "")
                assert trailing(error)["holdfast-outcome"] == "unknown"
                assert "holdfast-retry" not in trailing(error)
            good = await AdminServiceStub(made.channel).DescribeCluster(
                admin_pb2.DescribeClusterRequest(), **made.known()
            )
            assert good.cluster_id

    asyncio.run(run())


async def _to_its_end(stream: Any) -> None:  # noqa: ANN401 - of gRPC, untyped
    while await stream.read() is not grpc.aio.EOF:
        pass
    raise grpc.aio.AioRpcError(
        await stream.code(),
        await stream.initial_metadata(),
        await stream.trailing_metadata(),
        await stream.details(),
    )


def test_a_key_that_is_withdrawn_ends_the_streams_of_its_tokens_alone(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as made:
            stub = GroupServiceStub(made.channel)
            lost, kept = (stub.Session(**made.known(by=by)) for by in ("first", "second"))
            await lost.initial_metadata()
            await kept.initial_metadata()
            made.withdraw("first")
            error = await refusal(_to_its_end(lost))
            assert (error.code(), "withdrawn" in (error.details() or "")) == (UNAUTHENTICATED, True)
            await kept.write(
                group_pb2.SessionRequest(
                    calls=[group_pb2.SessionCall(number=7, heartbeat=_beat("g"))]
                )
            )
            answer: Any = await kept.read()
            assert answer.answers[0].number == 7
            kept.cancel()

    asyncio.run(run())


def test_a_client_of_ours_renews_a_token_that_is_refused(tmp_path: Path) -> None:
    """Its program goes on: a token that ends is daily life."""

    async def run() -> None:
        async with world(tmp_path) as made:
            tokens = iter([made.issuer.token(lasts=-60), made.issuer.token(lasts=-60)])
            given: list[str] = []

            def give() -> str:
                given.append(next(tokens, "") or made.issuer.token())
                return given[-1]

            tls = Tls(made.ca, token=give)
            async with Admin(made.node.token_address, credentials=tls) as admin:
                await admin.create_topics({"t": 1})
            assert len(given) == 3

    asyncio.run(run())


def test_a_client_of_ours_does_not_try_again_what_no_token_of_its_can_do(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as made:
            tls = Tls(made.ca, token=lambda: made.issuer.token(aud="another"))
            async with Admin(made.node.token_address, credentials=tls) as admin:
                with pytest.raises(Forbidden, match="the token is for others"):
                    await admin.list_topics()

    asyncio.run(run())


def test_refusals_are_told_in_the_log_once_and_then_counted(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """Strangers must not fill the disk; an operator must see that tokens are refused."""

    async def run() -> None:
        async with world(tmp_path) as made:
            ask = AdminServiceStub(made.channel).DescribeCluster
            for _ in range(5):
                await refusal(ask(admin_pb2.DescribeClusterRequest(), **made.known(aud="other")))

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())
    assert caplog.text.count("the token is for others") == 1

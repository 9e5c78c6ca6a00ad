"""A node that serves with TLS, a world of own and foreign things, and callers of every role.

Own things are those that a caller's grants cover by a prefix; foreign ones are there beside them.
A caller of a kind has its role on that kind of things alone, so that no grant helps by chance.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import grpc
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from google.protobuf import json_format

from harness.issuer import Issuer, token_settings
from holdfast.coordinator.model.access import Acl, Revocation, administrator
from holdfast.coordinator.model.consumer_events import (
    AssignmentRequested,
    EpochRaised,
    MemberSubscribed,
)
from holdfast.coordinator.model.events import (
    AccessModeChanged,
    AclsChanged,
    GroupCreated,
    LevelRaised,
    OffsetCommitted,
    OffsetsCommitted,
    RebalanceStarted,
    RevocationsChanged,
    TopicsCreated,
    TopicSize,
)
from holdfast.coordinator.model.member_profile import ClientAssignor, ConsumerProfile
from holdfast.raft.fingerprints import fingerprints_in
from holdfast.server.security import certificates
from holdfast.server.security.token_keys import keys_in
from holdfast.server.security.tokens import Tokens
from holdfast.v1 import (
    admin_pb2_grpc,
    backup_pb2_grpc,
    group_pb2_grpc,
    log_pb2_grpc,
    offset_pb2_grpc,
)
from unit.coordinator.desk import member
from unit.server.nodes import served

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from google.protobuf.message import Message

    from holdfast.server.config.node_config import Tls
    from unit.server.nodes import Served

ROLES: Final = ("none", "reader", "member", "operator", "admin")
FOREIGN: Final = "foreign"
"""No answer to a caller without a grant on it holds this word, unless the request did."""
NAMES: Final = {
    "group": ("own-g", "foreign-g", "foreign-absent-g"),
    "topic": ("own-t", "foreign-t", "foreign-absent-t"),
    "cluster": ("", "", ""),
    "": ("own-g", "foreign-g", "foreign-absent-g"),
}
"""By kind: a caller's own thing; a foreign one; and a foreign one that does not exist."""
WANTS: Final = "wants-"
"""Before a topic: the group whose member wants it, and whose members all may be who have a role on
topics."""
REFUSALS: Final = frozenset({29, 30, 31})
SECONDS: Final = 20.0
_STUBS: Final[tuple[Any, ...]] = (
    group_pb2_grpc.GroupServiceStub,
    offset_pb2_grpc.OffsetServiceStub,
    admin_pb2_grpc.AdminServiceStub,
    log_pb2_grpc.LogServiceStub,
    backup_pb2_grpc.BackupServiceStub,
)


class Outcome(NamedTuple):
    """How a call ended for its caller."""

    codes: frozenset[int]
    """Kafka's codes anywhere in the answer."""
    status: grpc.StatusCode
    text: str
    """All that was answered, as text."""

    @property
    def refused(self) -> bool:
        """Whether it was refused for want of a right."""
        return bool(self.codes & REFUSALS) or self.status is grpc.StatusCode.PERMISSION_DENIED


class World:
    """The node, and a channel for each caller."""

    def __init__(
        self, node: Served, authority: certificates.Authority, folder: Path, issuer: Issuer
    ) -> None:
        self.node, self.authority, self._folder, self.issuer = node, authority, folder, issuer
        self._channels: dict[str, grpc.aio.Channel] = {}

    def certificate(self, name: str, uri: str) -> Tls:
        """Issue a client's certificate by the node's own authority."""
        return certificates.issue(self.authority, self._folder / name, name, uri, [])

    def channel(self, kind: str, role: str) -> grpc.aio.Channel:
        """Return the channel of the caller with a role on one kind of things."""
        name = f"{kind}-{role}"
        if name not in self._channels:
            tls = self.certificate(name, principal(kind, role))
            self._channels[name] = self.connected(tls)
        return self._channels[name]

    def at_token_port(self) -> grpc.aio.Channel:
        """Open a channel to the port for tokens."""
        root = (self._folder / "node" / "ca.pem").read_bytes()
        credentials = grpc.ssl_channel_credentials(root)
        return grpc.aio.secure_channel(self.node.token_address, credentials)

    def connected(self, tls: Tls | None, ca: Path | None = None) -> grpc.aio.Channel:
        """Open a channel with a certificate, or with none."""
        root = (ca or self._folder / "node" / "ca.pem").read_bytes()
        credentials = (
            grpc.ssl_channel_credentials(root)
            if tls is None
            else grpc.ssl_channel_credentials(
                root, tls.key.read_bytes(), tls.certificate.read_bytes()
            )
        )
        return grpc.aio.secure_channel(self.node.secure_address, credentials)

    def revoked(self, uri: str) -> Tls:
        """Issue a certificate that the cluster has revoked since."""
        tls = self.certificate("revoked", uri)
        fingerprint = fingerprints_in(tls.certificate.read_bytes())[0]
        self.node.replica.slip_in("", RevocationsChanged((Revocation(fingerprint),), ()))
        return tls

    async def close(self) -> None:
        for channel in self._channels.values():
            await channel.close()


def principal(kind: str, role: str) -> str:
    return f"holdfast://client/{kind}-{role}"


def grants() -> tuple[Acl, ...]:
    """Each caller's role on its own things, and a grant of somebody else on foreign ones."""
    made = [administrator("somebody"), Acl("somebody", "member", "group", "foreign*")]
    for role in ROLES[1:]:
        made.append(Acl(principal("cluster", role), role, "cluster", ""))
        made += [Acl(principal(kind, role), role, kind, "own*") for kind in ("group", "topic")]
        made.append(Acl(principal("topic", role), "operator", "group", "own*"))
        made.append(Acl(principal("group", role), "reader", "topic", "own*"))
    made.append(Acl(principal("topic", "none"), "operator", "group", "own*"))
    made += [Acl(principal("topic", role), "member", "group", f"{WANTS}*") for role in ROLES]
    return tuple(made)


@asynccontextmanager
async def world(folder: Path, mode: str = "deny") -> AsyncIterator[World]:
    """A world in which the grants above are in force."""
    authority = certificates.make_authority("c")
    tls = certificates.issue(
        authority, folder / "node", "node-1", "holdfast://c/node/node-1", ["127.0.0.1"]
    )
    issuer = Issuer()
    tokens = Tokens(token_settings(), keys_in(issuer.key_set())[0])
    async with served(tls=tls, tokens=tokens) as node:
        node.replica.slip_in(
            "",
            LevelRaised(2),
            TopicsCreated((TopicSize("own-t", 1), TopicSize("foreign-t", 1))),
            AclsChanged(grants(), ()),
            AccessModeChanged(mode),
        )
        for kind in ("own", "foreign"):
            offset = OffsetCommitted(f"{kind}-t", 0, 5, -1, f"{kind}-metadata")
            opened = RebalanceStarted("first", "", initial=True, timeout_ms=600_000)
            joined = member(f"{kind}-m", f"{kind}-t")
            node.replica.slip_in(
                f"{kind}-g", GroupCreated(), OffsetsCommitted((offset,)), opened, joined
            )
        for topic in NAMES["topic"]:
            wanting = (_wanting(topic), EpochRaised(2, "joined", b""))
            asked = AssignmentRequested("m", 2, _ASSIGNOR.name)
            node.replica.slip_in(f"{WANTS}{topic}", GroupCreated("consumer"), *wanting, asked)
        made = World(node, authority, folder, issuer)
        try:
            yield made
        finally:
            await made.close()


def _wanting(topic: str) -> MemberSubscribed:
    """The first join of a member that wants a topic, whether there is one or not.

    It can run an assignor, so it may ask for all that such a one needs.
    """
    profile = ConsumerProfile(topics=(topic,), client_assignors=(_ASSIGNOR,))
    return MemberSubscribed("m", None, profile, joined=True)


_ASSIGNOR: Final = ClientAssignor("own", 0, 0, 0, 0, b"")


async def call(channel: grpc.aio.Channel, cell: str, request: Message, token: str = "") -> Outcome:
    """Make one call, unary or on a stream, and tell how it ended; `token`: what it shows."""
    more: dict[str, Any] = {"timeout": SECONDS}
    if token:
        more["metadata"] = (("authorization", f"Bearer {token}"),)
    service, _, method = cell.partition("/")[0].partition(".")
    stub = next(s for s in _STUBS if s.__name__ == f"{service}Stub")(channel)
    run = getattr(stub, method)
    try:
        if method in {"HeartbeatStream", "Session", "OffsetCommitStream"}:
            answer = await _first(run(**more), request)
        elif method in {"Watch", "ReadBackup"}:
            answer = await _first(run(request, **more))
        else:
            answer = await run(request, **more)
    except grpc.aio.AioRpcError as error:
        return Outcome(frozenset(), error.code(), error.details() or "")
    if isinstance(answer, Outcome):
        return answer
    text = json_format.MessageToJson(answer, preserving_proto_field_name=True)
    return Outcome(frozenset(_codes(answer)), grpc.StatusCode.OK, text)


async def _first(stream: Any, request: Message | None = None) -> Any:  # noqa: ANN401 - any message
    """Return the first message of a stream, or how it ended without one."""
    if request is not None:
        await stream.write(request)
    answer = await stream.read()
    if answer is grpc.aio.EOF:
        return Outcome(frozenset(), await stream.code(), await stream.details())
    stream.cancel()
    return answer


def _codes(message: Message) -> set[int]:
    """Collect the error codes anywhere in a message."""
    found: set[int] = set()
    for field, value in message.ListFields():
        if field.name == "error_code":
            found.add(value)
        elif field.message_type is not None:
            for each in value if field.is_repeated else (value,):
                found |= _codes(each)
    return found


def expired(world: World) -> Tls:
    """A certificate of the node's own authority that was valid until yesterday."""
    tls = world.certificate("expired", "holdfast://client/expired")
    authority, end = world.authority, datetime.now(UTC) - timedelta(days=1)
    key = serialization.load_pem_private_key(tls.key.read_bytes(), None).public_key()
    assert isinstance(key, ec.EllipticCurvePublicKey)
    made = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "expired")]))
        .issuer_name(authority.certificate.subject)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(end - timedelta(days=2))
        .not_valid_after(end)
        .sign(authority.key, hashes.SHA256())
    )
    tls.certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    return tls

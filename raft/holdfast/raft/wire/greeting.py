"""What two nodes tell each other first on a connection: who speaks to whom, and in which versions.

Each tells a range of peer protocols; if no protocol is in both ranges, they refuse each other with
a sentence. Nothing else follows from the ranges yet: one protocol is all that a node speaks. A
greeting is strict in what it must hold, but fields that a later version adds are skipped: otherwise
no two versions could meet. Pure; `transport` carries the bytes.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from google.protobuf.message import DecodeError

from holdfast.raft.wire import peer_pb2 as pb
from holdfast.raft.wire.bounds import bad, bound, name, text

BYTES_MAX: Final = 4096
"""Bounds a greeting and its answer, because their senders are not known yet."""
REFUSAL_CHARACTERS: Final = 1_000
"""The longest sentence that is told to one who is refused; as UTF-8 it fits into `BYTES_MAX`."""


class Versions(NamedTuple):
    """What a node speaks: peer protocols from `oldest` to `newest`, and one schema of entries.

    A protocol is raised with every change of what travels between nodes: frames, messages, calls,
    greeting. 1 is Holdfast 0.1.0, which told none; 2 had neither protobuf nor a range; up to 3 the
    nodes spoke over gRPC.
    """

    oldest: int
    newest: int
    entries: int
    """The schema of entries and snapshots; 0: it was not told."""

    def __str__(self) -> str:
        """Format the versions for sentences."""
        one = self.oldest == self.newest
        which = f" {self.newest}" if one else f"s {self.oldest} to {self.newest}"
        entries = f" with entries of schema {self.entries}" if self.entries else ""
        return f"speaks peer protocol{which}{entries}"


OVER_GRPC: Final = Versions(1, 3, 0)
"""What one may speak who dials this node by gRPC; which, only its greeting would tell."""
ENTRY_SCHEMA: Final = 2
"""What is told as the schema of entries. It stays as it is: nodes of the time before there were
levels refuse any other."""
OURS: Final = Versions(4, 4, ENTRY_SCHEMA)


class Greeting(NamedTuple):
    """Who speaks to whom in which cluster; `addressee` is the node that the sender means."""

    cluster_id: str
    sender: str
    addressee: str
    versions: Versions = OURS
    method: str = ""
    """What the dialler connects for: a call beside the log; empty for the messages of the log."""


def encode_greeting(greeting: Greeting) -> bytes:
    """Return the bytes of a greeting."""
    return _message(greeting).SerializeToString()


def encode_answer(greeting: Greeting) -> bytes:
    """Return the bytes with which an acceptor takes a dialler in."""
    return pb.Answer(greeting=_message(greeting)).SerializeToString()


def encode_refusal(why: str) -> bytes:
    """Return the bytes with which an acceptor refuses a dialler; a long sentence is cut."""
    return pb.Answer(refusal=why[:REFUSAL_CHARACTERS]).SerializeToString()


def _message(greeting: Greeting) -> pb.Greeting:
    versions = greeting.versions
    return pb.Greeting(
        cluster_id=greeting.cluster_id,
        sender=greeting.sender,
        addressee=greeting.addressee,
        version_min=versions.oldest,
        version_max=versions.newest,
        entry_schema=versions.entries,
        method=greeting.method,
    )


def decode_greeting(data: bytes) -> Greeting:
    """Return a greeting that is complete and within its bounds; raises BadMessage for all else."""
    _measured(data)
    try:
        return _checked(pb.Greeting.FromString(data))
    except DecodeError:
        bad("a greeting that is no protobuf")


def decode_answer(data: bytes) -> Greeting | str:
    """Return the acceptor's greeting, or why it refuses; raises BadMessage for all else."""
    _measured(data)
    try:
        told = pb.Answer.FromString(data)
    except DecodeError:
        bad("an answer that is no protobuf")
    if told.HasField("greeting") == bool(told.refusal):
        bad("an answer that does not say whether it accepts")
    return told.refusal[:REFUSAL_CHARACTERS] or _checked(told.greeting)


def _measured(data: bytes) -> None:
    if len(data) > BYTES_MAX:
        bad(f"a greeting of {len(data)} bytes exceeds {BYTES_MAX}")


def _checked(told: pb.Greeting) -> Greeting:
    bound(told.version_min | told.version_max | told.entry_schema)
    if not 1 <= told.version_min <= told.version_max or not told.entry_schema:
        bad("a greeting without versions")
    versions = Versions(told.version_min, told.version_max, told.entry_schema)
    names = name(told.cluster_id), name(told.sender), name(told.addressee)
    return Greeting(*names, versions, text(told.method))


def common_protocol(one: Versions, other: Versions) -> int | None:
    """Return the newest peer protocol that both speak; both nodes come to the same one.

    Today its callers only ask whether there is one: no message depends on which.
    """
    newest = min(one.newest, other.newest)
    return newest if newest >= max(one.oldest, other.oldest) else None


def version_problem(own: str, other: str, theirs: Versions) -> str:
    """Say why the node `other` with these versions cannot run together with `own`; empty if it can.

    Entries have no range, because every follower must be able to read what a leader writes.
    """
    if common_protocol(OURS, theirs) is not None and theirs.entries == OURS.entries:
        return ""
    return (
        f"node {other!r} {theirs}; node {own!r} {OURS}. Nodes of unlike versions do not run "
        "together: stop all nodes, install one version of Holdfast everywhere, and start them "
        "again. Their directories stay as they are: a newer version opens what an older one wrote"
    )

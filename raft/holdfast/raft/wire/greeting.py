"""What two nodes tell each other before the first frame: who speaks to whom, and in which versions.

Each tells a range of peer protocols; if no protocol is in both ranges, they refuse each other with
a sentence. Nothing else follows from the ranges yet: one protocol is all that a node speaks. A
greeting is strict in what it must hold, but fields that a later version adds are skipped: otherwise
no two versions could meet. Pure; `transport` carries the bytes.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from google.protobuf.message import DecodeError

from holdfast.raft.wire import peer_pb2 as pb
from holdfast.raft.wire.bounds import bad, bound, name
from holdfast.storage.codec.event_codec import SCHEMA_VERSION

BYTES_MAX: Final = 4096
"""Bounds a greeting, because its sender is not known yet."""


class Versions(NamedTuple):
    """What a node speaks: peer protocols from `oldest` to `newest`, and one schema of entries.

    A protocol is raised with every change of what travels between nodes: frames, messages, calls,
    greeting. 1 is Holdfast 0.1.0, which told none; 2 had neither protobuf nor a range.
    """

    oldest: int
    newest: int
    entries: int
    """The schema of entries and snapshots; 0: it was not told."""

    def __str__(self) -> str:
        """Format the versions for sentences."""
        if self == TELLS_NONE:
            return "tells no version, as Holdfast 0.1.0 does"
        one = self.oldest == self.newest
        which = f" {self.newest}" if one else f"s {self.oldest} to {self.newest}"
        entries = f" with entries of schema {self.entries}" if self.entries else ""
        return f"speaks peer protocol{which}{entries}"


TELLS_NONE: Final = Versions(1, 1, 0)
BEFORE_RANGES: Final = Versions(2, 2, 0)
OURS: Final = Versions(3, 3, SCHEMA_VERSION)


class Greeting(NamedTuple):
    """Who speaks to whom in which cluster; `addressee` is the node that the sender means."""

    cluster_id: str
    sender: str
    addressee: str
    versions: Versions = OURS


def encode_greeting(greeting: Greeting) -> bytes:
    """Return the bytes of a greeting."""
    versions = greeting.versions
    return pb.Greeting(
        cluster_id=greeting.cluster_id,
        sender=greeting.sender,
        addressee=greeting.addressee,
        version_min=versions.oldest,
        version_max=versions.newest,
        entry_schema=versions.entries,
    ).SerializeToString()


def decode_greeting(data: bytes) -> Greeting:
    """Return a greeting that is complete and within its bounds; raises BadMessage for all else."""
    if len(data) > BYTES_MAX:
        bad(f"a greeting of {len(data)} bytes exceeds {BYTES_MAX}")
    try:
        told = pb.Greeting.FromString(data)
    except DecodeError:
        bad("a greeting that is no protobuf")
    bound(told.version_min | told.version_max | told.entry_schema)
    if not 1 <= told.version_min <= told.version_max or not told.entry_schema:
        bad("a greeting without versions")
    versions = Versions(told.version_min, told.version_max, told.entry_schema)
    return Greeting(name(told.cluster_id), name(told.sender), name(told.addressee), versions)


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

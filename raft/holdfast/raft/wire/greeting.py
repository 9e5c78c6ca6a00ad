"""What two nodes tell each other first on a connection: who speaks to whom, and in which versions.

Each tells a range of peer protocols, and the levels at which it can run. They speak the newest
protocol that is in both ranges. They refuse each other, with a sentence, if there is none, or no
level at which both can run, or if one of them cannot run at the level in force. A greeting is
strict in what it must hold, but fields that a later version adds are skipped: otherwise no two
versions could meet. Pure; `transport` carries the bytes.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from google.protobuf.message import DecodeError

from holdfast.raft.api import UNTOLD, Build
from holdfast.raft.wire import peer_pb2 as pb
from holdfast.raft.wire.bounds import bad, bound, name, text

BYTES_MAX: Final = 4096
"""Bounds a greeting and its answer, because their senders are not known yet."""
REFUSAL_CHARACTERS: Final = 1_000
"""The longest sentence that is told to one who is refused; as UTF-8 it fits into `BYTES_MAX`."""


class Versions(NamedTuple):
    """What a node speaks: peer protocols from `oldest` to `newest`; and what it runs.

    A protocol is raised with every change of what travels between nodes: frames, messages, calls,
    greeting. 1 is Holdfast 0.1.0, which told none; 2 had neither protobuf nor a range; up to 3 the
    nodes spoke over gRPC.
    """

    oldest: int
    newest: int
    entries: int
    """`ENTRY_SCHEMA`, or the schema of entries of a node before there were levels; 0: not told."""
    build: Build = UNTOLD
    level: int = 0
    """The level in force, as far as the node knows; 0: it knows of none."""

    def __str__(self) -> str:
        """Format the versions for sentences."""
        one = self.oldest == self.newest
        which = f" {self.newest}" if one else f"s {self.oldest} to {self.newest}"
        entries = f" with entries of schema {self.entries}" if self.entries else ""
        return f"speaks peer protocol{which}{entries}"


OVER_GRPC: Final = Versions(1, 3, 0)
"""What one may speak who dials this node by gRPC; which, only its greeting would tell."""
ENTRY_SCHEMA: Final = 2
"""What all versions tell that have levels: nodes from before there were levels refuse another."""
OURS: Final = Versions(4, 4, ENTRY_SCHEMA)
"""The protocols of this version. Each node adds its build, and the level that it knows."""


class Greeting(NamedTuple):
    """Who speaks to whom in which cluster; `addressee` is the node that the sender means."""

    cluster_id: str
    sender: str
    addressee: str
    versions: Versions = OURS
    method: str = ""
    """What the dialler connects for: a call beside the log; empty for the messages of the log."""
    recovery_number: int = 0
    """From which restore the sender's disk comes (S13); versions before 0.2 tell none."""
    blank: bool = False
    """The sender's disk holds nothing yet."""
    peer_address: str = ""
    """Where the sender is reached by other nodes, host:port; versions before 0.2 tell none."""


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
        level_min=_unless_first(versions.build.oldest),
        level_max=_unless_first(versions.build.newest),
        level=versions.level,
        release=versions.build.release,
        recovery_number=greeting.recovery_number,
        blank=greeting.blank,
        peer_address=greeting.peer_address,
    )


def _unless_first(level: int) -> int:
    """Return a level as it is told: the first one is left out, so that it has one form."""
    return 0 if level == 1 else level


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
    bound(told.level_min | told.level_max | told.level | told.recovery_number)
    if not 1 <= told.version_min <= told.version_max or not told.entry_schema:
        bad("a greeting without versions")
    build = Build(text(told.release), told.level_min or 1, told.level_max or 1)
    if build.oldest > build.newest:
        bad("a greeting whose levels are the wrong way round")
    versions = Versions(told.version_min, told.version_max, told.entry_schema, build, told.level)
    names = name(told.cluster_id), name(told.sender), name(told.addressee)
    lineage = told.recovery_number, told.blank
    return Greeting(*names, versions, text(told.method), *lineage, text(told.peer_address))


def common_protocol(one: Versions, other: Versions) -> int | None:
    """Return the newest peer protocol that both speak; both nodes come to the same one."""
    newest = min(one.newest, other.newest)
    return newest if newest >= max(one.oldest, other.oldest) else None


def version_problem(own: str, other: str, theirs: Versions, ours: Versions = OURS) -> str:
    """Say why the node `other` with these versions cannot run with `own`; empty if it can."""
    if common_protocol(ours, theirs) is not None and theirs.entries == ours.entries:
        return _level_problem((own, ours), (other, theirs))
    return (
        f"node {other!r} {theirs}; node {own!r} {ours}. Nodes of unlike versions do not run "
        "together: stop all nodes, install one version of Holdfast everywhere, and start them "
        "again. Their directories stay as they are: a newer version opens what an older one wrote"
    )


def _level_problem(*nodes: tuple[str, Versions]) -> str:
    """Say which of two nodes cannot run at the level that they have to run at; empty if none.

    That is the level in force, which one of them may not know yet; without one, any that is common.
    """
    builds = [versions.build for _, versions in nodes]
    level = max(versions.level for _, versions in nodes)
    if not level:
        newest = min(build.newest for build in builds)
        if all(build.can_run_at(newest) for build in builds):
            return ""
        told = " and ".join(f"node {name!r} {_runs(each.build)}" for name, each in nodes)
        return f"{told}: they have no level in common. Install one version of Holdfast on both"
    unable = [(name, each.build) for name, each in nodes if not each.build.can_run_at(level)]
    if not unable:
        return ""
    name, build = unable[0]
    meant = (
        "Install a newer version of Holdfast on it: one that can run at this level. Its directory "
        "stays as it is"
        if build.newest < level
        else "Install an older version of Holdfast on it, which can run at this level, and end "
        "that version's upgrade first"
    )
    return f"node {name!r} {_runs(build)}, and level {level} is in force. {meant}"


def _runs(build: Build) -> str:
    """Say what a build is and at which levels it can run."""
    release = f"Holdfast {build.release}" if build.release else "a version of Holdfast"
    if build.oldest == build.newest:
        return f"runs {release}, which can run at level {build.newest} alone"
    return f"runs {release}, which can run at levels {build.oldest} to {build.newest}"

"""What two nodes tell each other before the first frame: which protocol and which entries.

Nodes of unlike versions do not run together: each side refuses the other, with a sentence that says
what to do. Pure: it reads and writes gRPC metadata as pairs of strings.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from holdfast.storage.codec.event_codec import SCHEMA_VERSION

PROTOCOL_VERSION: Final = 3
"""Raised with every change of what travels between nodes: frames, messages, calls, metadata.

1 is Holdfast 0.1.0, which told none; 2 had frames without protobuf.
"""
PROTOCOL_KEY: Final = "holdfast-peer-protocol"
ENTRIES_KEY: Final = "holdfast-entry-schema"
_SHOWN: Final = 20
"""Characters of what another node told that may reach a sentence."""

Metadata = Iterable[tuple[str, str | bytes]]


class PeerVersion(NamedTuple):
    """The peer protocol, and the schema of entries and snapshots; as told, so any text."""

    protocol: str
    entries: str

    def __str__(self) -> str:
        """For sentences."""
        if not self.protocol:
            return "tells no version, as Holdfast 0.1.0 does"
        return f"speaks peer protocol {self.protocol} with entries of schema {self.entries}"


OURS: Final = PeerVersion(str(PROTOCOL_VERSION), str(SCHEMA_VERSION))


def told() -> tuple[tuple[str, str], ...]:
    """This node's version, as metadata."""
    return ((PROTOCOL_KEY, OURS.protocol), (ENTRIES_KEY, OURS.entries))


def version_problem(own: str, other: str, metadata: Metadata) -> str:
    """Why the node `other`, which told this, cannot run together with `own`; empty: it can."""
    values = {key: value for key, value in metadata if isinstance(value, str)}
    theirs = PeerVersion(
        values.get(PROTOCOL_KEY, "")[:_SHOWN], values.get(ENTRIES_KEY, "")[:_SHOWN]
    )
    if theirs == OURS:
        return ""
    return (
        f"node {other!r} {theirs}; node {own!r} {OURS}. Nodes of unlike versions do not run "
        "together: stop all nodes, install one version of Holdfast everywhere, and start them "
        "again. Their directories stay as they are: a newer version opens what an older one wrote"
    )

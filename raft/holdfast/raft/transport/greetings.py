"""Greetings (`wire.greeting`) as metadata of gRPC calls, and whether a node means who greets it.

Up to peer protocol 2 a greeting was a few texts. A dialler adds them to its greeting, so that such
a node refuses it for its version and not as nobody; they are read only to name who sent them in the
refusal. Knows metadata as pairs, and neither connections nor certificates.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from urllib.parse import quote, unquote

from holdfast.raft.api import BadMessage
from holdfast.raft.wire.greeting import (
    BEFORE_RANGES,
    TELLS_NONE,
    Greeting,
    decode_greeting,
    encode_greeting,
    version_problem,
)

GREETING_KEY: Final = "holdfast-greeting-bin"
"""gRPC carries bytes under a key that ends like this."""
CLUSTER_KEY: Final = "holdfast-cluster"
NODE_KEY: Final = "holdfast-node"
TO_KEY: Final = "holdfast-to"
PROTOCOL_KEY: Final = "holdfast-peer-protocol"
ENTRIES_KEY: Final = "holdfast-entry-schema"
_SHOWN_CHARACTERS: Final = 100

Metadata = Iterable[tuple[str, str | bytes]]


def dialler_metadata(greeting: Greeting) -> tuple[tuple[str, str | bytes], ...]:
    """Return the metadata of a dialler's call; texts are encoded, as metadata hold ASCII alone."""
    texts = (
        (CLUSTER_KEY, greeting.cluster_id),
        (NODE_KEY, greeting.sender),
        (TO_KEY, greeting.addressee),
        (PROTOCOL_KEY, str(greeting.versions.newest)),
        (ENTRIES_KEY, str(greeting.versions.entries)),
    )
    return (*answer_metadata(greeting), *((key, quote(text, safe="")) for key, text in texts))


def answer_metadata(greeting: Greeting) -> tuple[tuple[str, str | bytes], ...]:
    """Return the metadata with which the answer to an accepted call begins."""
    return ((GREETING_KEY, encode_greeting(greeting)),)


def greeting_in(metadata: Metadata) -> Greeting:
    """Read the greeting, new or old, from metadata; raises BadMessage if it is damaged."""
    told = {str(key): value for key, value in metadata}
    greeting = told.get(GREETING_KEY)
    return decode_greeting(greeting) if isinstance(greeting, bytes) else _old_greeting(told)


def _old_greeting(told: dict[str, str | bytes]) -> Greeting:
    """Read the texts of an old greeting; all are empty if a stranger sent none."""
    cluster, node, to = (unquote(str(told.get(k, ""))) for k in (CLUSTER_KEY, NODE_KEY, TO_KEY))
    return Greeting(cluster, node, to, BEFORE_RANGES if PROTOCOL_KEY in told else TELLS_NONE)


def dialler_problem(told: Greeting, cluster_id: str, node: str) -> str:
    """Say why the dialler means another node; empty if it means this one."""
    if told.addressee != node:
        return f"this is node {node!r}, not {shown(told.addressee)}: a peer address is wrong"
    if told.cluster_id != cluster_id:
        return f"this node belongs to cluster {cluster_id!r}, not to {shown(told.cluster_id)}"
    return ""


def acceptor_problem(sent: Greeting, metadata: Metadata) -> str:
    """Say why the acceptor is not the addressee or its version does not fit; empty if it is."""
    try:
        told = greeting_in(metadata)
    except BadMessage as error:
        return f"who answers for node {sent.addressee!r} greets wrongly: {error}"
    if problem := version_problem(sent.sender, sent.addressee, told.versions):
        return problem
    if told[:3] == (sent.cluster_id, sent.addressee, sent.sender):
        return ""
    return (
        f"who answers for node {sent.addressee!r} says that it is {shown(told.sender)} of cluster "
        f"{shown(told.cluster_id)}, and speaks to {shown(told.addressee)}: a peer address is wrong"
    )


def shown(told: str, most: int = _SHOWN_CHARACTERS) -> str:
    """Quote the first `most` characters of a stranger's text, without control characters."""
    return repr(told[:most])

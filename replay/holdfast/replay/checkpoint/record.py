"""What a verified run writes down: up to where, which files with which SHA-256, and to what it led.

Segments whose files have equal bytes on several nodes are described once. Of what a node held it is
noted how its files looked to the file system, so that the next run can tell cheaply that nobody
touched them. Values and JSON; knows no folder and no Spark.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import astuple, replace
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final, NamedTuple

from holdfast.coordinator.model.ids import Position
from holdfast.coordinator.model.text import truncate
from holdfast.storage.codec.event_codec import STATE_FORM
from holdfast.storage.segments.segments import Manifest

FORMAT: Final = 1
"""The form that this version writes and reads; a later one has another number."""


class OtherRecord(ValueError):
    """A record of a format that this version does not know."""


class Content(NamedTuple):
    """One content of a segment: as some nodes held it."""

    manifest: str
    """Digest of what a manifest says, without the names of its node and of its writer."""
    files: Mapping[str, str]
    """SHA-256 of each data file, by its name."""
    read_ms: int
    """When a run read these files last, in wall time."""


class Held(NamedTuple):
    """A segment of one node."""

    content: int
    """Which of the segment's contents it had."""
    look: str
    """How its files looked to the file system: sizes and times."""


class Verified(NamedTuple):
    """All that one run, and those that it trusted, have verified."""

    cluster_id: str
    writer: str
    verified_ms: int
    """When the run ended, in wall time."""
    last: Position
    """The end of a sealed segment on each node; nothing behind it is in the checkpoint."""
    log_time_ms: int
    records: int
    chain: bytes
    """Head of the chain over all records up to there."""
    digest: int
    recovery_number: int
    """Of the state there (S13): which branch of the log it is."""
    state: str
    """The folder of its parts."""
    parts: Mapping[str, str]
    """SHA-256 of each file of the state, by its name."""
    contents: Mapping[str, tuple[Content, ...]]
    """By the name of the segment."""
    nodes: Mapping[str, Mapping[str, Held]]
    """By the name of the node, then of the segment."""

    @property
    def files(self) -> int:
        """How many files of nodes were verified."""
        held = [(name, each) for node in self.nodes.values() for name, each in node.items()]
        return sum(len(self.contents[name][each.content].files) for name, each in held)


def writer() -> str:
    """Return how this version names itself in what it writes down, and the form of its states.

    What a version that is not released yet stores may change; then its messages do.
    """
    form = sha256(STATE_FORM).hexdigest()[:8]
    try:
        return f"holdfast {version('holdfast')} ({form})"
    except PackageNotFoundError:
        return f"holdfast ({form})"


def manifest_digest(manifest: Manifest) -> str:
    """Digest what a manifest says of its segment, which names neither its node nor its writer."""
    return sha256(repr(astuple(replace(manifest, node_id="", writer=""))).encode()).hexdigest()


def written(record: Verified) -> bytes:
    """Encode a record, with a sum over all of it."""
    plain = {
        **record._asdict(),
        "chain": record.chain.hex(),
        "digest": f"{record.digest:016x}",
        "contents": {
            name: [each._asdict() for each in several] for name, several in record.contents.items()
        },
    }
    return json.dumps({"format": FORMAT, "sum": _sum(plain), **plain}, indent=1).encode()


def parsed(content: bytes) -> Verified:
    """Decode a record. Raises OtherRecord for one of another format, ValueError for a damaged one.

    The sum finds accidents; whoever rewrites the record makes a new one.
    """
    try:
        plain = json.loads(content)
        form = plain.pop("format")
        told = plain.pop("sum") if form == FORMAT else ""
        record = _record(plain) if told == _sum(plain) else None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(truncate(f"{type(error).__name__}: {error}")) from error
    if form != FORMAT:
        raise OtherRecord(f"format {truncate(str(form))}, and this version reads {FORMAT}")
    if record is None:
        raise ValueError("its sum is another one")
    return record


def _record(plain: dict[str, Any]) -> Verified:
    plain["last"] = Position(*map(int, plain["last"]))
    plain["chain"], plain["digest"] = bytes.fromhex(plain["chain"]), int(plain["digest"], 16)
    plain["contents"] = {
        name: tuple(Content(**each) for each in several)
        for name, several in plain["contents"].items()
    }
    plain["nodes"] = {
        node: {name: Held(int(each[0]), str(each[1])) for name, each in segments.items()}
        for node, segments in plain["nodes"].items()
    }
    record = Verified(**plain)
    for held in record.nodes.values():
        for name, each in held.items():
            if not 0 <= each.content < len(record.contents[name]):
                raise ValueError(f"a node holds a segment {name} that none has")
    return record


def _sum(plain: dict[str, Any]) -> str:
    return sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()

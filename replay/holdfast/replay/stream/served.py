"""The log as the nodes of a running cluster serve it, in pages behind a position.

Any node that answers is asked. If it ends, or has not applied yet what another one has told, the
next node goes on: positions are the same on all of them. What cannot go on is raised as one
sentence. Knows the client; no Spark, no file of a log.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple, Self, TypeVar

import pyarrow as pa
from google.protobuf.message import Message

from holdfast.client import HoldfastError, OutcomeUnknown, Tls, Unavailable
from holdfast.client._rpc.caller import END_GRACE_MS, Caller
from holdfast.client._rpc.connect_errors import IN_CODE, Wording
from holdfast.client.errors import InvalidArgument
from holdfast.client.sync.threads import THREAD
from holdfast.coordinator.model.ids import Position
from holdfast.replay.findings import WrongUse, place_of
from holdfast.replay.read.log_rows import ENTRY_LAST
from holdfast.replay.stream.endings import TailStopped, Unreached, one_line, shown
from holdfast.storage.codec.event_codec import CodecError, decode_record, split_chain
from holdfast.storage.segments.columns import SCHEMA
from holdfast.storage.segments.segments import typed_columns
from holdfast.v1 import admin_pb2, extras_pb2, log_pb2
from holdfast.v1.errors_pb2 import ERROR_CODE_NONE
from holdfast.v1.events_pb2 import EventRecord

CALL_MS: Final = 10_000
"""How long a node may take to answer; one that does not is left for the next."""
ROUNDS: Final = 3
"""How often that may be before the stream ends; with more nodes once for each."""
UNCONNECTED_MS: Final = 3_000
"""How long a start waits while no node accepts a connection."""
LAG_S: Final = 30.0
"""How long nodes may lack what one of them has told."""
_PAUSE_S: Final = 0.2
_TLS: Final = ("ca", "certificate", "key", "token")

AnswerT = TypeVar("AnswerT", bound=Message)


class Nodes(NamedTuple):
    """The nodes of one cluster, and how to connect with them."""

    addresses: tuple[str, ...]
    tls: Tls | None = None
    """None: an insecure loopback."""
    wording: Wording = IN_CODE
    """How users give `tls` to the program that shows the errors; told to no other process."""

    def option(self) -> str:
        """Write it for a process on another machine, where files have the same names.

        Raises WrongUse for a token that is not in a file.
        """
        if self.tls is not None and callable(self.tls.token):
            raise WrongUse("Spark's workers cannot ask this process for a token: give a file of it")
        found = {name: getattr(self.tls, name, None) for name in _TLS}
        # Links stay: who renews certificates may turn one to a new folder.
        files = {name: str(Path(path).absolute()) for name, path in found.items() if path}
        return json.dumps({"addresses": self.addresses, "tls": files or None})

    @classmethod
    def read(cls, option: str) -> Nodes:
        """Read what `option` wrote."""
        told = json.loads(option)
        return cls(tuple(told["addresses"]), Tls(**told["tls"]) if told["tls"] else None)


class Page(NamedTuple):
    """Records in the order of the log."""

    records: list[EventRecord]
    last: Position
    """There are no others up to here."""
    end: bool
    """Whether the node had nothing behind that."""


class LogReader:
    """Reads the log of a cluster; to be closed. All of a process share one event loop."""

    def __init__(self, nodes: Nodes, *, starts: bool = False) -> None:
        """Connect with nobody yet. Raises ValueError for files that cannot be used for TLS.

        `starts`: somebody waits to hear whether a node can be reached at all.
        """
        self._rounds = 1 if starts else max(ROUNDS, len(nodes.addresses))
        self._caller = THREAD.make(
            lambda: Caller(
                nodes.addresses,
                credentials=nodes.tls,
                connect_timeout_ms=UNCONNECTED_MS if starts else None,
                wording=nodes.wording,
            )
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        THREAD.run(self._caller.close(grace_ms=END_GRACE_MS))

    def cluster_id(self) -> str:
        """Return the id of the cluster that answers."""
        request = admin_pb2.DescribeClusterRequest()
        return self._ask(request, admin_pb2.DescribeClusterResponse).cluster_id

    def newest(self) -> Position:
        """Return the end of all that was committed before this call: the leader knows it.

        Raises TailStopped as `check_right` does.
        """
        return Position(self._right(stale_ok=False).applied_index, ENTRY_LAST)

    def check_reaches(self, place: Position, newest: Position | None) -> None:
        """Raise TailStopped if the log ends before a position that was read: it is another now.

        `newest`: where it ends, if that was asked already.
        """
        newest = newest or self.newest()
        if newest.index < place.index:
            raise TailStopped(
                f"the log of this cluster ends at {shown(newest)}, and was read up to "
                f"{shown(place)} before: it was restored from a backup, and has other records "
                "since; begin again with another --out"
            )

    def check_right(self) -> None:
        """Raise TailStopped if the node that answers leaves out what we may not read."""
        self._right(stale_ok=True)

    def reach(self, after: Position, most: int, end: Position | None) -> Position:
        """Return where a batch behind a position ends; that position if there is nothing for one.

        `most`: how many records it may have. `end`: it does not go beyond.
        """
        place, count = after, 0
        while count < most and (end is None or place < end):
            page = self._page(place, most - count)
            count += sum(end is None or _place(each) <= end for each in page.records)
            place = page.last if end is None else min(page.last, end)
            if page.end:
                break
        return place if count else after

    def between(self, after: Position, last: Position) -> Iterator[list[EventRecord]]:
        """Yield the records behind a position up to one that a node has told.

        Raises TailStopped if no node has it in time.
        """
        place, moved_s = after, time.monotonic()
        while place < last:
            page = self._page(place)
            if page.last > place:
                if found := [each for each in page.records if _place(each) <= last]:
                    yield found
                moved_s = time.monotonic()  # whoever takes the records may be slow
            elif time.monotonic() - moved_s > LAG_S:
                raise TailStopped(_lost(place, last))
            else:  # this node lags behind the one that told
                time.sleep(_PAUSE_S)
                self._caller.endpoints.skip()
            place = max(place, page.last)

    def _page(self, after: Position, most: int = 0) -> Page:
        """Read a page behind a position; 0: as much as the node likes to send."""
        index, ordinal = _behind(after)
        start = extras_pb2.Position(index=index, ordinal=ordinal)
        request = log_pb2.ReadEventsRequest(start=start, events_max=most)
        try:
            found = self._call(request, log_pb2.ReadEventsResponse)
        except InvalidArgument as error:
            raise TailStopped(self._cut(after)) from error
        except HoldfastError as error:
            raise self._ended(error) from error
        last = _before(Position(found.next.index, found.next.ordinal))
        return Page(list(found.records), max(last, after), found.end)

    def _cut(self, after: Position) -> str:
        """Say that no node has the records behind a position any more."""
        asked = log_pb2.ReadEventsRequest(events_max=1)
        first = self._ask(asked, log_pb2.ReadEventsResponse).first
        begins = place_of(Position(first.index, first.ordinal))
        return (
            f"the records behind {shown(after)} are on no node any more, whose history begins at "
            f"{begins}: follow up to there an archive or a backup that has them, with --node-dir "
            "and the same --out; then the cluster again"
        )

    def _right(self, *, stale_ok: bool) -> extras_pb2.ResponseExtras:
        """Ask for something that only those are told who may read everything."""
        extras = extras_pb2.RequestExtras(stale_ok=stale_ok)
        request = admin_pb2.DescribeRevocationsRequest(holdfast=extras)
        told = self._ask(request, admin_pb2.DescribeRevocationsResponse)
        if told.error_code != ERROR_CODE_NONE:
            raise TailStopped(
                "we may not read the whole log, and nodes would leave out unseen what we may not: "
                f"{one_line(told.holdfast.message)}"
            )
        return told.holdfast

    def _ask(self, request: Message, answer: type[AnswerT]) -> AnswerT:
        try:
            return self._call(request, answer)
        except HoldfastError as error:
            raise self._ended(error) from error

    def _call(self, request: Message, answer: type[AnswerT]) -> AnswerT:
        """Call a node; the next one if it hangs, as one does that is frozen."""
        for _ in range(self._rounds - 1):
            try:
                return self._run(request, answer)
            except (Unavailable, OutcomeUnknown):  # the caller has moved on to the next node
                continue
        return self._run(request, answer)

    def _run(self, request: Message, answer: type[AnswerT]) -> AnswerT:
        return THREAD.run(self._caller.call(request, answer, timeout_ms=CALL_MS))

    def _ended(self, error: HoldfastError) -> Exception:
        """Say why a call had no answer."""
        told = one_line(error).removesuffix(".")
        if isinstance(error, Unavailable | OutcomeUnknown):
            end = "" if told.endswith("?") else "."
            return Unreached(
                f"no node served the log; last: {told}{end} Start the tail again once one does: "
                "it goes on where it was"
            )
        return TailStopped(told)


def batch_of(records: Sequence[EventRecord]) -> pa.RecordBatch:
    """Return records as a segment has them. Raises TailStopped for one that cannot be read."""
    return pa.RecordBatch.from_pylist([_row(each) for each in records], schema=SCHEMA)


def _row(message: EventRecord) -> dict[str, Any]:
    index, ordinal = place = _place(message)
    try:
        payload, chain = split_chain(message.SerializeToString(deterministic=True))
        told = typed_columns(decode_record(payload))
    except CodecError as error:
        raise TailStopped(
            f"the record at {place_of(place)} cannot be read: {error.what}"
        ) from error
    return {"idx": index, "ordinal": ordinal, **told, "payload": payload, "chain": chain}


def _lost(place: Position, last: Position) -> str:
    return (
        f"no node has the log behind {shown(place)}, though one had told it up to {shown(last)}: "
        "are all addresses of one cluster, and was it restored from a backup? Then begin again "
        "with another --out"
    )


def _place(record: EventRecord) -> Position:
    return Position(record.position.index, record.position.ordinal)


def _behind(place: Position) -> Position:
    """Return the first position behind one."""
    index, ordinal = place
    return Position(index + 1, 0) if ordinal == ENTRY_LAST else Position(index, ordinal + 1)


def _before(place: Position) -> Position:
    """Return the last position before one."""
    index, ordinal = place
    return Position(index, ordinal - 1) if ordinal else Position(index - 1, ENTRY_LAST)

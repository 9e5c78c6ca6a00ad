"""The cluster as a command sees it: calls that end with an answer, or end the command.

The calls are the client's: it walks the nodes, follows the leader and repeats what may be repeated
(S5). This module adds what a command needs: how long it waits, and the sentence and exit code with
which it ends. Knows no server and reads no directory of a node.
"""

from __future__ import annotations

import asyncio
import logging
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from holdfast.cli.ending import UNKNOWN, UNREACHED, fail
from holdfast.cli.target import Target
from holdfast.client import HoldfastError, OutcomeUnknown, Unavailable
from holdfast.client._rpc import backup, event_log
from holdfast.client._rpc.caller import END_GRACE_MS, Caller
from holdfast.client._rpc.connect_errors import Wording
from holdfast.client._rpc.tls_files import check_files, date_flaw
from holdfast.v1 import admin_pb2, extras_pb2
from holdfast.v1 import errors_pb2 as e

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine, Iterator
    from types import TracebackType

    from google.protobuf.message import Message

    from holdfast.client import Tls
    from holdfast.v1.backup_pb2 import BeginBackupResponse, ReadBackupRequest
    from holdfast.v1.extras_pb2 import Position
    from holdfast.v1.log_pb2 import ReadEventsResponse, WatchResponse

CALL_MS: Final = 15_000
"""How long a command goes from node to node before it gives up."""
UNCONNECTED_MS: Final = 3_000
"""How long it goes on while no node accepts a connection: as long as a restart may take."""
ANSWERED_MAX: Final = 4
"""How often in a row a node may have no room, or fail inside, before that ends the command: an
overload of the moment passes within these attempts, a full disk does not."""
COPY_MS: Final = 600_000
"""How long a node may take to copy its state for a backup."""
LOOK_MS: Final = 2_000
"""How long a single node may take to report its state."""
PAGE_SIZE: Final = 1_000
"""Groups or topics that are asked for at a time."""

_FOLDER: Final = "a local cluster's is the folder client in its directory"
_NAME: Final = (
    f"--tls names a directory of ca.pem, certificate.pem and key.pem ({_FOLDER}), and cluster.json "
    "such files"
)
AT_A_TERMINAL: Final = Wording(
    give="give --tls DIR, a directory of ca.pem, certificate.pem and key.pem",
    leave_out="leave --tls out",
    files=f" ({_FOLDER})",
    absent=". Is the cluster running, and are these its addresses?",
)

AnswerT = TypeVar("AnswerT", bound="Message")
Item = TypeVar("Item")


class Cluster:
    """`with Cluster(target) as cluster`: a failure inside ends the command with a sentence."""

    def __init__(self, target: Target, runner: asyncio.Runner | None = None) -> None:
        """`runner`: runs the calls and is not closed here; None: a new one, for this cluster."""
        self._target = target
        self._runner, self._is_shared = runner or asyncio.Runner(), runner is not None
        self.last_failure = ""
        """Why the last node that gave no answer of its own gave none; a sentence."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if "_caller" in self.__dict__:
            self._runner.run(self._caller.close(grace_ms=END_GRACE_MS))
        if not self._is_shared:
            self._runner.close()

    def call(self, request: Message, answer: type[AnswerT]) -> AnswerT:
        """Ask the leader for something that changes nothing."""
        return self._run(self._caller.call(request, answer, timeout_ms=CALL_MS), reads=True)

    def pages(self, request: Any, answer: type[AnswerT]) -> AnswerT:  # noqa: ANN401 - ListGroups, ListTopics
        """Call for a list of any length, and merge its pages."""
        request.holdfast.page_size = PAGE_SIZE
        whole: Any = self.call(request, answer)
        while token := whole.holdfast.next_page_token:
            request.holdfast.page_token = token
            whole.holdfast.ClearField("next_page_token")
            whole.MergeFrom(self.call(request, answer))
        found: AnswerT = whole
        return found

    def change(self, request: Any, answer: type[AnswerT]) -> AnswerT:  # noqa: ANN401 - any mutating request
        """Have the leader change something exactly once, however often the call is sent (S15)."""
        request.holdfast.request_id = self._run(self._caller.new_request_id(CALL_MS), reads=True)
        return self._run(self._caller.call(request, answer, timeout_ms=CALL_MS), reads=False)

    def order(self, request: Message, answer: type[AnswerT]) -> AnswerT:
        """Have the leader change something for which it remembers no request id.

        The call is not repeated if it may have been carried out (S5).
        """
        return self._run(self._caller.call(request, answer, timeout_ms=CALL_MS), reads=False)

    def on_every_node(
        self, request: Message, answer: type[AnswerT]
    ) -> list[tuple[str, AnswerT | None]]:
        """Ask each node; return its address and answer, None if it does not answer."""
        each = self._run(self._caller.ask_each(request, answer, timeout_ms=LOOK_MS), reads=True)
        for failed in each.values():
            if isinstance(failed, HoldfastError):
                self.last_failure = _words(failed)
        return [
            (address, None if isinstance(one, HoldfastError) else one)
            for address, one in each.items()
        ]

    def on_node(self, address: str, request: Message, answer: type[AnswerT]) -> AnswerT | None:
        """Ask the node at an address, given or not; None if it does not answer."""
        one = self._run(self._caller.ask_one(address, request, timeout_ms=LOOK_MS), reads=True)
        if isinstance(one, HoldfastError):
            self.last_failure = _words(one)
        return one if isinstance(one, answer) else None

    def knows_group(self, group_id: str) -> bool:
        """Return whether any node knows the group, by a stale read: it works without a leader."""
        stale = extras_pb2.RequestExtras(stale_ok=True)
        asked = admin_pb2.DescribeGroupsRequest(groups=[group_id], holdfast=stale)
        answers = self.on_every_node(asked, admin_pb2.DescribeGroupsResponse)
        found = [one.groups[0].error_code for _, one in answers if one and one.groups]
        return not found or any(code != e.ERROR_CODE_GROUP_ID_NOT_FOUND for code in found)

    def only(self, address: str) -> Cluster:
        """Return one of its nodes as a cluster of its own, to ask that node and no other.

        Both use one event loop: gRPC may give the end of a call to its loop after the call, and the
        node's would be closed by then.
        """
        target = self._target
        node = Target((address,), target.tls, (target.name_of(address),))
        return Cluster(node, self._runner)

    def name_of(self, address: str) -> str:
        """Return a node's name by cluster.json, "-" if it is unknown."""
        return self._target.name_of(address)

    def read(self, start: Position | None, group: str | None) -> Iterator[ReadEventsResponse]:
        """Read pages of the event log, from a position (None: the first held) to its end now."""
        pages = event_log.pages(self._caller, start, group, timeout_ms=CALL_MS)
        return self._each(pages)

    def watch(self, start: Position | None, group: str | None) -> Iterator[WatchResponse]:
        """Follow events from a position (None: from now) on, as they are applied, without end."""
        return self._each(event_log.watch(self._caller, start, group, timeout_ms=CALL_MS))

    def begin_backup(self, copy_id: str) -> BeginBackupResponse:
        """Have the node copy its state, or find a copy again; for a target of one node."""
        made = backup.begin(self._caller, copy_id, timeout_ms=COPY_MS)
        return self._run(made, reads=True, limit_ms=COPY_MS)

    def read_backup(self, request: ReadBackupRequest) -> Iterator[bytes]:
        """Read a file of a copy from an offset on."""
        return self._each(backup.read(self._caller, request, timeout_ms=CALL_MS), "the backup")

    def end_backup(self, copy_id: str) -> None:
        """Let the node drop its copy."""
        self._run(backup.end(self._caller, copy_id, timeout_ms=CALL_MS), reads=True)

    def _each(self, items: AsyncIterator[Item], what: str = "the log") -> Iterator[Item]:
        while (item := self._run(_next(items), reads=True, what=what)) is not None:
            yield item

    def _run(
        self,
        call: Coroutine[Any, Any, Item],
        *,
        reads: bool,
        what: str = "the call",
        limit_ms: int = 0,
    ) -> Item:
        """Run a call and return its result; a failure ends the command with its outcome.

        `limit_ms`: how long the call may take; 0: as long as most.
        """
        try:
            return self._runner.run(call)
        except HoldfastError as error:
            told = error.details.removesuffix(".") or _words(error)
            if isinstance(error, OutcomeUnknown) and not reads:
                fail(f"{told}. Whether it happened is unknown: look, then repeat", UNKNOWN)
            if isinstance(error, Unavailable | OutcomeUnknown) and not error.answered:
                limit = UNCONNECTED_MS if self._caller.nobody_connects else limit_ms or CALL_MS
                seconds = f"{limit / 1000:g} s"
                why = self._by_node() or f"; last: {_words(error)}"
                fail(f"no node served {what} within {seconds}{why}", UNREACHED)
            fail(told)

    def _by_node(self) -> str:
        """Write the reason of each node where they differ; the last alone would mislead."""
        reasons = self._caller.failures
        if len(set(reasons.values())) < 2:  # noqa: PLR2004 - to differ takes two
            return ""
        told = "; ".join(f"{address}: {why}" for address, why in reasons.items())
        return f": {told}. A majority of the nodes must run and reach each other"

    @cached_property
    def _caller(self) -> Caller:
        """Make the caller at its first use, so that wrong arguments are reported before."""
        # What the client logs for programs is told to people in sentences that end the command.
        logging.getLogger("holdfast.client").addHandler(logging.NullHandler())
        tls = self._target.tls
        if tls:
            check_tls(tls)
        return Caller(
            self._target.addresses,
            credentials=tls,
            connect_timeout_ms=UNCONNECTED_MS,
            answered_max=ANSWERED_MAX,
            wording=AT_A_TERMINAL,
        )


def check_tls(tls: Tls) -> None:
    """End the command before any call if a file is unusable or a certificate is invalid."""
    try:
        check_files(tls)
        flaw = date_flaw(tls)
    except ValueError as error:
        fail(f"{str(error).removeprefix('credentials: ').removesuffix('.')}. {_NAME}")
    if flaw:
        fail(flaw)


async def _next(items: AsyncIterator[Item]) -> Item | None:
    return await anext(items, None)


def _words(error: HoldfastError) -> str:
    return str(error).removesuffix(".")


def code_name(code: int) -> str:
    """Return Kafka's name of an error code."""
    return e.ErrorCode.Name(code).removeprefix("ERROR_CODE_")  # type: ignore[arg-type]  # a plain number will do

"""Proposals: bound to a term (S1), answered or handed on as unknown when the leadership ends (S5).

Commands are a kind byte and, for proposals, the term in which the payload was decided, or, for a
change of nodes, the membership (S25). These three kinds are all there is: the stock engine's own
changes of membership, code versions and pickled calls do not exist here (E-8).
A follower refuses instead of forwarding (E-9).
"""

from __future__ import annotations

import itertools
import queue
import struct
import threading
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.raft.api import EntryTooLarge, Overloaded, ProposalId, Refused
from holdfast.raft.core.context import Switch
from holdfast.raft.core.log import NO_OP
from holdfast.raft.membership import ENTRY_KIND, Change, ChangeRefused, HandsOver

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.raft.core.context import Context

RAW = 0x10
_HEAD = struct.Struct(">BQ")
HEAD_BYTES = _HEAD.size


def pack_command(payload: bytes, term: int) -> bytes:
    """Return the log's form of a payload that was decided in `term`."""
    return _HEAD.pack(RAW, term) + payload


def unpack_command(command: bytes) -> tuple[int, bytes] | None:
    """Return (term it was decided in, payload), or None for an entry of the engine itself.

    Raises ValueError for a kind that this version does not write.
    """
    if command == NO_OP or command[:1] == ENTRY_KIND:
        return None
    if len(command) < HEAD_BYTES or command[0] != RAW:
        raise ValueError(f"an entry of kind {command[:1].hex()} was not written by this version")
    return _HEAD.unpack_from(command)[1], command[HEAD_BYTES:]


@dataclass(frozen=True, slots=True)
class Proposal:
    """A proposal that waits for its entry; the engine carries it as the command's callback."""

    id: ProposalId
    size: int
    change: Change | None = None
    """A change of nodes: its entry is made when it is stamped, of the membership then in force."""


class Proposals:
    """The command queue that the engine drains, and the ledger of what it stamped."""

    def __init__(self, ctx: Context) -> None:
        """Start with an empty queue."""
        self._ctx = ctx
        self._queue: deque[tuple[bytes, Proposal]] = deque()
        self._queued_bytes = self._stamped_bytes = 0
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._orphans: dict[int, tuple[int, ProposalId]] = {}
        self.closed_term = 0
        self.judge_change: Callable[[Change], bytes]
        """Makes the entry of a change, or raises ChangeRefused. Set by who makes the concerns."""

    def put(self, payload: bytes, term: int) -> ProposalId:
        """Queue a payload. Raises Overloaded or EntryTooLarge: nothing was proposed. Any thread."""
        settings = self._ctx.settings
        size = len(payload) + HEAD_BYTES
        if size > settings.entry_bytes_max:
            raise EntryTooLarge(size, settings.entry_bytes_max)
        with self._lock:
            full = len(self._queue) >= settings.proposals_max
            if full or self._queued_bytes + size > settings.pending_bytes_max:
                raise Overloaded("the queue of proposals is full: nothing was proposed, try later")
            proposal = Proposal(ProposalId(term, next(self._numbers)), size)
            self._queue.append((pack_command(payload, term), proposal))
            self._queued_bytes += size
        return proposal.id

    def put_change(self, change: Change, term: int) -> ProposalId:
        """Queue a change of nodes (S25). Raises Overloaded: nothing was proposed. Any thread."""
        with self._lock:
            if len(self._queue) >= self._ctx.settings.proposals_max:
                raise Overloaded("the queue of proposals is full: nothing was proposed, try later")
            proposal = Proposal(ProposalId(term, next(self._numbers)), 0, change)
            self._queue.append((b"", proposal))
        return proposal.id

    def __len__(self) -> int:
        """Count the proposals that are queued and not yet in the log."""
        return len(self._queue)

    @property
    def stamped_bytes(self) -> int:
        """How many bytes of own proposals are in the log and not handed over."""
        return self._stamped_bytes

    # -- the engine's side: a queue that refuses at the moment of stamping ------

    def get_nowait(self) -> tuple[bytes, Proposal]:
        """Return the next command that may enter the log now; raises queue.Empty.

        The engine stamps the term in the same call in the same thread, so that nothing can come
        between this check and the stamp (S1).
        """
        while True:
            if self._ctx.state.is_leader and self._is_backed_up():
                raise queue.Empty
            with self._lock:
                if not self._queue:
                    raise queue.Empty
                command, proposal = self._queue.popleft()
                self._queued_bytes -= proposal.size
            refused = self._refusal(proposal)
            if refused is None and proposal.change is not None:
                command, refused = self._judged(proposal.id, proposal.change)
            if refused is None:
                self._stamped_bytes += proposal.size
                return command, proposal
            self._ctx.ready.apply.append(refused)

    def _judged(self, proposal: ProposalId, change: Change) -> tuple[bytes, Refused | None]:
        try:
            return self.judge_change(change), None
        except HandsOver as refused:
            return b"", Refused(proposal, str(refused), refused.heir)
        except ChangeRefused as refused:
            return b"", Refused(proposal, str(refused), self._ctx.state.leader, by_rule=True)

    def _is_backed_up(self) -> bool:
        """Whether more entries would only fill memory: too much in the log is not handed over."""
        state, settings = self._ctx.state, self._ctx.settings
        waiting = self._ctx.log.last_index - state.handed_index
        return waiting > settings.proposals_max or self._stamped_bytes > settings.pending_bytes_max

    def _refusal(self, proposal: Proposal) -> Refused | None:
        state, term = self._ctx.state, proposal.id.term
        if not state.is_leader:
            return Refused(proposal.id, "this node does not lead", state.leader)
        if self.closed_term == state.term:
            return Refused(proposal.id, "this node is handing over its leadership", state.leader)
        if term != state.term and self._ctx.on(Switch.S1_DROP):
            why = f"decided in term {term}, the term is {state.term}"
            return Refused(proposal.id, why, state.leader)
        return None

    # -- the ledger ---------------------------------------------------------------

    def take(self, index: int, term: int) -> ProposalId | None:
        """Return the own proposal that became this entry; forget what waited in vain."""
        found = None
        for stamped_term, item in self._ctx.state.waiting_at(index):
            if isinstance(item, Proposal):
                self._stamped_bytes -= item.size
                found = item.id if stamped_term == term else found
        orphan = self._orphans.pop(index, None)
        if orphan and orphan[0] == term:
            found = orphan[1]
        return found

    def forget_older(self, term: int) -> None:
        """Forget proposals below `term`, of which an entry is applied: they never will be (S5)."""
        if self._orphans:
            self._orphans = {i: o for i, o in self._orphans.items() if o[0] >= term}

    def abandon(self) -> tuple[ProposalId, ...]:
        """Return, at step-down, the own proposals in the log, whose outcome is now unknown (S5)."""
        unknown = []
        for index, term, item in self._ctx.state.waiting_all():
            if isinstance(item, Proposal):
                unknown.append(item.id)
                self._orphans[index] = (term, item.id)
        self._stamped_bytes = 0
        return tuple(unknown)

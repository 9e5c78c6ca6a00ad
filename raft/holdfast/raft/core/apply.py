"""The apply loop: committed entries go into the FIFO of S4, and nothing is executed here (E-6).

What the engine calls applied is only put into the queue. The log may be cut, the state read and the
leader called ready up to what the consumer has applied to the state, which it reports by `evolved`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.raft.api import Applied, Installed, LeaderSeen, RoleChanged
from holdfast.raft.core.context import Switch
from holdfast.raft.core.proposals import unpack_command

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.raft.core.apply_queue import Room
    from holdfast.raft.core.context import Context
    from holdfast.raft.core.lease import Lease, Probes
    from holdfast.raft.core.proposals import Proposals

ENTRY_OVERHEAD = 128
"""About how much memory an entry takes beside its payload, in bytes."""


class Delivery:
    """Hands over committed entries and changes of the role, in their order."""

    def __init__(
        self,
        ctx: Context,
        room: Callable[[], Room],
        proposals: Proposals,
        lease: Lease,
        probes: Probes,
    ) -> None:
        """Start after the entries that the state already holds. `room`: what the queue has now."""
        self._ctx, self._room, self._proposals = ctx, room, proposals
        self._lease, self._probes = lease, probes
        self.evolved_index = 0
        self._cut_asked = self._cut_seen = 0
        self._hint: tuple[str | None, int] = (None, 0)

    def deliver(self) -> None:
        """Hand over committed entries while there is room (S4: delivery waits, ticks do not).

        All that was handed over before is in the queue by now: each tick begins with a completion.
        """
        state, room = self._ctx.state, self._room()
        while state.handed_index < state.commit_index and self._may_push(room):
            index = state.handed_index + 1
            command, _, term = self._ctx.log.at(index)
            item = self._item(index, term, command)
            room = room.less(len(item.payload))
            self._ctx.ready.apply.append(item)
            self._proposals.forget_older(term)
            state.handed_index = index
            if state.is_leader and index == state.own_no_op and self._ctx.on(Switch.S4_ORDER):
                self._ctx.ready.apply.append(RoleChanged("leader", state.term, state.node_id))
        self._note_ready()
        self._probes.settle()

    def _may_push(self, room: Room) -> bool:
        return bool(room) or not self._ctx.on(Switch.S4_BOUND)

    @property
    def may_go_on(self) -> bool:
        """Whether the consumer has made room for entries that found none."""
        state = self._ctx.state
        return state.handed_index < state.commit_index and bool(self._room())

    def _item(self, index: int, term: int, command: bytes) -> Applied:
        proposal = self._proposals.take(index, term)
        unpacked = unpack_command(command)
        if unpacked is None:
            return Applied(index, term, b"", proposal)
        decided, payload = unpacked
        if decided != term and self._ctx.on(Switch.S1_SKIP):
            return Applied(index, term, b"", proposal, skipped=True)
        return Applied(index, term, payload, proposal)

    def _note_ready(self) -> None:
        """Note the term as ready to be served once the own no-op is applied (S10 d)."""
        state = self._ctx.state
        no_op = state.own_no_op
        if state.is_leader and no_op is not None and self.evolved_index >= no_op:
            self._lease.ready_term = state.term

    def began_to_lead(self) -> None:
        """Do nothing; without S4, tell the role here, before the entries that it depends on."""
        if not self._ctx.on(Switch.S4_ORDER):
            self._ctx.ready.apply.append(
                RoleChanged("leader", self._ctx.state.term, self._ctx.state.node_id)
            )

    def stepped_down(self) -> None:
        """Put the role change among the items where it happens, not at the end of a tick (S4).

        The next completion hands it over before it asks the disk. Nothing waits there before it:
        what a leader handed over earlier was pushed before the messages were read.
        """
        unknown = self._proposals.abandon() if self._ctx.on(Switch.S5_UNKNOWN) else ()
        state = self._ctx.state
        self._ctx.ready.apply.append(RoleChanged("follower", state.term, None, unknown))
        self._probes.fail_all()

    def hint_leader(self) -> None:
        """Tell the consumer of a new leader, for redirects."""
        now = (self._ctx.state.leader, self._ctx.state.term)
        if now != self._hint:
            self._hint = now
            self._ctx.ready.apply.append(LeaderSeen(*now))

    def installed(self, index: int, term: int) -> None:
        """Put an installed snapshot into the FIFO, in order with the entries."""
        self._ctx.state.handed_index = index
        self._ctx.ready.apply.append(Installed(index, term))
        self._proposals.forget_older(term)

    # -- cutting ---------------------------------------------------------------------

    def ask_cut(self, index: int) -> None:
        """Allow a cut up to this index, which a durable snapshot covers. Any thread."""
        self._cut_asked = max(self._cut_asked, index)

    def cut(self, floor: int | None) -> None:
        """Cut the log as far as asked and applied, but keep a tail for peers that lag a little.

        `floor`: the index of a snapshot on its way to a peer, which needs the entries after it.
        """
        log = self._ctx.log
        limit = self.evolved_index if self._ctx.on(Switch.S4_CUT) else self._ctx.state.handed_index
        index = min(self._cut_asked, limit, floor if floor is not None else limit)
        if index > self._cut_seen:
            self._cut_seen = index
            log.cut_to(self._keep_tail(index))

    def _keep_tail(self, index: int) -> int:
        log, left = self._ctx.log, self._ctx.settings.trailing_bytes
        while index > log.anchor_index:
            left -= len(log.at(index)[0]) + ENTRY_OVERHEAD
            if left < 0:
                break
            index -= 1
        return index

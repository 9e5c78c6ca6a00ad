"""The leader's side of a change of nodes: what it must know before it appends one (S25 b to d).

What a change makes of the membership, and what the membership alone forbids, `membership` says. A
change that passes here is in force with its entry, and is refused or repeated no more.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from holdfast.raft.core.context import Switch
from holdfast.raft.core.membership.voters import Voters
from holdfast.raft.membership import (
    ENTRY_KIND,
    Change,
    ChangeRefused,
    HandsOver,
    Membership,
    Promote,
    Remove,
    after,
)

if TYPE_CHECKING:
    from holdfast.raft.core.context import Context
    from holdfast.raft.core.leadership_transfer import LeadershipTransfer
    from holdfast.raft.core.membership.foreign_disks import ForeignDisks
    from holdfast.raft.core.membership.in_force import MembershipInForce
    from holdfast.raft.core.membership.rebuild import RebuildingDisks
    from holdfast.raft.core.replication import Replication

_FOREIGN: Final = (
    "the disk of node {name!r} has founded another cluster, because it was started with "
    "--bootstrap, and has a log of its own. It was sent nothing. If the node is to join this "
    "cluster, stop it, keep its data directory elsewhere if anything in it is wanted, and start it "
    "with an empty one and without --bootstrap"
)


class MembershipChanges:
    """Tick thread only."""

    def __init__(
        self,
        ctx: Context,
        in_force: MembershipInForce,
        replication: Replication,
        rebuilding: RebuildingDisks,
        foreign: ForeignDisks,
        transfer: LeadershipTransfer,
    ) -> None:
        """Judge by what replication knows of the peers."""
        self._foreign = foreign
        self._ctx, self._in_force = ctx, in_force
        self._replication, self._rebuilding, self._transfer = replication, rebuilding, transfer

    def began_to_lead(self) -> None:
        """Say on the log which nodes go on, if only notes beside the logs of some do (ADR 43).

        It is a majority's own membership, so nothing changes; it is appended before this leader can
        admit a disk that rebuilds (S19), so no such disk has a vote before it has this.
        """
        if self._in_force.is_of_a_survivor:
            self._ctx.log.append(self._entry(self._in_force.now), self._ctx.state.term)

    def command_for(self, change: Change) -> bytes:
        """Return the entry that carries the change out, to be appended at once.

        Raises ChangeRefused. Only a leader may ask.
        """
        self._check_nothing_is_open()
        then = after(self._in_force.now, change)
        match change:
            case Promote(name):
                self._check_caught_up(name)
                self._check_connected(then, f"node {name!r} cannot become a voter")
            case Remove(name) if name in self._ctx.state.voters.all:
                self._check_connected(then, f"node {name!r} cannot be removed")
                self._check_hands_over(name)
            case _:
                pass
        return self._entry(then)

    def _entry(self, then: Membership) -> bytes:
        """Return the entry that brings a membership into force, with the disks that founded.

        Those that come later cannot know them from anywhere else (ADR 43).
        """
        return ENTRY_KIND + replace(then, founders=self._foreign.founders).encode().encode()

    def _check_nothing_is_open(self) -> None:
        """Refuse a change while another is open, or before an entry of this term is committed."""
        state, ctx = self._ctx.state, self._ctx
        if ctx.on(Switch.S25_ONE) and self._in_force.index > state.commit_index:
            raise ChangeRefused(
                "another change of nodes is not committed yet: nothing was changed. Ask again when "
                "it is"
            )
        if ctx.on(Switch.S25_OWN_ENTRY) and not state.commit_index >= (state.own_no_op or 0):
            raise ChangeRefused(
                f"this node leads since a moment ago, and has committed nothing in term "
                f"{state.term}: nothing was changed. Ask again in a moment"
            )

    def _check_caught_up(self, name: str) -> None:
        """Refuse to promote a node that is far behind: commits would wait for it (thesis 4.2.1)."""
        if self._ctx.on(Switch.S25_CAUGHT_UP) and (lacks := self.what_lacks(name)):
            raise ChangeRefused(lacks)

    def what_lacks(self, name: str) -> str:
        """Say why a learner has not caught up; empty if it has. Only a leader knows."""
        progress, settings = self._replication.progress.get(name), self._ctx.settings
        if self._foreign.is_foreign(name):
            return _FOREIGN.format(name=name)
        answers = progress and progress.heard_at >= self._ctx.now() - settings.election_max
        if not progress or not answers or not self._ctx.state.is_connected(name):
            return self._not_connected(name)
        if self._rebuilding.is_new(name):
            return (
                f"the disk of node {name!r} has not got all that it must hold before its vote "
                "counts. Ask again when it has"
            )
        if not progress.round.is_done(self._ctx.now(), settings.election_min):
            behind = self._ctx.log.last_index - progress.acked
            return (
                f"node {name!r} is {behind} entries behind, and took longer than an election for "
                "the last ones. Ask again when it has caught up"
            )
        return ""

    def _not_connected(self, name: str) -> str:
        """Say that a node is not reached, and where: it may run elsewhere, and reach this one."""
        at = next((node.peer_address for node in self._in_force.now.nodes if node.name == name), "")
        return (
            f"node {name!r} is not connected to the leader, so it cannot become a voter: nobody of "
            f"that name answers at {at or 'its peer address'}, where the other nodes look for it. "
            "It counts for nothing meanwhile. Is it running, and are its name and its peer address "
            "right? A wrong address is corrected by adding the node again with the right one"
        )

    def _check_connected(self, then: Membership, what: str) -> None:
        """Refuse what would leave no connected majority of voters: nothing could be committed."""
        voters = Voters.of(self._ctx.node_id, then.voter_names)
        connected = self._connected()
        if self._ctx.on(Switch.S25_CONNECTED) and not voters.have_majority(connected):
            away = ", ".join(sorted(voters.all - connected)) or "none"
            raise ChangeRefused(
                f"{what}: of the voters that there would be, {', '.join(then.voter_names)}, too "
                f"few are connected to commit anything (away: {away}). Bring these back first"
            )

    def _connected(self) -> frozenset[str]:
        """Return this node, and those that have answered of late on a disk that counts (S19)."""
        since = self._ctx.now() - self._ctx.settings.election_max
        progress = self._replication.progress.items()
        heard = (p for p, each in progress if each.heard_at >= since)
        return frozenset({self._ctx.node_id, *(p for p in heard if not self._rebuilding.is_new(p))})

    def _check_hands_over(self, name: str) -> None:
        """Hand the leadership over instead of removing this node itself (S25 d)."""
        state = self._ctx.state
        if name != state.node_id or not self._ctx.on(Switch.S25_HAND_OVER):
            return
        connected = self._connected()
        heirs = [peer for peer in state.voters.others if peer in connected]
        heir = max(heirs, key=state.matched)
        self._transfer.ask(heir)
        raise HandsOver(name, heir)

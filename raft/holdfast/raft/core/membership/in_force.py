"""Which membership is in force: the newest that the log holds, committed or not (S25 a).

An entry of membership counts from when it is appended, and no more when it is cut off as one that
another leader replaced. What lies before the log's first entry is noted beside it (`Log`). Before
the first entry there ever was, the node's own file says where to begin. Knows no rules of changes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from holdfast.raft.core.membership.voters import Voters
from holdfast.raft.membership import Membership

if TYPE_CHECKING:
    from holdfast.raft.core.log import Log
    from holdfast.storage.journal.journal import NotedMembership

logger = logging.getLogger(__name__)

_DISAGREES: Final = (
    "the file of this node says that the cluster's nodes are %s, its log says that the voters are "
    "%s and the learners %s. The log decides; the file says only where a new cluster begins, and "
    "may be brought up to date at the next occasion"
)


class MembershipInForce:
    """Tick thread only, but for reading `now`, which is one value."""

    def __init__(self, node_id: str, log: Log, begins_with: Membership) -> None:
        """Take what the log says; `begins_with` counts until it says anything."""
        self._node, self._log, self._begins_with = node_id, log, begins_with
        self.listeners: list[Callable[[Membership], None]] = []
        """Called when another membership comes into force, in this order."""
        self._noted = log.newest_membership
        self.now = self._read(self._noted)
        self.voters = Voters.of(node_id, self.now.voter_names)
        if self.now.names != begins_with.names:
            learners = ", ".join(each.name for each in self.now.learners) or "none"
            voters = ", ".join(self.now.voter_names)
            logger.warning(_DISAGREES, ", ".join(begins_with.names), voters, learners)

    def _read(self, noted: NotedMembership | None) -> Membership:
        """Read what the log says. An empty text sends back to the file: a survivor's log has it."""
        return Membership.decode(noted.text) if noted and noted.text else self._begins_with

    @property
    def index(self) -> int:
        """The entry of the membership in force; 0: the file's."""
        return self._noted.index if self._noted else 0

    @property
    def is_of_a_survivor(self) -> bool:
        """Whether the files count again because a survivor's log names lost nodes (ADR 43)."""
        return self._noted is not None and not self._noted.text

    def committed(self, commit_index: int) -> Membership:
        """Return the newest membership at or before an entry."""
        return self._read(self._log.membership_at(commit_index))

    def committed_index(self, commit_index: int) -> int:
        """Return the entry of the newest membership at or before an entry; 0: the file's."""
        noted = self._log.membership_at(commit_index)
        return noted.index if noted else 0

    def founders(self, by_disk: Mapping[str, str]) -> dict[str, str]:
        """Return the disks that formed the cluster: as the log says, or else as this disk does."""
        return dict(self.now.founders) or dict(by_disk)

    def refresh(self) -> None:
        """Look at the log, which has got or lost an entry of membership."""
        noted = self._log.newest_membership
        if noted == self._noted:
            return
        self._noted = noted
        self.now = self._read(noted)
        self.voters = Voters.of(self._node, self.now.voter_names)
        for tell in self.listeners:
            tell(self.now)

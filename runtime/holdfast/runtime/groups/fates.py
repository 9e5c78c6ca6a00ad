"""What callers, and the node's log, are told of a batch that could not be proposed (S5)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from holdfast.raft.api import DiskLow, EntryTooLarge, NotLeader, OutcomeUnknown, Overloaded
from holdfast.runtime.errors import Crashed, Exhausted, LeadershipLost, NotCoordinator
from holdfast.runtime.groups.batch import told

if TYPE_CHECKING:
    from holdfast.runtime.groups.batch import Batch
    from holdfast.runtime.groups.desk import Desk

logger = logging.getLogger(__name__)


def note(batch: Batch, error: BaseException) -> None:
    """Log a failed proposal, unless another node simply leads."""
    if not isinstance(error, NotLeader | OutcomeUnknown):
        logger.error(
            "group %r: a batch was not proposed: %s",
            batch.group_id,
            error,
            extra=told(batch.commands),
        )


def fault(error: BaseException, desk: Desk) -> Exception:
    """Convert the error of a failed proposal for one call that waits."""
    match error:
        case NotLeader():
            return NotCoordinator(desk.address_of(error.leader))
        case OutcomeUnknown():
            return LeadershipLost()
        case Overloaded() | EntryTooLarge() | DiskLow():
            return Exhausted(str(error))
        case _:
            return Crashed("a change")

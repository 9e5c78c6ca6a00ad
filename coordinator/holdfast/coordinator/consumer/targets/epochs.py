"""Raises the group epoch: once for each change that asks for another target (K-M16 to K-M27)."""

from __future__ import annotations

from holdfast.coordinator.consumer.targets import topics_digest
from holdfast.coordinator.consumer.targets.subscription import Change
from holdfast.coordinator.groups.draft import Draft
from holdfast.coordinator.model.consumer_events import EpochRaised


def raise_for(draft: Draft, change: Change) -> None:
    """Raise the epoch for a heartbeat that changed something, or that finds other topics."""
    if change.cause:
        raise_epoch(draft, change.cause, "M16")
    elif topics_digest.moved(draft):
        raise_epoch(draft, "topics", "M27")


def raise_epoch(draft: Draft, cause: str, rule: str, predecessor_ms: int = 0) -> None:
    """Raise the group epoch, for a cause in the words of `EpochRaised`."""
    epoch = draft.group.generation + 1
    event = EpochRaised(epoch, cause, topics_digest.now(draft), predecessor_ms)
    draft.emit(event, rule)

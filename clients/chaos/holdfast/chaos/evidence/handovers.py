"""Members that took a static instance over together with its tokens, by the log.

In a group of the heartbeat protocol a process that has said that it stops leaves its grants to the
next one of its instance (docs/adr/0049): both have the same tokens, one after the other. Knows no
invariant.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from holdfast.chaos.evidence.heartbeats.group import RELEASED
from holdfast.chaos.evidence.log_view import by_group, views
from holdfast.chaos.history.happenings import Recorded

Heirs: TypeAlias = Mapping[tuple[str, str], str]
"""The member from which each took over, by (group, member id)."""


def heirs(records: Iterable[Recorded]) -> Heirs:
    """Find who took over an instance whose holder had said that it stops."""
    found: dict[tuple[str, str], str] = {}
    for group, own in by_group(records).items():
        for before, record, _ in views(own):
            if record.kind != "StaticMemberReplaced" or before.beats is None:
                continue
            fields = record.fields
            old = before.beats.standings.get(fields["old_member_id"])
            if old is not None and old.epoch == RELEASED and not fields["protocols"]:
                found[group, fields["new_member_id"]] = fields["old_member_id"]
    return found


def inherits(known: Heirs, group: str, member_id: str, earlier: str) -> bool:
    """Return whether a member has what an earlier one had, handed on from process to process."""
    while member_id != earlier:
        before = known.get((group, member_id))
        if before is None:
            return False
        member_id = before
    return True

"""When each member id was fenced in its group, by the log, and by when that can be known.

Without a log only swaps are found, by what was granted. Knows no invariant.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from holdfast.chaos.evidence.commits import commits_of, is_exact
from holdfast.chaos.evidence.log_view import REMOVALS, TOKEN_SPAN, records_of, removed_by
from holdfast.chaos.history.happenings import Granted, Happening


class Fence(NamedTuple):
    """A member id's end in the log.

    `from_us` and `by_us` are equal in the simulator, where records are seen as they are applied.
    """

    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody needs here
    from_us: int
    """The commit was not earlier, as far as is known."""
    by_us: int
    """The commit was surely earlier; NEVER: nothing proves it."""
    kind: str
    """The name of the event that ended it."""


EVERY_FENCE: Final = frozenset(
    {*REMOVALS, "InstanceReleased", "StaticMemberReplaced", "GenerationStarted"}
)
NOT_LEASES: Final = frozenset({"StaticMemberReplaced", "MembersRemoved"})
"""What takes ownership away at once, without waiting for a lease (S12)."""


def fences(
    history: Sequence[Happening], kinds: Iterable[str] = EVERY_FENCE
) -> dict[tuple[str, str], Fence]:
    """Find the fenced member ids, by (group, member id)."""
    found: dict[tuple[str, str], Fence] = {}
    wanted, records = frozenset(kinds), records_of(history)
    if not records:
        return _fences_by_grants(history)
    exact = is_exact(history)
    commits = commits_of(history)
    for record in records:
        if record.kind not in wanted:
            continue
        proved_us = commits.proved_by(record.index)
        by_us = min(proved_us, record.at_us) if exact else proved_us
        fence = Fence(record.index, min(record.at_us, by_us), by_us, record.kind)
        for member_id in removed_by(record.kind, record.fields):
            found.setdefault((record.group, member_id), fence)
    return found


def _fences_by_grants(history: Iterable[Happening]) -> dict[tuple[str, str], Fence]:
    """Find swaps without a log: an instance is granted to another member id (S12)."""
    found: dict[tuple[str, str], Fence] = {}
    holders: dict[tuple[str, str], Granted] = {}
    for each in history:
        if not isinstance(each, Granted) or not each.instance_id:
            continue
        before = holders.setdefault((each.group, each.instance_id), each)
        if each.token > before.token:
            holders[each.group, each.instance_id] = each
            if each.member_id != before.member_id:
                index = each.token % TOKEN_SPAN
                fence = Fence(index, each.at_us, each.at_us, "StaticMemberReplaced")
                found.setdefault((each.group, before.member_id), fence)
    return found

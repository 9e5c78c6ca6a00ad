"""The intervals in which members might act on each partition, and under which token.

A right begins with the grant that names its partition and token, and goes on over later grants that
name them again: a cooperative member keeps some partitions while others move. It ends with the
earliest of: the surrender, a grant of the same member without it, the moment until which the
member's own clock lets it act (S11), and the commit of a swap or removal of the member, which are
not leases (S12). Knows no invariant.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from holdfast.chaos.evidence.calls import NEVER
from holdfast.chaos.evidence.fences import NOT_LEASES, fence_of_right, fences
from holdfast.chaos.history.happenings import Granted, Happening, Renewed, Surrendered

Holder: TypeAlias = tuple[str, str, str]
"""Process, group and member id."""

_Share: TypeAlias = tuple[str, int, int]
"""Topic, number and token."""


class Right(NamedTuple):
    """A holder may act on a partition under a token, from `start_us` until before `end_us`."""

    partition: tuple[str, str, int]
    """Group, topic and number."""
    holder: Holder
    token: int
    start_us: int
    end_us: int


def rights(history: Sequence[Happening]) -> Iterator[Right]:
    """Return every interval in which a member might act."""
    fenced = fences(history, NOT_LEASES)
    for right in _granted(history):
        fence = fence_of_right(fenced, *right.holder[1:], right.token)
        cut_us = right.end_us if fence is None else min(right.end_us, fence.from_us)
        if right.start_us < cut_us:
            yield right._replace(end_us=cut_us)


def _granted(history: Iterable[Happening]) -> Iterator[Right]:
    """Return the rights that members wrote down; a process is one member of a group at a time."""
    members: dict[tuple[str, str], _Member] = {}
    for at in history:
        if isinstance(at, Granted):
            known = members.setdefault((at.who, at.group), _Member(at))
            yield from known.granted(at)
        elif isinstance(at, Renewed) and (at.who, at.group) in members:
            yield from members[at.who, at.group].renewed(at)
        elif isinstance(at, Surrendered):
            left = [group for who, group in members if who == at.who and at.group in {"", group}]
            for group in left:
                yield from members.pop((at.who, group)).ended(at.at_us)
    for member in members.values():
        yield from member.ended(NEVER)


class _Member:
    """What one member may act on, so far in the history; until 0: its end is not known."""

    def __init__(self, first: Granted) -> None:
        self._holder = (first.who, first.group, first.member_id)
        self._until_us = 0
        self._since_us: dict[_Share, int] = {}

    def granted(self, at: Granted) -> Iterator[Right]:
        """Take a grant, which lists everything that the member has from now on."""
        holder, shares = (at.who, at.group, at.member_id), set(at.shares)
        goes_on = holder == self._holder and not self._lapsed(at.at_us)
        kept = shares & self._since_us.keys() if goes_on else set()
        yield from self._end(self._since_us.keys() - kept, at.at_us)
        self._holder, self._until_us = holder, at.until_us
        for share in shares - kept:
            self._since_us[share] = at.at_us

    def renewed(self, at: Renewed) -> Iterator[Right]:
        """Take a new end; a right that had ended before begins anew (S11)."""
        if self._lapsed(at.at_us):
            shares = set(self._since_us)
            yield from self._end(shares, at.at_us)
            self._since_us = dict.fromkeys(shares, at.at_us)
        self._until_us = at.until_us

    def ended(self, at_us: int) -> Iterator[Right]:
        """Take the end of all its rights."""
        yield from self._end(set(self._since_us), at_us)

    def _lapsed(self, at_us: int) -> bool:
        """Return whether the member's own clock had ended its rights before this moment."""
        return 0 < self._until_us < at_us

    def _end(self, shares: Iterable[_Share], at_us: int) -> Iterator[Right]:
        end_us = min(at_us, self._until_us) if self._until_us else at_us
        for topic, number, token in sorted(shares):
            start_us = self._since_us.pop((topic, number, token))
            place = (self._holder[1], topic, number)
            yield Right(place, self._holder, token, start_us, end_us)

"""Which assignor all members share, and who of them can run it (KIP-848).

One that runs in members has precedence over the service's. It is used while all members can run it,
have a version of its metadata in common, and one of them understands what all of them say.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from holdfast.coordinator.consumer.state import ConsumerBody, Member, Runnable
from holdfast.coordinator.model.ids import MemberId
from holdfast.coordinator.model.member_profile import ClientAssignor, ConsumerProfile


class Shared(NamedTuple):
    """The assignor that all members share."""

    name: str
    version: int
    """The newest version of metadata that all of them understand."""
    able: frozenset[MemberId]
    """Who can run it: they understand the metadata of all, and their process has not stopped."""


class _Usable(NamedTuple):
    """An assignor that all members can run, and somebody for all."""

    name: str
    newest: int
    """The newest version of metadata that all of them understand."""
    least: int
    """The oldest version of what they say, and the newest."""
    most: int

    def is_run_by(self, said: ClientAssignor | Runnable | None) -> bool:
        """Return whether who says this of itself understands what all say."""
        return said is not None and said.understands(self.least) and said.understands(self.most)


def shared(body: ConsumerBody) -> Shared | None:
    """Return the assignor that is to compute targets in a member; None: the service's does.

    It takes time in proportion to the members only if there is one.
    """
    found = _in_force(body)
    if found is None:
        return None
    able = [each.member_id for each in body.members.values() if _can_run(each, found)]
    return Shared(found.name, found.newest, frozenset(able))


def name_of(body: ConsumerBody) -> str:
    """Return the name of that assignor; "": the service's computes."""
    found = _in_force(body)
    return "" if found is None else found.name


def _in_force(body: ConsumerBody) -> _Usable | None:
    """Return the assignor that all members share, and one of them can run for all.

    Of several, the one that most members have before the others; of a tie, the first by name. It
    takes time in proportion to the different things that members say, which are few: it is asked at
    each heartbeat that says something new.
    """
    kinds = body.client_assignor_kinds
    if not kinds or sum(kinds.values()) < len(body.members):
        return None
    names = set.intersection(*[{each.name for each in kind} for kind in kinds])
    found = {name: usable for name in sorted(names) if (usable := _usable(body, name)) is not None}
    if not found:
        return None
    votes: Counter[str] = Counter()
    for kind, members in kinds.items():
        votes[next(each.name for each in kind if each.name in found)] += members
    return found[max(found, key=lambda name: votes[name])]


def _usable(body: ConsumerBody, name: str) -> _Usable | None:
    """Return an assignor that all members name, if it can be used; it looks for one that lives."""
    known = [each for kind in body.client_assignor_kinds for each in kind if each.name == name]
    newest = min(each.maximum_version for each in known)
    if max(each.minimum_version for each in known) > newest:
        return None
    used = [each.version for each in known]
    found = _Usable(name, newest, min(used), max(used))
    if not any(found.is_run_by(each) for each in known):
        return None
    return found if any(_can_run(each, found) for each in body.members.values()) else None


def _can_run(member: Member, found: _Usable) -> bool:
    return not member.released and found.is_run_by(member.profile.client_assignor(found.name))


def asks_anew(before: ConsumerBody, after: ConsumerBody, member_id: MemberId) -> bool:
    """Return whether what a member says now of its assignors asks for another target.

    It does if another assignor is in force, or if it says something new for the one that is: other
    versions or metadata, or a reason. A reason that is taken back asks for nothing.
    """
    name = name_of(after)
    if name != name_of(before):
        return True
    known = before.members.get(member_id)
    old = _said(ConsumerProfile() if known is None else known.profile, name)
    new = _said(after.members[member_id].profile, name)
    if old is None or new is None or old == new:
        return False
    return new.reason != 0 or old._replace(reason=0) != new._replace(reason=0)


def _said(profile: ConsumerProfile, name: str) -> ClientAssignor | None:
    return profile.client_assignor(name) if name else None

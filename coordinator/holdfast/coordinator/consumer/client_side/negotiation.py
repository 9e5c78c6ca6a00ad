"""Which assignor all members share, and who of them can run it (KIP-848).

One that runs in members has precedence over the service's. It is used while all members can run it,
have a version of its metadata in common, and one of them understands what all of them say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from holdfast.coordinator.consumer.state import ConsumerBody, Member
from holdfast.coordinator.model.ids import MemberId
from holdfast.coordinator.model.member_profile import ClientAssignor, ConsumerProfile


class Shared(NamedTuple):
    """The assignor that all members share."""

    name: str
    version: int
    """The newest version of metadata that all of them understand."""
    able: frozenset[MemberId]
    """Who can run it: they understand the metadata of all, and their process has not stopped."""


def shared(body: ConsumerBody) -> Shared | None:
    """Return the assignor that is to compute targets in a member; None: the service's does.

    Of several, the one that most members have before the others; of a tie, the first by name. It
    takes time in proportion to the members only if all of them name one.
    """
    names = sorted(_named_by_all(body))
    if not names:
        return None
    members = body.members.values()
    found = {name: usable for name in names if (usable := _usable(name, members)) is not None}
    if not found:
        return None
    votes = Counter(_first(member, found) for member in members)
    return found[max(found, key=lambda name: votes[name])]


def name_of(body: ConsumerBody) -> str:
    """Return the name of that assignor; "": the service's computes."""
    found = shared(body)
    return "" if found is None else found.name


def _named_by_all(body: ConsumerBody) -> Iterator[str]:
    count = len(body.members)
    return (name for name, users in body.client_assignor_users.items() if users == count)


def _usable(name: str, members: Iterable[Member]) -> Shared | None:
    said = [(each, each.profile.client_assignor(name)) for each in members]
    known = [(member, assignor) for member, assignor in said if assignor is not None]
    newest = min(each.maximum_version for _, each in known)
    if max(each.minimum_version for _, each in known) > newest:
        return None
    used = {each.version for _, each in known}
    least, most = min(used), max(used)
    able = frozenset(
        [
            member.member_id
            for member, each in known
            if not member.released and each.understands(least) and each.understands(most)
        ]
    )
    return Shared(name, newest, able) if able else None


def _first(member: Member, names: Iterable[str]) -> str:
    return next(each.name for each in member.profile.client_assignors if each.name in names)


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

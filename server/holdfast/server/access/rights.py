"""The rights of one principal, compiled from the grants: looked up on every call.

The same as `model.access.rank`, which reads all grants, in a time that does not depend on how many
there are. Made anew when the grants change.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from holdfast.coordinator.model.access import (
    ADMIN,
    CLUSTER,
    EVERYONE,
    GROUP,
    KINDS,
    NOTHING,
    RANKS,
    TOPIC,
)
from holdfast.coordinator.model.text import WHOLE_MAX

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.coordinator.model.access import Acl

KNOWN_MAX: Final = 4_096
"""Names of a kind whose ranks are kept: a caller may name any number of them."""
KEPT_LENGTH_MAX: Final = WHOLE_MAX
"""Characters of a name whose rank is kept: one that is longer names nothing that there is. Requests
are refused for want of a grant before their texts are measured, and a name may fill one."""


class _OfKind:
    """The ranks of one principal on the things of one kind."""

    __slots__ = ("_exact", "_known", "_lengths", "_prefixes")

    def __init__(self) -> None:
        self._exact: dict[str, int] = {}
        self._prefixes: dict[str, int] = {}
        self._lengths: dict[int, None] = {}
        """Lengths of the prefixes, which are few however many prefixes there are."""
        self._known: dict[str, int] = {}

    def add(self, name: str, rank: int) -> None:
        """Add a grant on a name, or on a prefix followed by `*`."""
        of, key = (self._prefixes, name[:-1]) if name.endswith(EVERYONE) else (self._exact, name)
        of[key] = max(rank, of.get(key, NOTHING))
        if of is self._prefixes:
            self._lengths[len(key)] = None

    def rank(self, name: str) -> int:
        """Return the highest rank on a name."""
        found = self._known.get(name)
        return self._found(name) if found is None else found

    def _found(self, name: str) -> int:
        ranks = [self._prefixes.get(name[:length], NOTHING) for length in self._lengths]
        found = max((self._exact.get(name, NOTHING), *ranks))
        if len(name) > KEPT_LENGTH_MAX:
            return found
        if len(self._known) >= KNOWN_MAX:
            self._known.clear()
        self._known[name] = found
        return found


class Rights:
    """What one principal may do."""

    __slots__ = ("_groups", "_topics", "cluster")

    def __init__(self, acls: Iterable[Acl]) -> None:
        """`acls`: the grants to this principal and to everyone, and no others."""
        kinds = {kind: _OfKind() for kind in KINDS}
        for acl in acls:
            kinds[acl.kind].add(acl.name, RANKS[acl.role])
        self.cluster = kinds[CLUSTER].rank("")
        """Its rank on the cluster."""
        if self.cluster == RANKS[ADMIN]:
            for kind in (GROUP, TOPIC):
                kinds[kind].add(EVERYONE, RANKS[ADMIN])
        self._groups, self._topics = kinds[GROUP], kinds[TOPIC]

    def rank(self, kind: str, name: str) -> int:
        """Return the highest rank that it has on a thing."""
        if kind == GROUP:
            return self._groups.rank(name)
        return self._topics.rank(name) if kind == TOPIC else self.cluster


class ByPrincipal:
    """The grants sorted by principal, and the rights that were compiled from them."""

    def __init__(self, acls: Iterable[Acl]) -> None:
        self._acls: defaultdict[str, list[Acl]] = defaultdict(list)
        for acl in acls:
            self._acls[acl.principal].append(acl)
        self._made: dict[str, Rights] = {}

    def of(self, principal: str) -> Rights:
        """Return the rights of a principal."""
        made = self._made.get(principal)
        return self._make(principal) if made is None else made

    def _make(self, principal: str) -> Rights:
        everyones = self._acls.get(EVERYONE, ()) if principal != EVERYONE else ()
        made = Rights((*self._acls.get(principal, ()), *everyones))
        if len(self._made) >= KNOWN_MAX:
            self._made.clear()
        self._made[principal] = made
        return made

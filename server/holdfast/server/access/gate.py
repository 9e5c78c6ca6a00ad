"""The gate: decides for each call, and for each thing that a call names, whether it may be.

It reads the grants of the state as it is now, so a grant or a revocation counts from the entry in
which it was applied. A thing that a caller may not touch is refused in the same words whether it
exists or not. Knows rights and modes; no message, and no rule of the coordinator.
"""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING, Final

import grpc

from holdfast.coordinator.model.access import (
    ADMIN,
    CLUSTER,
    DENY,
    EVERYONE,
    GROUP,
    RANKS,
    TOPIC,
)
from holdfast.coordinator.model.text import truncate
from holdfast.server.access.dry_run import DryRun
from holdfast.server.access.rights import ByPrincipal
from holdfast.server.audit.trail import NO_TRAIL
from holdfast.server.rpc.errors import Refused
from holdfast.v1 import errors_pb2 as e

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from holdfast.coordinator.model.state import State
    from holdfast.server.access.rights import Rights
    from holdfast.server.access.table import Need
    from holdfast.server.audit.trail import Trail
    from holdfast.v1.errors_pb2 import ErrorCode

CODES: Final[Mapping[str, ErrorCode.ValueType]] = {
    GROUP: e.ERROR_CODE_GROUP_AUTHORIZATION_FAILED,
    TOPIC: e.ERROR_CODE_TOPIC_AUTHORIZATION_FAILED,
    CLUSTER: e.ERROR_CODE_CLUSTER_AUTHORIZATION_FAILED,
}
"""Kafka's code for what may not be touched, by its kind."""
NOTHING_DENIED: Final[frozenset[str]] = frozenset()


class Gate:
    """What the callers of a node may do now."""

    def __init__(
        self,
        state: Callable[[], State],
        trail: Trail = NO_TRAIL,
        dry_run: DryRun | None = None,
    ) -> None:
        """`state`: gives the newest applied state. `trail`: is told of what is refused."""
        self._state, self._trail, self._dry_run = state, trail, dry_run or DryRun()
        self._acls: object = None
        self._rights = ByPrincipal(())

    @property
    def open(self) -> bool:
        """Whether everybody may do everything, and nothing is asked or noted."""
        return not self._state().access_mode

    def may(
        self, principal: str, call: str, need: Need, name: str = "", request: object = None
    ) -> bool:
        """Return whether a principal may do this; in a dry run everybody may, and it is noted.

        `request`: that of the call, for the log.
        """
        state = self._state()
        if not state.access_mode:
            return True
        if self._rights_of(state, principal).rank(need.kind, name) >= need.rank:
            return True
        if state.access_mode == DENY:
            return False
        self._dry_run.note(principal, call, need, name, request)
        return True

    def _rights_of(self, state: State, principal: str) -> Rights:
        """Compile the grants anew if they changed: a map that is the same object is the same."""
        if state.acls is not self._acls:
            self._acls, self._rights = state.acls, ByPrincipal(state.acls)
        return self._rights.of(principal)

    def check(
        self, principal: str, call: str, need: Need, name: str = "", request: object = None
    ) -> None:
        """Raise Refused if a principal may not do this."""
        if self.problem(principal, call, need, name, request):
            raise refused(principal, call, need, name)

    def problem(
        self, principal: str, call: str, need: Need, name: str = "", request: object = None
    ) -> str:
        """Return why a principal may not do this, as a sentence; "" if it may."""
        if self.may(principal, call, need, name, request):
            return ""
        self._trail.denied(principal, call, thing_of(need, name), f"needs the role {need.role}")
        return sentence(principal, call, need, name)

    def denied(
        self,
        principal: str,
        call: str,
        need: Need,
        names: Iterable[str],
        request: object = None,
    ) -> frozenset[str]:
        """Return those of the names that a principal may not touch; as `may` says of each."""
        state = self._state()
        if not state.access_mode:
            return NOTHING_DENIED
        rights, kind, rank = self._rights_of(state, principal), need.kind, need.rank
        lacking = [name for name in names if rights.rank(kind, name) < rank]
        if not lacking:  # nearly always, and on the path of each commit
            return NOTHING_DENIED
        found = frozenset(
            name for name in lacking if not self.may(principal, call, need, name, request)
        )
        if found:
            more = f" and {len(found) - 1} more" if len(found) > 1 else ""
            thing = thing_of(need, min(found)) + more
            self._trail.denied(principal, call, thing, f"needs the role {need.role}")
        return found

    def rules(self, principal: str) -> bool:
        """Return whether a principal may change what holds for the whole cluster."""
        if self._state().access_mode != DENY:
            return True
        return self.granted(principal, CLUSTER) >= RANKS[ADMIN]

    def granted(self, principal: str, kind: str, name: str = "") -> int:
        """Return the rank that the grants give a principal on a thing, whatever the mode is."""
        return self._rights_of(self._state(), principal).rank(kind, name)


def refused(principal: str, call: str, need: Need, name: str) -> Refused:
    """Make the refusal of a call; its sentence names nothing but what the caller named."""
    return Refused(
        CODES[need.kind], grpc.StatusCode.PERMISSION_DENIED, sentence(principal, call, need, name)
    )


def sentence(principal: str, call: str, need: Need, name: str) -> str:
    """Tell what was refused, why, and who can change it."""
    thing = thing_of(need, name)
    return (
        f"{call} needs the role {need.role} on {thing}, and no grant gives it to the principal "
        f"{truncate(principal)!r}. {_remedy(principal, need, name)}"
    )


def _remedy(principal: str, need: Need, name: str) -> str:
    """Say what an administrator can do; the command only if it grants this alone, as it is typed.

    Names are their callers' own: one may hold what a shell runs, or end with the sign for many.
    """
    told = (principal, name)
    if principal == EVERYONE or name.endswith(EVERYONE) or any(truncate(t) != t for t in told):
        return "An administrator can grant it: `holdfast acl grant --help` says how"
    option = "--on-cluster" if need.kind == CLUSTER else f"--{need.kind} {quote(name)}"
    command = f"holdfast acl grant {quote(principal)} {need.role} {option}"
    return f"An administrator can: `{command}`"


def thing_of(need: Need, name: str) -> str:
    """Name what a call is about, for people."""
    return CLUSTER if need.kind == CLUSTER else f"{need.kind} {truncate(name)!r}"

"""Decides changes of who may do what: grants and the mode, from a bootstrap, a call, or a disk.

Whether the caller may change them was asked before (the server's gate); here it is decided whether
the change makes sense, and that a cluster that refuses anything never loses its last administrator
by a call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.coordinator.model.access import (
    ACLS_MAX,
    ADMIN,
    CLUSTER,
    MODES,
    OPEN,
    Acl,
    administrator,
    problem_of,
    sentence,
)
from holdfast.coordinator.model.events import AccessModeChanged, AclsChanged
from holdfast.coordinator.model.levels import too_low
from holdfast.coordinator.model.rejections import InvalidRequest
from holdfast.coordinator.model.replies import DoneReply

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.coordinator.groups.draft import Draft
    from holdfast.coordinator.model.commands import AlterAcls, FormCluster, GrantAdmin
    from holdfast.coordinator.model.rejections import Rejection
    from holdfast.coordinator.model.state import State

_WHAT: Final = "an access rule"


def form(draft: Draft, command: FormCluster) -> None:
    """Begin with the administrators and the mode of the bootstrap.

    A cluster that begins at a level without permissions begins open; its nodes say so.
    """
    if too_low(draft.state, AclsChanged, _WHAT):
        return
    _emit(draft, tuple(map(administrator, command.administrators)), (), command.access_mode, "S23")


def grant_admin(draft: Draft, command: GrantAdmin) -> None:
    """Make a principal an administrator, asked by a node that leads: the way back in.

    Who owns the disk of a node owns the cluster, so nobody is asked. Nothing happens at a level
    without permissions, where everybody may do everything.
    """
    if not too_low(draft.state, AclsChanged, _WHAT):
        _emit(draft, (administrator(command.principal),), (), "", "access")


def alter(draft: Draft, command: AlterAcls) -> DoneReply:
    """Change grants and mode: all or nothing."""
    problem = too_low(draft.state, AclsChanged, _WHAT) or _problem(draft.state, command)
    if problem is None:
        _emit(draft, command.granted, command.revoked, command.mode, "access")
    return DoneReply(problem)


def _emit(
    draft: Draft, granted: tuple[Acl, ...], revoked: tuple[Acl, ...], mode: str, rule: str
) -> None:
    """Record what is new: a grant that is there is not given, and one that is not is not taken."""
    acls = draft.state.acls
    new = tuple(sorted({acl for acl in granted if acl not in acls}))
    gone = tuple(sorted({acl for acl in revoked if acl in acls} - set(granted)))
    if new or gone:
        draft.emit(AclsChanged(new, gone), rule)
    if mode and mode != (draft.state.access_mode or OPEN):
        draft.emit(AccessModeChanged(mode), rule)


def _problem(state: State, command: AlterAcls) -> Rejection | None:
    for acl in (*command.granted, *command.revoked):
        if (problem := problem_of(acl)) is not None:
            return InvalidRequest("acl", problem)
    if both := set(command.granted) & set(command.revoked):
        return InvalidRequest(
            "acl", f"{sentence(min(both))} is both granted and revoked in one call"
        )
    if command.mode and command.mode not in MODES:
        return InvalidRequest("mode", f"{command.mode!r} is none; choose {', '.join(MODES)}")
    return _lost(state, command)


def _lost(state: State, command: AlterAcls) -> Rejection | None:
    """Refuse what leaves too many grants, or nobody who may grant anything."""
    after = (set(state.acls) - set(command.revoked)) | set(command.granted)
    if len(after) > ACLS_MAX and len(after) > len(state.acls):
        problem = f"there would be {len(after)}, {ACLS_MAX} are allowed; grant on a prefix"
        return InvalidRequest("acl", problem)
    mode = command.mode or state.access_mode or OPEN
    if mode != OPEN and not _administered(after):
        return InvalidRequest(
            "acl",
            "no administrator would be left, so nobody could grant anything; grant the role admin "
            "on the cluster to somebody first",
        )
    return None


def _administered(acls: Iterable[Acl]) -> bool:
    return any(acl.kind == CLUSTER and acl.role == ADMIN for acl in acls)

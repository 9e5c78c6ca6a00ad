"""Calls about who may do what: shown, changed, and tried out.

Administrators see all grants. Everybody sees what is granted to itself, which names nothing that it
may not know of.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, cast

from holdfast.coordinator.model.access import ADMIN, CLUSTER, OPEN, RANKS, Acl, covers
from holdfast.coordinator.model.commands import AlterAcls
from holdfast.coordinator.model.text import truncate
from holdfast.server.access.table import TABLE, need_of
from holdfast.server.guard.answer_size import Room
from holdfast.server.translate import limits
from holdfast.server.translate.refusals import code_of
from holdfast.server.translate.responses import extras as extras_of
from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import errors_pb2 as e
from holdfast.v1 import events_pb2 as ev
from holdfast.v1 import extras_pb2 as x

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.coordinator.model.commands import Caller
    from holdfast.coordinator.model.replies import DoneReply
    from holdfast.coordinator.model.state import State
    from holdfast.runtime.groups.pending_calls import Answered
    from holdfast.server.access.gate import Gate
    from holdfast.server.access.table import Need

_ADVICE: Final = "name one principal, as `holdfast acl list PRINCIPAL` does"


class AclCalls:
    """Reads of the grants for one caller, as its rights allow."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    def described(
        self, state: State, request: a.DescribeAclsRequest, caller: str, extras: x.ResponseExtras
    ) -> a.DescribeAclsResponse:
        """Show all grants, or those that count for one principal. Raises CallFailed if too long."""
        about = request.principal if request.HasField("principal") else None
        rules = self._rules(state, caller)
        if about not in {None, caller} and not rules:
            self._gate.check(caller, "DescribeAcls", need_of("AdminService.DescribeAcls"))
        if about is None and not rules:
            about = caller
        found = sorted(acl for acl in state.acls if about is None or acl.principal in {about, "*"})
        made = a.DescribeAclsResponse(
            mode=state.access_mode or OPEN,
            acls=map(message, found),
            principal=caller,
            holdfast=extras,
        )
        Room(_ADVICE).take(made.ByteSize())
        return made

    def tested(
        self, state: State, request: a.TestAclRequest, caller: str, extras: x.ResponseExtras
    ) -> a.TestAclResponse:
        """Tell whether the grants let a principal make a call, and which of them do."""
        if request.principal != caller and not self._rules(state, caller):
            self._gate.check(caller, "TestAcl", need_of("AdminService.TestAcl"))
        methods = [name for name in TABLE if name.partition(".")[2] == request.call]
        if not methods:
            extras.message = _no_call(request.call)
            return a.TestAclResponse(error_code=e.ERROR_CODE_INVALID_REQUEST, holdfast=extras)
        need = _asked(methods[0], request.name)
        mode = state.access_mode or OPEN
        if need is None:
            return a.TestAclResponse(allowed=True, mode=mode, holdfast=extras)
        allowing = sorted(
            acl
            for acl in state.acls
            if RANKS[acl.role] >= need.rank
            and covers(acl, request.principal, need.kind, request.name)
        )
        return a.TestAclResponse(
            allowed=bool(allowing),
            role=need.role,
            kind=need.kind,
            acls=map(message, allowing),
            mode=mode,
            holdfast=extras,
        )

    def _rules(self, state: State, caller: str) -> bool:
        """Return whether the caller sees everything, as everybody does where nothing is refused."""
        return not state.access_mode or self._gate.granted(caller, CLUSTER) == RANKS[ADMIN]


def _no_call(name: str) -> str:
    calls = sorted({method.partition(".")[2] for method in TABLE})
    by_small = {call.lower(): call for call in calls}
    near = get_close_matches(name.lower(), by_small, n=1)
    meant = f" Did you mean {by_small[near[0]]}?" if near else ""
    return f"there is no call {truncate(name)!r}.{meant} There are: {', '.join(calls)}"


def _asked(method: str, name: str) -> Need | None:
    """Return what a call needs that names this, or nothing."""
    line = TABLE[method]
    if line.unnamed is not None and not name:
        return line.unnamed
    return line.need or line.topics


def command(request: a.AlterAclsRequest, caller: Caller) -> AlterAcls:
    """Translate AlterAcls to its command."""
    return AlterAcls(
        caller,
        tuple(_acls("granted", request.granted)),
        tuple(_acls("revoked", request.revoked)),
        limits.text("mode", request.mode),
    )


def _acls(field: str, given: Iterable[ev.Acl]) -> Iterable[Acl]:
    for acl in given:
        texts = (acl.principal, acl.role, acl.kind, acl.name)
        yield Acl(*(limits.text(field, text) for text in texts))


def altered(got: Answered) -> a.AlterAclsResponse:
    """Make the response of AlterAcls."""
    error = cast("DoneReply", got.reply).error
    return a.AlterAclsResponse(error_code=code_of(error), holdfast=extras_of(error))


def message(acl: Acl) -> ev.Acl:
    """Make the message of a grant."""
    return ev.Acl(principal=acl.principal, role=acl.role, kind=acl.kind, name=acl.name)

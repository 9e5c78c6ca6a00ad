"""`decide` chooses what happens, given the state, the leader-local part, and a command. Pure.

How the modules share the work: a decider of a one-shot effect (`commits.commit`, `commits.delete`,
`lifecycle.delete`, `topics.*`, a type's leave) takes `(draft, command)`, emits its events on the
draft and *returns* its reply; it is answered here, and its answer is recorded for its request id
(S14, S15). What members do is decided by their group's type (`groups.group_type`); its calls answer
or park by themselves, and are never answered from a table.

All functions here give a `Decision` whose events belong to one part of the log: the group's, or the
cluster's ("") for topics and settings. An answer that carries a grant of the decision itself has
`UNCOMMITTED` for its token until `effects.settled` puts the entry's index there (S13).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias, cast

from holdfast.coordinator.cluster import (
    access,
    ceilings,
    levels,
    recovery,
    requests,
    retention,
    revocations,
    topics,
)
from holdfast.coordinator.groups import lifecycle
from holdfast.coordinator.groups.draft import Draft
from holdfast.coordinator.groups.group_type import GroupType, Rules
from holdfast.coordinator.kernel import conversion, group_types, quarantine, refusals
from holdfast.coordinator.kernel.evolve import evolve
from holdfast.coordinator.kernel.group_types import TYPES, type_of
from holdfast.coordinator.model.commands import (
    AlterAcls,
    AlterRevocations,
    AlterSettings,
    CallBroken,
    ClusterCommand,
    Command,
    CommitOffsets,
    ConsumerGroupHeartbeat,
    CreatePartitions,
    CreateTopics,
    CutHistory,
    DeadlineFired,
    DeleteGroup,
    DeleteOffsets,
    DeleteTopics,
    ExpireOffsets,
    ForAnyGroup,
    FormCluster,
    GrantAdmin,
    Growing,
    JoinGroup,
    OneShot,
    RaiseLevel,
    RaiseRecoveryNumber,
    ReportBackup,
    SealLog,
    SealSegment,
)
from holdfast.coordinator.model.effects import Decision, InstallRegexes, InstallTarget
from holdfast.coordinator.model.ids import GroupId
from holdfast.coordinator.model.replies import Reply
from holdfast.coordinator.model.state import State
from holdfast.coordinator.model.stored_replies import StoredReply
from holdfast.coordinator.model.usage import NOTHING, Usage
from holdfast.coordinator.model.volatile import Volatile
from holdfast.coordinator.offsets import commits
from holdfast.coordinator.structures.copies import with_one

_UnaskedOfCluster: TypeAlias = (
    FormCluster | GrantAdmin | SealSegment | CutHistory | RaiseRecoveryNumber
)
_Unasked: TypeAlias = (
    DeadlineFired | CallBroken | InstallRegexes | InstallTarget | ExpireOffsets | _UnaskedOfCluster
)
"""Commands of the node itself: nobody waits for an answer."""

RULES: Final = Rules(evolve, TYPES)
_at: Final = with_one(State, "log_time_ms")

__all__ = ["decide", "decide_all", "group_of", "on_leading"]


def decide(
    state: State,
    volatile: Volatile,
    command: Command,
    log_time_ms: int = 0,
    used: Usage = NOTHING,
) -> Decision:
    """Choose events and effects for one command; `volatile` is the part of the command's group."""
    return decide_all(state, volatile, group_of(command), (command,), log_time_ms, used)


def decide_all(
    state: State,
    volatile: Volatile,
    group_id: GroupId,
    commands: Iterable[Command],
    log_time_ms: int = 0,
    used: Usage = NOTHING,
) -> Decision:
    """Decide a batch of commands of one group, each on the state that the ones before it left.

    `log_time_ms`: the log time now (S8), which the entry will carry or exceed. It never runs back,
    so an older one counts as that of the state. `used`: what the whole cluster takes now, with what
    other groups have under way; ceilings limit it.
    """
    if log_time_ms > state.log_time_ms:
        state = _at(state, log_time_ms)
    draft = new_draft(state, volatile, group_id, used)
    for command in commands:
        chosen = len(draft.proposed)
        _decide(draft, command)
        if draft.found is not None:
            conversion.finish(draft, chosen)
        elif group_id:
            draft.blank()
    draft.close()
    return draft.decision()


def group_of(command: Command) -> GroupId:
    """Return the group whose part of the log a command changes; "" for the cluster's own."""
    return "" if isinstance(command, ClusterCommand) else command.group_id


def new_draft(state: State, volatile: Volatile, group_id: GroupId, used: Usage = NOTHING) -> Draft:
    """Make an empty draft over this state, with the fold and the group types that there are."""
    return Draft(state, volatile, group_id, RULES, used)


def on_leading(state: State, group_id: GroupId) -> Decision:
    """Decide what a new leader does before it serves a group: every deadline anew (S9, S16)."""
    draft = new_draft(state, Volatile(), group_id)
    draft.serve("Leading")
    if draft.found is not None and draft.found.quarantined:
        return draft.decision()
    type_of(draft.found).on_leading(draft)
    return draft.decision()


def _decide(draft: Draft, command: Command) -> None:
    name = type(command).__name__
    if isinstance(command, _Unasked):
        draft.serve(name)
        if draft.found is None or not draft.found.quarantined:
            _decide_internal(draft, command)
        return
    caller = command.caller
    draft.serve(name, caller.principal, caller.request_id)
    if quarantine.holds(draft.found, command):
        draft.answer(caller.call, quarantine.refusal(draft.group, command))
        return
    kind = group_types.for_command(draft.found, command)
    if kind is not None and isinstance(command, kind.heartbeats):
        kind.call(draft, command)
    elif conversion.concerns(draft.found, command):
        _decide_growing(draft, cast("Growing", command), None)
    elif kind is None and group_types.is_of_a_type(command):
        draft.answer(caller.call, refusals.misplaced(draft.group, command))
    else:
        _decide_growing(draft, cast("Growing", command), kind)


def _decide_growing(draft: Draft, command: Growing, kind: GroupType[Draft] | None) -> None:
    """Decide a command that may enlarge the state, by the group's type or for a group of any.

    Without a type, it is one for any group, or of somebody who comes with the other protocol.
    """
    before, call = draft.mark(), command.caller.call
    if kind is None and isinstance(command, ConsumerGroupHeartbeat | JoinGroup):
        conversion.call(draft, command)
    elif kind is not None and isinstance(command, kind.calls):
        kind.call(draft, command)
    elif kind is not None:
        one_shot = cast("OneShot", command)
        draft.answer(call, requests.once(draft, one_shot, kind.one_shot))
    else:
        draft.answer(call, _one_shot(draft, cast("ForAnyGroup", command)))
    too_much = ceilings.exceeded(draft, before, command)
    if too_much is not None:
        draft.back_to(before)
        draft.answer(call, refusals.of_call(command, too_much))


def _decide_internal(draft: Draft, command: _Unasked) -> None:
    """Decide a command that no caller waits for."""
    match command:
        case DeadlineFired():
            type_of(draft.found).fired(draft, command)
        case InstallRegexes() | InstallTarget():
            type_of(draft.found).install(draft, command)
        case CallBroken():
            type_of(draft.found).call_broken(draft, command.call)
        case ExpireOffsets():
            commits.expire(draft, command)
        case _:
            _decide_of_cluster(draft, command)


def _decide_of_cluster(draft: Draft, command: _UnaskedOfCluster) -> None:
    match command:
        case FormCluster():
            if topics.form(draft, command):
                access.form(draft, command)
        case GrantAdmin():
            access.grant_admin(draft, command)
        case SealSegment():
            topics.seal(draft, command)
        case CutHistory():
            retention.cut(draft, command)
        case RaiseRecoveryNumber():
            recovery.raise_number(draft, command)


_ONE_SHOTS: Final[Mapping[type, Callable[[Draft, Any], StoredReply]]] = {
    CommitOffsets: commits.commit,
    DeleteOffsets: commits.delete,
    DeleteGroup: lifecycle.delete,
    CreateTopics: topics.create_topics,
    CreatePartitions: topics.create_partitions,
    DeleteTopics: topics.delete_topics,
    AlterSettings: topics.alter_settings,
    RaiseLevel: levels.raise_level,
    ReportBackup: retention.report_backup,
    SealLog: topics.seal_log,
    AlterAcls: access.alter,
    AlterRevocations: revocations.alter,
}
"""Who decides a command that is for a group of any type, or for the cluster."""


def _one_shot(draft: Draft, command: ForAnyGroup) -> Reply:
    heard: Callable[[Draft, Any], None] | None = None
    if isinstance(command, CommitOffsets):
        heard = commits.heard_again
    return requests.once(draft, command, _ONE_SHOTS[type(command)], heard)

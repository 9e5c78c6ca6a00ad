"""The one table of refusals: each rejection's error code and its sentence for people.

A test proves it total and every sentence renderable. Sentences tell what happened, why, and what to
do next; the caller of `sentence` adds what it happened to. Placeholders are the rejection's fields.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import grpc

from holdfast.coordinator.model import rejections as r
from holdfast.coordinator.model.text import readable, truncate
from holdfast.runtime.errors import NotCoordinator, Outcome
from holdfast.server.rpc.errors import CallFailed
from holdfast.v1 import errors_pb2 as e

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.coordinator.model.rejections import Rejection

Code: TypeAlias = e.ErrorCode.ValueType


class Coded(NamedTuple):
    """A refusal for which the group protocol has a code."""

    code: Code
    text: str


class Status(NamedTuple):
    """A refusal without a code in the protocol, sent as a gRPC status."""

    status: grpc.StatusCode
    outcome: Outcome
    text: str


TABLE: Final[Mapping[type[Rejection], Coded | Status]] = {
    r.InvalidGroupId: Coded(
        e.ERROR_CODE_INVALID_GROUP_ID, "the group id is not allowed: {problem}. Use another one"
    ),
    r.InvalidRequest: Coded(e.ERROR_CODE_INVALID_REQUEST, "{field}: {problem}"),
    r.InvalidSessionTimeout: Coded(
        e.ERROR_CODE_INVALID_SESSION_TIMEOUT,
        "a session timeout of {session_timeout_ms} ms is out of bounds: ask for {least_ms} to "
        "{most_ms} ms, or let an operator change group.min_session_timeout_ms or "
        "group.max_session_timeout_ms",
    ),
    r.MemberIdRequired: Coded(
        e.ERROR_CODE_MEMBER_ID_REQUIRED, "join again with the member id {member_id!r}"
    ),
    r.UnknownMemberId: Coded(
        e.ERROR_CODE_UNKNOWN_MEMBER_ID,
        "the group has no member {member_id!r}: its session ended, it left, or it was removed. "
        "Join again: with an empty member id, or in the heartbeat protocol with this one and epoch "
        "0",
    ),
    r.FencedInstanceId: Coded(
        e.ERROR_CODE_FENCED_INSTANCE_ID,
        "the instance id is held by member {holder!r} of client {holder_client_id!r} for "
        "{time_held}. Stop this process, or give it an instance id of its own",
    ),
    r.IllegalGeneration: Coded(
        e.ERROR_CODE_ILLEGAL_GENERATION,
        "the call speaks of generation {sent}, the group is at {current}. Join again with the same "
        "member id",
    ),
    r.RebalanceInProgress: Coded(
        e.ERROR_CODE_REBALANCE_IN_PROGRESS, "a rebalance is under way. Join again, then sync"
    ),
    r.InconsistentGroupProtocol: Coded(
        e.ERROR_CODE_INCONSISTENT_GROUP_PROTOCOL,
        "the member does not fit the group: {problem}. Offer a protocol that all members have, of "
        "the group's protocol type",
    ),
    r.GroupMaxSizeReached: Coded(
        e.ERROR_CODE_GROUP_MAX_SIZE_REACHED,
        "the group already has {group_size_max} members. Let one leave, or let an operator raise "
        "{setting}",
    ),
    r.GroupIdNotFound: Coded(
        e.ERROR_CODE_GROUP_ID_NOT_FOUND,
        "there is no group {group_id!r}. Check the name with `holdfast group list`",
    ),
    r.OtherGroupType: Coded(
        e.ERROR_CODE_GROUP_ID_NOT_FOUND, "the group {group_id!r} is not for this call: {problem}"
    ),
    r.NonEmptyGroup: Coded(
        e.ERROR_CODE_NON_EMPTY_GROUP,
        "the group still has {members} members. Stop them or remove them first",
    ),
    r.GroupSubscribedToTopic: Coded(
        e.ERROR_CODE_GROUP_SUBSCRIBED_TO_TOPIC,
        "a member subscribes to the topic {topic!r}, so its offsets stay. Stop the member first",
    ),
    r.TopicInUse: Coded(
        e.ERROR_CODE_GROUP_SUBSCRIBED_TO_TOPIC,
        "groups with members subscribe to the topic {topic!r}: {groups}. Stop their members first, "
        "or delete it all the same with force (`holdfast topic delete --force`): they lose their "
        "partitions of it",
    ),
    r.OffsetMetadataTooLarge: Coded(
        e.ERROR_CODE_OFFSET_METADATA_TOO_LARGE,
        "the metadata beside the offset has {length} characters, {most} are allowed. Shorten it",
    ),
    r.InvalidCommitOffsetSize: Coded(
        e.ERROR_CODE_INVALID_COMMIT_OFFSET_SIZE,
        "the commit takes about {size} bytes of the log, {most} are allowed at once. Commit fewer "
        "partitions in a call, or shorter metadata",
    ),
    r.UnknownTopic: Coded(
        e.ERROR_CODE_UNKNOWN_TOPIC_OR_PARTITION,
        "there is no topic or partition {topic!r}. Check it with `holdfast topic list`",
    ),
    r.TopicExists: Coded(
        e.ERROR_CODE_TOPIC_ALREADY_EXISTS,
        "a topic {topic!r} exists already. Use it, or choose another name",
    ),
    r.InvalidTopic: Coded(
        e.ERROR_CODE_INVALID_TOPIC_EXCEPTION,
        "no topic can be named {topic!r}: {problem}. Choose another name",
    ),
    r.InvalidPartitions: Coded(
        e.ERROR_CODE_INVALID_PARTITIONS,
        "topic {topic!r} cannot have this number of partitions: {problem}",
    ),
    r.InvalidConfig: Coded(
        e.ERROR_CODE_INVALID_CONFIG,
        "setting {key!r}: {problem}. See `holdfast settings list`",
    ),
    r.PolicyViolation: Coded(
        e.ERROR_CODE_POLICY_VIOLATION,
        "the cluster has {counted} {what}, and {more} more would exceed {setting} = {most}. Delete "
        "groups, topics or offsets that are not needed, or let an operator raise it: `holdfast "
        "settings set {setting}=…`",
    ),
    r.UnsupportedVersion: Coded(
        e.ERROR_CODE_UNSUPPORTED_VERSION,
        "{what} needs level {needed}; the cluster is at level {level} until an operator ends its "
        "upgrade: `holdfast cluster upgrade finish`",
    ),
    r.TopicAuthorizationFailed: Coded(
        e.ERROR_CODE_TOPIC_AUTHORIZATION_FAILED,
        "no grant lets this principal do this with the topic {topic!r}. An administrator can give "
        "one: `holdfast acl grant`",
    ),
    r.GroupAuthorizationFailed: Coded(
        e.ERROR_CODE_GROUP_AUTHORIZATION_FAILED,
        "no grant lets this principal do this with the group {group_id!r}. An administrator can "
        "give one: `holdfast acl grant`",
    ),
    r.InstanceForbidden: Coded(
        e.ERROR_CODE_GROUP_AUTHORIZATION_FAILED,
        "the instance id {instance_id!r} belongs to a member of another principal. Use an instance "
        "id of your own, or let an administrator remove that member",
    ),
    r.UnknownServerError: Coded(
        e.ERROR_CODE_UNKNOWN_SERVER_ERROR,
        "a rule was broken inside the node, so nothing was changed: {problem}. The node's log has "
        "an alarm; please report it",
    ),
    r.FencedMemberEpoch: Coded(
        e.ERROR_CODE_FENCED_MEMBER_EPOCH,
        "the heartbeat speaks of member epoch {sent}, the member is at {current}: it missed a "
        "change, or another process uses its id. Drop all partitions, and join again with the same "
        "member id and epoch 0",
    ),
    r.PastHeartbeat: Coded(
        e.ERROR_CODE_FENCED_MEMBER_EPOCH,
        "heartbeat {sent} of member {member_id!r} comes after a later one, or after another life "
        "of its process began (the highest heard is {highest}), so it changes nothing. Nobody "
        "waits for this answer; if somebody does, two processes use this member id: drop all "
        "partitions, and join with a member id of your own",
    ),
    r.StaleMemberEpoch: Coded(
        e.ERROR_CODE_STALE_MEMBER_EPOCH,
        "the call speaks of member epoch {sent}, the member is at {current}. Try again with the "
        "epoch that the next heartbeat's answer gives",
    ),
    r.NotChosen: Coded(
        e.ERROR_CODE_UNKNOWN_MEMBER_ID,
        "member {member_id!r} is in the group, but not the one to compute its target: that is "
        "{chosen!r}, if anybody. A target came meanwhile, or this member took too long, or failed. "
        "Go on with heartbeats; an answer says should_compute if it is asked again",
    ),
    r.StaleAssignment: Coded(
        e.ERROR_CODE_STALE_MEMBER_EPOCH,
        "the target is for group epoch {sent}, and the group is at {current}: it, or who is "
        "in it, has changed since PrepareAssignment was answered. If the next heartbeat's answer "
        "still says should_compute, prepare and compute again",
    ),
    r.UnreleasedInstanceId: Coded(
        e.ERROR_CODE_UNRELEASED_INSTANCE_ID,
        "the instance id {instance_id!r} is in use by member {holder!r} of client "
        "{holder_client_id!r} for {time_held}, and it was not released. Try again until that "
        "member releases it (member epoch -2) or its session ends, or use an instance id of your "
        "own",
    ),
    r.UnsupportedAssignor: Coded(
        e.ERROR_CODE_UNSUPPORTED_ASSIGNOR,
        "the service has no assignor {name!r}; it has {known}. Name one of these, or none",
    ),
    r.InvalidRegularExpression: Coded(
        e.ERROR_CODE_INVALID_REGULAR_EXPRESSION,
        "the regular expression {regex!r} cannot be used: {problem}. Write it in the syntax of RE2",
    ),
    r.NotCoordinator: Coded(
        e.ERROR_CODE_NOT_COORDINATOR,
        "this node lost the leadership while the call was waiting. Ask the leader, with the same "
        "request id",
    ),
    r.Superseded: Status(
        grpc.StatusCode.ABORTED,
        "unknown",
        "a later call of the same member took this one's place; wait for that one's answer",
    ),
    r.RequestIdReused: Status(
        grpc.StatusCode.INVALID_ARGUMENT,
        "not-applied",
        "holdfast.request_id: {request_id} was used for another request. Make a new id for each "
        "request, and keep it only when you repeat the same one",
    ),
    r.RequestTooOld: Status(
        grpc.StatusCode.FAILED_PRECONDITION,
        "unknown",
        "holdfast.request_id: {request_id} is older than the {window_ms} ms for which answers are "
        "kept, so nobody can tell whether it was done. Look at the state, then use a new id",
    ),
}


def sentence(rejection: Rejection, *, time_held: str = "some time") -> str:
    """Write the sentence of a rejection: what happened, why, and what to do next.

    `time_held`: for how long the holder has had the identity. The rejection does not have it, since
    it changes all the time; the caller does.
    """
    values = {field.name: _told(field.name, rejection) for field in fields(rejection)}
    values["time_held"] = time_held
    if isinstance(rejection, r.TopicInUse):
        values["groups"] = _few(rejection.group_ids, rejection.count)
    if isinstance(rejection, r.UnsupportedAssignor):
        values["known"] = ", ".join(map(repr, rejection.known)) or "none"
    return readable(TABLE[type(rejection)].text.format_map(values))


def _few(names: tuple[str, ...], count: int) -> str:
    """List the names, and say how many more there are."""
    more = f" and {count - len(names)} more" if count > len(names) else ""
    if not names:
        return f"{count} that you may not see"
    return ", ".join(repr(truncate(name)) for name in names) + more


def _told(field: str, rejection: Rejection) -> object:
    """Convert a field for a sentence: names of any length are cut, a problem is our own text."""
    value: object = getattr(rejection, field)
    return truncate(value) if isinstance(value, str) and field != "problem" else value


def code_of(rejection: Rejection | None) -> Code:
    """Return the error code; raises CallFailed or NotCoordinator for a refusal that has none."""
    if rejection is None:
        return e.ERROR_CODE_NONE
    row = TABLE[type(rejection)]
    if isinstance(row, Status):
        raise CallFailed(row.status, sentence(rejection), row.outcome)
    if isinstance(rejection, r.NotCoordinator):
        raise NotCoordinator("")
    return row.code

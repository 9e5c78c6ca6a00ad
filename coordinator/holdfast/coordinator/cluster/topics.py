"""The cluster's own part of the log: topics, settings, and how it begins (S23).

A deletion of topics says only that they are gone. Offsets belong to their groups' parts of the log,
so each group lists in an event of its own which of them are removed (K-J34): `offsets.expire` does
it, which the node runs over the groups right after, and again at each sweep. Until then a fetch
does not show them. Knows nothing of groups but their ids, and which topics they subscribe to.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from holdfast.coordinator.cluster import settings
from holdfast.coordinator.groups import subscribers
from holdfast.coordinator.groups.lifecycle import invalid_group_id
from holdfast.coordinator.model.errors import InvariantBroken
from holdfast.coordinator.model.events import (
    ClusterFormed,
    LevelRaised,
    PartitionsAdded,
    SegmentSealed,
    SettingsChanged,
    TopicsCreated,
    TopicsDeleted,
    TopicSize,
)
from holdfast.coordinator.model.rejections import (
    InvalidPartitions,
    InvalidRequest,
    InvalidTopic,
    TopicAuthorizationFailed,
    TopicExists,
    TopicInUse,
    UnknownTopic,
)
from holdfast.coordinator.model.replies import DoneReply, NamedReply, NamedResult

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.coordinator.groups.draft import Draft
    from holdfast.coordinator.model.commands import (
        AlterSettings,
        CreatePartitions,
        CreateTopics,
        DeleteTopics,
        FormCluster,
        SealLog,
        SealSegment,
    )
    from holdfast.coordinator.model.rejections import Rejection
    from holdfast.coordinator.model.state import State

TOPIC_NAME_LENGTH_MAX: Final = 249
"""Characters, as in Kafka."""
SUBSCRIBERS_NAMED_MAX: Final = 5
"""Of the groups that keep a topic from being deleted, so many are named; the rest are counted."""

_TOPIC_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")


def form(draft: Draft, command: FormCluster) -> bool:
    """Begin a cluster's life, once; return whether it began now.

    Raises InvariantBroken for settings that are not allowed. The node checks them with
    `settings.check` before it bootstraps, so that never happens.
    """
    if draft.state.cluster_id:
        return False
    refused = settings.check(draft.state.settings, "", command.settings)
    problem = next((each for each in refused if each), None)
    if problem:
        raise InvariantBroken("S23", f"first setting {problem.key}: {problem.problem}")
    draft.emit(ClusterFormed(command.cluster_id, command.settings), "S23")
    if command.level > draft.state.level:
        draft.emit(LevelRaised(command.level), "S19")
    return True


def seal(draft: Draft, command: SealSegment | SealLog) -> None:
    """Set a boundary after the last one, and never beyond what is applied (S22).

    It must be chosen by somebody who had applied the record of the boundary before it: a segment
    tells by that record where it begins. Of two that were chosen at once, one comes to nothing.
    """
    last, sealed = command.last, draft.state.sealed
    if command.behind == sealed < last and last.index <= draft.state.applied_index:
        draft.emit(SegmentSealed(last), "S22")


def seal_log(draft: Draft, command: SealLog) -> DoneReply:
    """Set a boundary that somebody asked for, if there is anything to seal."""
    seal(draft, command)
    return DoneReply(None)


def create_topics(draft: Draft, command: CreateTopics) -> NamedReply:
    """Create the topics that are allowed; one result each."""
    twice = _named_twice(topic.name for topic in command.topics)
    results = tuple(
        NamedResult(
            topic.name,
            _forbidden(command, topic.name)
            or twice.get(topic.name)
            or _not_creatable(draft.state, topic),
        )
        for topic in command.topics
    )
    made = _granted(command.topics, results)
    if made:
        draft.emit(TopicsCreated(made), "CreateTopics")
    return NamedReply(results)


def create_partitions(draft: Draft, command: CreatePartitions) -> NamedReply:
    """Enlarge the topics whose new size is allowed; one result each."""
    twice = _named_twice(topic.name for topic in command.topics)
    results = tuple(
        NamedResult(
            topic.name,
            _forbidden(command, topic.name)
            or twice.get(topic.name)
            or _not_growable(draft.state, topic),
        )
        for topic in command.topics
    )
    made = _granted(command.topics, results)
    if made:
        draft.emit(PartitionsAdded(made), "CreatePartitions")
    return NamedReply(results)


def delete_topics(draft: Draft, command: DeleteTopics) -> NamedReply:
    """Delete the topics that exist and that no group with members needs; one result each.

    A join that is on its way to the log at this moment is not seen: its group ends as after a
    forced deletion, which the group leader's client notices.
    """
    twice = _named_twice(command.names)
    in_use = {} if command.force else _in_use(draft, command)
    results = tuple(
        NamedResult(
            name,
            _forbidden(command, name)
            or twice.get(name)
            or _unknown(draft.state, name)
            or in_use.get(name),
        )
        for name in command.names
    )
    gone = tuple(result.name for result in results if result.error is None)
    if gone:
        draft.emit(TopicsDeleted(gone), "J34")
    return NamedReply(results)


def alter_settings(draft: Draft, command: AlterSettings) -> NamedReply:
    """Change all the settings or none; one result each (S7, S23)."""
    errors = _alter_errors(draft.state, command)
    results = tuple(
        NamedResult(change.key, error)
        for change, error in zip(command.changes, errors, strict=True)
    )
    if command.changes and not any(errors):
        draft.emit(SettingsChanged(command.group_id, command.changes), "S23")
    return NamedReply(results)


def _alter_errors(state: State, command: AlterSettings) -> tuple[Rejection | None, ...]:
    group_id = command.group_id
    bad_id = invalid_group_id(group_id) if group_id else None
    if bad_id:
        return tuple(bad_id for _ in command.changes)
    twice = _named_twice(change.key for change in command.changes)
    if twice:
        return tuple(twice.get(change.key) for change in command.changes)
    return settings.check(state.settings, group_id, command.changes)


def _named_twice(names: Iterable[str]) -> dict[str, Rejection]:
    """Return the names that a call has more than once: it is not known which is meant."""
    counts = Counter(names)
    return {
        name: InvalidRequest("name", f"{name!r} stands {count} times in the call")
        for name, count in counts.items()
        if count > 1
    }


def _granted(
    topics: tuple[TopicSize, ...], results: tuple[NamedResult, ...]
) -> tuple[TopicSize, ...]:
    return tuple(
        topic for topic, result in zip(topics, results, strict=True) if result.error is None
    )


def _forbidden(
    command: CreateTopics | CreatePartitions | DeleteTopics, name: str
) -> Rejection | None:
    """Refuse before anything else: the answer must not tell whether the topic is there."""
    return TopicAuthorizationFailed(name) if name in command.forbidden else None


def _not_creatable(state: State, topic: TopicSize) -> Rejection | None:
    problem = _bad_name(topic.name)
    if problem:
        return InvalidTopic(topic.name[:TOPIC_NAME_LENGTH_MAX], problem)
    if topic.name in state.topics:
        return TopicExists(topic.name)
    return _bad_size(state, topic)


def _bad_name(name: str) -> str | None:
    if not name:
        return "it is empty"
    if len(name) > TOPIC_NAME_LENGTH_MAX:
        return f"it has {len(name)} characters, {TOPIC_NAME_LENGTH_MAX} are allowed"
    if name in {".", ".."}:
        return "'.' and '..' are not allowed"
    if not _TOPIC_NAME.fullmatch(name):
        return "only letters, digits, dot, underscore and hyphen are allowed"
    return None


def _bad_size(state: State, topic: TopicSize) -> Rejection | None:
    most = settings.of_cluster(state).topic_partitions_max
    if 1 <= topic.num_partitions <= most:
        return None
    return InvalidPartitions(topic.name, f"{topic.num_partitions} asked for, 1 to {most} allowed")


def _unknown(state: State, name: str) -> Rejection | None:
    return None if name in state.topics else UnknownTopic(name)


def _in_use(draft: Draft, command: DeleteTopics) -> dict[str, Rejection]:
    """Return the call's topics that groups of type `consumer` with members subscribe to."""
    wanted = frozenset(command.names) & draft.state.topics.keys()
    found = subscribers.of_topics(draft.rules.types, draft.state.groups, wanted, command.survey)
    return {
        topic: TopicInUse(topic, tuple(group_ids[:SUBSCRIBERS_NAMED_MAX]), len(group_ids))
        for topic, group_ids in found.items()
    }


def _not_growable(state: State, topic: TopicSize) -> Rejection | None:
    known = state.topics.get(topic.name)
    if known is None:
        return UnknownTopic(topic.name)
    if topic.num_partitions <= known.num_partitions:
        problem = f"it has {known.num_partitions} already, and the number can only grow"
        return InvalidPartitions(topic.name, problem)
    return _bad_size(state, topic)

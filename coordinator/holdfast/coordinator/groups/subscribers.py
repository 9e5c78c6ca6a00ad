"""Finds groups that subscribe to topics to be deleted; each type reads its members."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Container

    from holdfast.coordinator.groups.group_type import Types
    from holdfast.coordinator.model.ids import GroupId, TopicName
    from holdfast.coordinator.model.state import Group
    from holdfast.coordinator.model.subscriptions import Survey
    from holdfast.coordinator.structures.pmap import PMap


def of_topics(
    types: Types, groups: PMap[GroupId, Group[Any]], topics: Container[TopicName], survey: Survey
) -> dict[TopicName, list[GroupId]]:
    """Find the groups that subscribe to each of these topics, sorted; omit a topic without any.

    Looks into the groups of the survey, and into those that have changed since it was taken.
    """
    found: dict[TopicName, list[GroupId]] = {}
    for group_id in sorted(survey.subscribed.union(groups.changed_since(survey.groups))):
        group = groups.get(group_id)
        for topic in types[group.group_type].names(group, topics) if group else ():
            found.setdefault(topic, []).append(group_id)
    return found

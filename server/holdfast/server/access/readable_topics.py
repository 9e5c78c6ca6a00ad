"""Which topics members get by a regular expression: those that all who use it may read (K-P9).

A result is one for the group, so it has to be right for each member that has the expression: Kafka
takes what the member may see whose heartbeat began the lookup, and gives the others the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.coordinator.kernel.group_types import type_of
from holdfast.runtime.groups.regex_resolver import everything
from holdfast.server.access.table import topics_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.coordinator.model.ids import GroupId, Principal, TopicName
    from holdfast.coordinator.model.state import State
    from holdfast.runtime.groups.regexes import Counts
    from holdfast.server.access.gate import Gate

_METHOD: Final = "GroupService.ConsumerGroupHeartbeat"
_CALL: Final = "ConsumerGroupHeartbeat"


class ReadableTopics:
    """Asks the gate for all users of an expression in a group."""

    def __init__(self, gate: Gate) -> None:
        self._gate, self._need = gate, topics_of(_METHOD)

    def __call__(self, state: State, group_id: GroupId) -> Counts:
        """Return what says, for one lookup, whether a topic counts for an expression."""
        if self._gate.open:
            return everything
        users = _users(state, group_id)

        def counts(regex: str, topic: TopicName) -> bool:
            return all(self._may(principal, topic) for principal in users.get(regex, ()))

        return counts

    def _may(self, principal: Principal, topic: TopicName) -> bool:
        return self._gate.may(principal, _CALL, self._need, topic)


def _users(state: State, group_id: GroupId) -> Mapping[str, set[Principal]]:
    """Return the principals whose members have an expression, by the expression."""
    group, users = state.groups.get(group_id), dict[str, set[str]]()
    for regex, principal in type_of(group).regex_users(group) if group else ():
        users.setdefault(regex, set()).add(principal)
    return users

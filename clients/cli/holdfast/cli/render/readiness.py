"""What keeps a cluster from being whole: one sentence from what its nodes tell of themselves.

Asks nobody; `holdfast cluster wait` asks the nodes and repeats the question.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.v1.admin_pb2 import DescribeClusterResponse as Described


class Readiness:
    """One wait for a cluster to be whole: what it lacks, from look to look.

    Whole means: every node that was asked answers, all know the same leader, which is one of them
    and has applied an entry, no node forms or rebuilds, and each has applied the entries up to the
    goal. The goal is what was committed when a leader was first seen. What is committed meanwhile
    does not count: the nodes of a busy cluster are never seen at the same entry, since they are
    asked one after another.
    """

    def __init__(self) -> None:
        """Begin before the first look."""
        self._goal: int | None = None

    def missing(self, seen: Sequence[tuple[str, Described | None]]) -> str:
        """Return what is missing now, or "" if the cluster is whole.

        `seen`: each node's address, and its answer if it gave one.
        """
        answers = [one for _, one in seen if one is not None]
        leader = next((one for one in answers if one.leader and one.leader == one.node), None)
        if leader is not None and self._goal is None:
            self._goal = leader.commit_index
        silent = [address for address, one in seen if one is None]
        if silent:
            return f"{', '.join(silent)}: no answer"
        if leader is None or self._goal is None:
            return "none of these nodes leads"
        if not leader.applied_index:
            return f"{leader.node} leads, but has applied no entry yet"
        goal = min(self._goal, leader.commit_index)
        return next((told for one in answers if (told := _lacks(one, leader, goal))), "")


def _lacks(one: Described, leader: Described, goal: int) -> str:
    """Return what a node still lacks, in the eyes of the leader and in its own."""
    if (one.term, one.leader) != (leader.term, leader.node):
        return f"{one.node} does not know yet that {leader.node} leads in term {leader.term}"
    roles = {node.role for told in (one, leader) for node in told.nodes if node.name == one.node}
    role = next((role for role in ("forming", "rebuilding", "unknown") if role in roles), "")
    if role:
        return f"{one.node} is {_WORDS[role]}"
    if one.applied_index < goal:
        return f"{one.node} has applied {one.applied_index} of {goal} entries"
    return ""


_WORDS = {
    "forming": "forming a new cluster",
    "rebuilding": "rebuilding its disk from the others",
    "unknown": "not connected to the node that leads",
}

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

    The nodes of a busy cluster are never seen at the same entry, since they are asked one after
    another while it commits. So each has to apply what was committed when a leader was first seen,
    and not what is committed meanwhile.
    """

    def __init__(self) -> None:
        """Begin before the first look."""
        self._goal: int | None = None

    def missing(self, seen: Sequence[tuple[str, Described | None]]) -> str:
        """Return what is missing now, or "" if the cluster is whole; `seen` as `unready` has it."""
        leader = _leader([one for _, one in seen if one is not None])
        if leader is not None and self._goal is None:
            self._goal = leader.commit_index
        return unready(seen, self._goal)


def unready(seen: Sequence[tuple[str, Described | None]], goal: int | None = None) -> str:
    """Return what is missing, or "" if the cluster is whole.

    `seen`: each node's address, and its answer if it gave one. `goal`: the index that every node
    must have applied; None: all that the leader knew to be committed. Whole means: every node that
    was asked answers, all know the same leader, which is one of them and has applied an entry, no
    node forms or rebuilds, and each has applied the entries up to the goal.
    """
    silent = [address for address, one in seen if one is None]
    if silent:
        return f"{', '.join(silent)}: no answer"
    answers = [one for _, one in seen if one is not None]
    leader = _leader(answers)
    if leader is None:
        return "none of these nodes leads"
    if not leader.applied_index:
        return f"{leader.node} leads, but has applied no entry yet"
    goal = leader.commit_index if goal is None else min(goal, leader.commit_index)
    return next((told for one in answers if (told := _lacks(one, leader, goal))), "")


def _leader(answers: Sequence[Described]) -> Described | None:
    return next((one for one in answers if one.leader and one.leader == one.node), None)


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

"""Which nodes a local cluster has, as it was when it last served: for its next start.

The nodes' logs know it, and these are closed while the cluster is stopped; the files of the nodes
say only where it began. So what the nodes tell while they serve is noted in DIR/nodes.json. It may
be older than the logs, whose word counts as soon as the nodes run.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from holdfast.v1.admin_pb2 import DescribeClusterResponse

NAME: Final = "nodes.json"


@dataclass(frozen=True, slots=True)
class Standing:
    """The names of a cluster's nodes, each tuple in order."""

    voters: tuple[str, ...]
    learners: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    index: int = 0
    """The entry of the log that says so; 0: the nodes' files do."""
    recovery_number: int = 0
    """How often the cluster was restored: what it tells after it is newer."""

    @property
    def nodes(self) -> frozenset[str]:
        """All that get the log."""
        return frozenset((*self.voters, *self.learners))

    def is_older_than(self, other: Standing) -> bool:
        """Return whether another one is newer news."""
        return (self.recovery_number, self.index) < (other.recovery_number, other.index)


def told_by(answer: DescribeClusterResponse) -> Standing | None:
    """Return what a node tells; None if another leader may yet undo it, or it tells nothing."""
    voters = tuple(node.name for node in answer.nodes if node.standing == "voter")
    learners = tuple(node.name for node in answer.nodes if node.standing == "learner")
    if not voters or answer.membership_index > answer.commit_index:
        return None
    removed = tuple(answer.removed_nodes)
    return Standing(voters, learners, removed, answer.membership_index, answer.recovery_number)


def read(directory: Path) -> Standing | None:
    """Read what was noted last; None: nothing, or nothing that can be read."""
    try:
        told = json.loads((directory / NAME).read_text())
        names = [tuple(map(str, told[kind])) for kind in ("voters", "learners", "removed")]
        voters, learners, removed = names
        index, recovery_number = int(told["index"]), int(told["recovery_number"])
        return Standing(voters, learners, removed, index, recovery_number)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write(directory: Path, standing: Standing) -> None:
    """Note it, in one step."""
    draft = directory / f".{NAME}.{os.getpid()}"
    draft.write_text(json.dumps(asdict(standing), indent=2) + "\n")
    draft.replace(directory / NAME)


def newest(answers: Iterable[DescribeClusterResponse], known: Standing | None) -> Standing | None:
    """Return the newest news of several answers and of what is known; None if there is none."""
    for told in map(told_by, answers):
        if told is not None and (known is None or known.is_older_than(told)):
            known = told
    return known

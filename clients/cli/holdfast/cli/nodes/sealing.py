"""Wait until every node has sealed its log up to a boundary: what each tells of itself.

Nodes seal one after another, in the background, so the leader's answer is not the end of it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from holdfast.cli.ending import UNREACHED, fail
from holdfast.cli.nodes.every_node import LEARNER, VOTER, seen_by

if TYPE_CHECKING:
    from holdfast.cli.connect import Cluster
    from holdfast.cli.nodes.every_node import Seen
    from holdfast.v1.extras_pb2 import Position

_LOOK_SECONDS: Final = 0.25
"""Between two looks at the nodes."""


def await_sealed(cluster: Cluster, boundary: Position, ends_at: float) -> list[str]:
    """Return the names of the nodes once all have sealed; ends the command after `ends_at`."""
    while True:
        nodes = [one for one in seen_by(cluster) if one.standing in {VOTER, LEARNER}]
        late = [f"{one.name} {why}" for one in nodes if (why := _lacks(one, boundary))]
        if not late:
            return [one.name for one in nodes]
        if time.monotonic() >= ends_at:
            fail(
                f"the boundary {place(boundary)} is set, but not every node is known to have "
                f"sealed up to it: {'; '.join(late)}. Nodes seal one after another, by themselves: "
                "the same command looks again",
                UNREACHED,
            )
        time.sleep(_LOOK_SECONDS)


def place(position: Position) -> str:
    """Write a position as other commands do."""
    return f"{position.index}.{position.ordinal}"


def _lacks(one: Seen, boundary: Position) -> str:
    """Say what is missing at a node; empty: nothing is."""
    if one.answer is None:
        return "does not answer"
    if not one.answer.HasField("facts"):
        return "tells readers of the cluster alone (`holdfast acl`)"
    history = one.answer.facts.history
    sealed = history.sealed
    if (sealed.index, sealed.ordinal) >= (boundary.index, boundary.ordinal):
        return ""
    if history.sealing_problem:
        return f"says: {history.sealing_problem}"
    if not history.HasField("sealed"):
        return "has sealed nothing, or its version does not tell it"
    return f"has sealed up to {place(sealed)}"

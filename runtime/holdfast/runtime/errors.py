"""The errors that end a command without a reply of the group protocol.

Each error says what happened and what to do next, and whether the change may have happened (S5).
Knows no gRPC: `holdfast.server` has the table of statuses and codes.
"""

from __future__ import annotations

from typing import ClassVar, Literal

Outcome = Literal["not-applied", "unknown"]


class CommandFailed(Exception):
    """A command ended without a reply. `outcome`: whether its change was applied."""

    outcome: ClassVar[Outcome] = "not-applied"

    def __init__(self, sentence: str) -> None:
        """`sentence` tells people what happened, why, and what to do next."""
        super().__init__(sentence)
        self.sentence = sentence


class NotCoordinator(CommandFailed):
    """This node does not lead; another try, elsewhere, is safe (S5)."""

    def __init__(self, leader: str) -> None:
        """`leader`: `host:port` of the node that leads, empty if unknown."""
        hint = f"ask {leader}" if leader else "no leader is known yet, try again shortly"
        super().__init__(f"this node does not lead the cluster: {hint}")
        self.leader = leader


class Loading(CommandFailed):
    """This node leads, but has not applied its own no-op yet (S10 d)."""

    def __init__(self) -> None:
        super().__init__(
            "this node was just elected and still applies what came before; try again here"
        )


class CatchingUp(CommandFailed):
    """This node was just started: what it would show may be older than what it has shown (S4)."""

    def __init__(self) -> None:
        super().__init__(
            "this node was started, and has not applied all that was committed before, or has not "
            "heard a leader yet that knows how far that was. Ask another node, or try again "
            "shortly; if this lasts, `holdfast cluster status` shows which nodes are away"
        )


class Stopping(CommandFailed):
    """The node shuts down: for a caller it is a node that does not lead any more (S5).

    So the answer to a parked join, whose member is on the log, does not say that nothing happened.
    """

    def __init__(self) -> None:
        super().__init__("this node is shutting down; ask another one")


class RuleBroken(CommandFailed):
    """A batch broke a rule on its own state, so it was never proposed (S6)."""

    def __init__(self, what: str) -> None:
        """Make the sentence; `what` is the rule, and how it was broken."""
        super().__init__(
            f"a rule was broken inside the node, so nothing was changed: {what}. The node's log "
            "has an alarm; please report it"
        )


class Exhausted(CommandFailed):
    """A resource is used up (proposals, disk: S20); nothing was applied."""


class LeadershipLost(CommandFailed):
    """The proposal was in the log when the leadership was lost (S5)."""

    outcome = "unknown"

    def __init__(self) -> None:
        super().__init__(
            "this node lost the leadership while the change was on its way to the other nodes, so "
            "it may or may not have happened; repeat the call with the same request id"
        )


class StoppedMeanwhile(CommandFailed):
    """The node shuts down while the call's change is on its way to the log (S5)."""

    outcome = "unknown"

    def __init__(self) -> None:
        super().__init__(
            "this node is shutting down while the change was on its way, so it may or may not have "
            "happened; repeat the call elsewhere with the same request id"
        )


class Crashed(CommandFailed):
    """A defect in the node: its log has the traceback, the caller cannot know the outcome."""

    outcome = "unknown"

    def __init__(self, what: str) -> None:
        """Make the sentence; `what` is what the node was doing for the caller."""
        super().__init__(
            f"this node failed inside while it served {what}; its log has the details. Repeat the "
            "call with the same request id"
        )

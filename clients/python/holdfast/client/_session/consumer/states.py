"""The table of a member's states and of the inputs that lead from one to the next (KIP-848).

The session moves by this table alone, and the diagram in docs/clients.md is drawn from it. States
have the names of Kafka's client; RECONCILING is two here, for partitions are let go of first, and
taken up after that. Knows names, and no rules: which input an answer amounts to, session.py says.
"""

from __future__ import annotations

import enum
from typing import Final


class State(enum.Enum):
    """Where a member stands."""

    UNSUBSCRIBED = "UNSUBSCRIBED"
    """In no group: it was not started, has unsubscribed, or has left."""
    JOINING = "JOINING"
    """Says epoch 0 and all its fields, until the group takes it."""
    REVOKING = "REVOKING"
    """RECONCILING, first half: waits until the user has let go of what is not to be owned any more,
    or has heard that it was lost."""
    ASSIGNING = "ASSIGNING"
    """RECONCILING, second half: waits until the user has heard of what is new."""
    ACKNOWLEDGING = "ACKNOWLEDGING"
    """Has told the group what it owns, and waits for the answer: others may wait for that."""
    STABLE = "STABLE"
    """Owns what it is to own."""
    FENCED = "FENCED"
    """The group does not know it, or not at this epoch: all is lost, and on_lost runs."""
    PREPARE_LEAVING = "PREPARE_LEAVING"
    """Wants to leave, and waits until the user has let go of everything."""
    LEAVING = "LEAVING"
    """Owns nothing, and waits for the answer to its goodbye."""
    STALE = "STALE"
    """Has left because the program did not say that it works; waits until it does."""
    FATAL = "FATAL"
    """Refused for a reason that does not heal by itself."""


class Input(enum.Enum):
    """What moves a member from one state to the next; the values are the words of the diagram."""

    SUBSCRIBED = "subscribed"
    """The user wants topics, for the first time or others than those that were refused."""
    TAKES = "something to let go of"
    """What the group gives leaves out something that is owned."""
    GIVES = "something new"
    """What the group gives has more than what is owned, and nothing is to be let go of."""
    NOTHING_NEW = "owns it already"
    """The group gives what is owned: at a join nothing, else the acknowledgement is answered."""
    LET_GO = "let go of"
    """The user has let go of it, and nothing can be taken up now."""
    LET_GO_FOR_MORE = "let go of, something new"
    """The user has let go of it, and there is something to take up."""
    TAKEN_UP = "on_assigned has returned"
    LEASE_ENDED = "own clock"
    """Ownership has ended by the own clock (S11)."""
    FENCED = "FENCED_MEMBER_EPOCH, UNKNOWN_MEMBER_ID"
    HEARD = "on_lost has returned"
    REFUSED = "refused"
    """Any code that does not heal, as FENCED_INSTANCE_ID."""
    DEPARTS = "unsubscribe, restart, leave"
    """The user wants out, or the user's code has failed."""
    READY_TO_LEAVE = "callbacks have returned"
    IDLE = "working() not called"
    HOLDS_ITSELF = "its own place is taken by itself"
    """A static member's place is still that of its own earlier life, which the group fenced."""
    LEFT = "answered or given up"
    LEFT_IDLE = "answered or given up, idle"
    WORKS = "working() called"


_S, _I = State, Input
_IN_GROUP: Final = (_S.REVOKING, _S.ASSIGNING, _S.ACKNOWLEDGING, _S.STABLE)

TABLE: Final[dict[tuple[State, Input], State]] = {
    (_S.UNSUBSCRIBED, _I.SUBSCRIBED): _S.JOINING,
    (_S.JOINING, _I.GIVES): _S.ASSIGNING,
    (_S.JOINING, _I.NOTHING_NEW): _S.STABLE,
    (_S.REVOKING, _I.LET_GO): _S.ACKNOWLEDGING,
    (_S.REVOKING, _I.LET_GO_FOR_MORE): _S.ASSIGNING,
    (_S.REVOKING, _I.TAKES): _S.REVOKING,
    (_S.ASSIGNING, _I.TAKEN_UP): _S.ACKNOWLEDGING,
    (_S.ASSIGNING, _I.TAKES): _S.REVOKING,
    (_S.ASSIGNING, _I.GIVES): _S.ASSIGNING,
    (_S.ACKNOWLEDGING, _I.NOTHING_NEW): _S.STABLE,
    (_S.ACKNOWLEDGING, _I.TAKES): _S.REVOKING,
    (_S.ACKNOWLEDGING, _I.GIVES): _S.ASSIGNING,
    (_S.STABLE, _I.TAKES): _S.REVOKING,
    (_S.STABLE, _I.GIVES): _S.ASSIGNING,
    **{(state, _I.LEASE_ENDED): _S.REVOKING for state in _IN_GROUP},
    **{(state, _I.FENCED): _S.FENCED for state in (_S.JOINING, *_IN_GROUP)},
    **{(state, _I.REFUSED): _S.FATAL for state in (_S.JOINING, *_IN_GROUP)},
    **{(state, _I.DEPARTS): _S.PREPARE_LEAVING for state in (_S.JOINING, *_IN_GROUP)},
    **{(state, _I.IDLE): _S.LEAVING for state in (_S.JOINING, *_IN_GROUP)},
    (_S.JOINING, _I.HOLDS_ITSELF): _S.LEAVING,
    (_S.FENCED, _I.HEARD): _S.JOINING,
    (_S.FENCED, _I.DEPARTS): _S.UNSUBSCRIBED,
    (_S.PREPARE_LEAVING, _I.READY_TO_LEAVE): _S.LEAVING,
    (_S.PREPARE_LEAVING, _I.FENCED): _S.UNSUBSCRIBED,
    (_S.PREPARE_LEAVING, _I.REFUSED): _S.FATAL,
    (_S.LEAVING, _I.LEFT): _S.UNSUBSCRIBED,
    (_S.LEAVING, _I.LEFT_IDLE): _S.STALE,
    (_S.STALE, _I.WORKS): _S.JOINING,
    (_S.STALE, _I.DEPARTS): _S.UNSUBSCRIBED,
    (_S.FATAL, _I.SUBSCRIBED): _S.JOINING,
    (_S.FATAL, _I.DEPARTS): _S.PREPARE_LEAVING,
}
"""What is not in it cannot happen, or changes nothing: session.py asks before it moves."""

IN_GROUP: Final = frozenset(_IN_GROUP)
"""States in which the group has the member at an epoch that it knows, and gives it partitions."""
BEATING: Final = frozenset({State.JOINING, State.PREPARE_LEAVING, *IN_GROUP})
"""States in which heartbeats go out, callbacks or not."""
RECONCILING: Final = frozenset({State.REVOKING, State.ASSIGNING})


class GroupState(enum.Enum):
    """The five steps of a rebalance that the first design of such a client had (ADR 42): a view."""

    UNJOINED = enum.auto()
    """No rebalance."""
    PREPARE = enum.auto()
    """A heartbeat that asks to join is on its way."""
    ASSIGN = enum.auto()
    """Callbacks of the user run."""
    COMPLETE = enum.auto()
    """They have returned, and the group is told."""
    STABLE = enum.auto()


VIEW: Final[dict[State, GroupState]] = {
    State.UNSUBSCRIBED: GroupState.UNJOINED,
    State.JOINING: GroupState.PREPARE,
    State.REVOKING: GroupState.ASSIGN,
    State.ASSIGNING: GroupState.ASSIGN,
    State.ACKNOWLEDGING: GroupState.COMPLETE,
    State.STABLE: GroupState.STABLE,
    State.FENCED: GroupState.UNJOINED,
    State.PREPARE_LEAVING: GroupState.ASSIGN,
    State.LEAVING: GroupState.COMPLETE,
    State.STALE: GroupState.UNJOINED,
    State.FATAL: GroupState.UNJOINED,
}

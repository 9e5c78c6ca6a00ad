"""The deviations that can be taken out by name, so that a test can show what each one prevents.

Only the test harness passes anything but ALL. A deviation that replaces a defect of the stock
engine and has no switch here is shown on the stock engine itself.
"""

from __future__ import annotations

from enum import Enum


class Switch(Enum):
    """One per defence; the value names the safety rule or the engine's defect (docs/rules)."""

    ACK_AFTER_FLUSH = "D5: an ack, a vote or the own count leaves only after the flush"
    ACK_TERM = "E-12: an ack belongs to a term"
    ACK_NO_REWIND = "D1: an ack never moves the leader behind what it has sent"
    CUT_ON_CONFLICT = "D1: a follower cuts only what conflicts"
    VOTER_ONCE = "E-11: votes are counted by voter"
    PRE_VOTE = "E-13: nobody raises a term that it could not win"
    S1_DROP = "S1: the engine drops what was decided in another term"
    S1_SKIP = "S1: every replica skips what was decided in another term"
    S3_AGREE = "S3: a node whose state differs from the majority's stops"
    S4_ORDER = "S4: the leader role follows the own no-op"
    S4_BOUND = "S4: a full hand-over holds back delivery"
    S4_CUT = "S4: only what is evolved may be cut"
    S5_UNKNOWN = "S5: a step-down tells whose outcome is unknown"
    S7_CHUNKS = "S7: long entries travel in chunks"
    S10_STICKY = "S10 a: no real vote within the election minimum of hearing a leader"
    S10_SILENCE = "S10 b: no vote after a start, for as long as was promised"
    S10_PROMISE = "S10 b: the promise of an earlier start binds"
    S10_SENT = "S10 c: the lease runs from the send time"
    S10_REVOKE = "S10 c: the lease is revoked before a new term is stored"
    S10_TRANSFER = "S10 d: a transfer gives up the lease of its term for good"
    S10_TRANSFER_TERM = "S10 d: a transfer is valid from its own term to the next only"
    S10_TERM_NOTICE = "S10 e: a refused pre-vote tells the term"
    S19_REBUILD = "S19: an empty disk has no vote"
    S19_FORM = "S19: a bootstrapping node waits for every peer"
    S19_BARRIER = "S19: a rebuild ends behind an entry that a majority without it committed"
    S19_RESET = "S19: a new disk resets the leader's progress"
    S21_COMPARE = "S21: before it votes, a node compares its disk with what its peers remember"
    S21_TWICE = "S21: after a quiet time the newest transaction is not the only one with an ack"


ALL: frozenset[Switch] = frozenset(Switch)

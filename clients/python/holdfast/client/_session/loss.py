"""Why a member has lost partitions, as the user reads it. No IO, no clock.

The reason stands on each lost partition (`Partition.lost_reason`), in `Health.lost`, and in the one
warning of the logger.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from holdfast.client._session.lease import Lease
    from holdfast.client.errors import Fenced

_STALL_PART: Final = 4
_STALL_MS_MIN: Final = 1_000
"""A stall of less than a quarter of the lease, or than a second, is not what ended it."""


@dataclass(frozen=True, slots=True)
class LostReason:
    """Why partitions were lost; `str` gives the sentence.

    `kind`: `clock` (ownership ended by the own clock, S11), `removed` (the group has removed the
    member before its session could end), `expired` (the group has waited for the member for as
    long as it may, and went on), `fenced` (another process holds the instance id), `stopped` (the
    member has ended for another reason). In the heartbeat protocol also `superseded` (what a
    callback ran for was over before the callback was), `stuck` (`working()` was not called).
    """

    kind: Literal["clock", "removed", "expired", "fenced", "stopped", "superseded", "stuck"]
    words: str

    def __str__(self) -> str:
        return self.words


def by_clock(lease: Lease, now_ms: int, stalled_ms: int, *, letting_go: bool) -> LostReason:
    """Explain why the lease ended. `stalled_ms`: how long nothing ran here before it was seen."""
    ends_at_ms = lease.ends_at_ms
    before_the_end = ends_at_ms is not None and now_ms - stalled_ms < ends_at_ms
    if before_the_end and stalled_ms >= max(lease.length_ms // _STALL_PART, _STALL_MS_MIN):
        return LostReason(
            "clock",
            f"the event loop did not run for {stalled_ms / 1000:.1f} s: the process or its machine "
            "stood still, or, in asyncio, code blocked the loop: move it into asyncio.to_thread",
        )
    if lease.ended_by_rebalance and letting_go:
        limit_s = lease.rebalance_ms * 8 // 10 / 1000
        return LostReason(
            "clock",
            f"letting go has taken {limit_s:.1f} s, 0.8 of the rebalance timeout: on_revoked or a "
            "handler is too slow, or rebalance_timeout_ms too short for it",
        )
    if lease.ended_by_rebalance:
        limit_s = lease.rebalance_ms * 8 // 10 / 1000
        return LostReason(
            "clock",
            f"the rebalance was not over after {limit_s:.1f} s, 0.8 of the rebalance timeout",
        )
    limit_s = lease.session_ms * 8 // 10 / 1000
    return LostReason(
        "clock",
        f"no heartbeat was accepted for {limit_s:.1f} s, 0.8 of the session timeout: the service "
        "was not reached",
    )


def unknown_member(lease: Lease, now_ms: int) -> LostReason:
    """Explain the answer UNKNOWN_MEMBER_ID, as far as the own clock can tell it apart (T-2)."""
    silent_ms = lease.silent_ms(now_ms)
    if silent_ms is None or silent_ms < lease.session_ms:
        return LostReason(
            "removed",
            "the group has removed this member: an operator did, or the group did not wait for it "
            "any longer in a rebalance",
        )
    return LostReason(
        "expired",
        f"the group has ended this member's session: it accepted no heartbeat for "
        f"{silent_ms / 1000:.1f} s",
    )


def fenced(error: Fenced) -> LostReason:
    """Another process holds the instance id: which, as far as the service said."""
    words = str(error)
    named = error.holder is None or error.holder in words
    return LostReason("fenced", words if named else f"{words}, held by {error.holder!r}")


GENERATION_PASSED = LostReason(
    "expired", "the group has gone on to another generation without this member"
)
EPOCH_PASSED = LostReason("expired", "the group has gone on to an epoch that this member missed")
REGRANTED = LostReason(
    "removed", "the group has given it to this member anew: another one may have had it in between"
)
SUPERSEDED = LostReason(
    "superseded",
    "while a callback ran for it, the group made another assignment, or the member was to leave",
)
OVER = LostReason("stopped", "the session is over")


def stuck(timeout_ms: int) -> LostReason:
    """Explain that the program did not say that it works (T-17)."""
    return LostReason(
        "stuck", f"the program has not called working() for {timeout_ms / 1000:.1f} s"
    )

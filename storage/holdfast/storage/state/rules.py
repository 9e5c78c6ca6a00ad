"""What a snapshot covers, and the checks that it may follow on a stored state: pure functions.

The store checks before it writes, so that a state that forked, or went back in time, is found while
the one on disk is still intact. Knows no storage; the journal's rules are in `journal.rules`.
"""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.storage.errors import StateContradicted, WriteRefused


@dataclass(frozen=True, slots=True)
class StateMeta:
    """What a stored state covers: all entries up to (`index`, `term`) are applied."""

    index: int
    term: int
    log_time_ms: int
    """The log time of the last entry (S8)."""
    chain: bytes
    """The head of the hash chain over all records (S3)."""


def check_snapshot(stored: StateMeta | None, new: StateMeta) -> None:
    """Refuse a snapshot that cannot follow on the stored one.

    Raises `WriteRefused` for an older one (an install may have come in between), and
    `StateContradicted` for one that no log leads to: terms and log time never fall (S8), and there
    is one chain hash at an index (S3).
    """
    if stored is None:
        return
    if new.index < stored.index:
        raise WriteRefused(f"snapshot {new.index} is older than {stored.index}")
    if new.term < stored.term:
        raise StateContradicted(
            f"snapshot {new.index} is of term {new.term}, the stored one of {stored.index} is of "
            f"term {stored.term}"
        )
    if new.log_time_ms < stored.log_time_ms:
        raise StateContradicted(
            f"the log time of snapshot {new.index} is {new.log_time_ms} ms, stored for "
            f"{stored.index} is {stored.log_time_ms} ms"
        )
    if new.index == stored.index and new.chain != stored.chain:
        raise StateContradicted(
            f"the records up to {new.index} have the chain {new.chain.hex()[:16]}, stored for them "
            f"is {stored.chain.hex()[:16]}"
        )


def check_event(new: StateMeta, index: int) -> None:
    """Raise `StateContradicted` for an event of an entry after the snapshot's (S18)."""
    if index > new.index:
        raise StateContradicted(f"snapshot {new.index} has an event of entry {index}")

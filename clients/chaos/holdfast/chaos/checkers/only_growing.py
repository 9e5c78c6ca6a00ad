"""INV-3: indexes, terms, log time, group_seq, generations and fencing tokens only grow.

None of them is ever reused: positions and tokens in the life of the cluster, generations and
group_seq in the life of a group (S3, S8, S13).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, TypeAlias

from holdfast.chaos.checkers.verdict import Verdict, Violation
from holdfast.chaos.evidence.fences import NOT_LEASES, Fence, fences
from holdfast.chaos.evidence.log_view import TOKEN_SPAN, by_group, label, place, records_of
from holdfast.chaos.history.happenings import Granted, Happening, Recorded

INVARIANT: Final = "I3"

_GRANTS: Final = frozenset({"AssignmentStored", "StaticMemberReplaced"})

Fences: TypeAlias = Mapping[tuple[str, str], Fence]


def check(history: Sequence[Happening]) -> Verdict:
    """Find numbers that do not grow."""
    records = records_of(history)
    grants = [each for each in history if isinstance(each, Granted)]
    found = [
        *_positions(records),
        *_lives(records),
        *_tokens_fall(grants, fences(history, NOT_LEASES)),
        *_tokens_reused(grants),
        *_tokens_invented(grants, records),
    ]
    return Verdict({"records": len(records), "grants": len(grants)}, found)


# --- the log ---


def _positions(records: Sequence[Recorded]) -> Iterator[Violation]:
    for before, after in pairwise(records):
        where = f"record {after.index}.{after.ordinal} after {before.index}.{before.ordinal}"
        if place(after) <= place(before):
            what = f"{where}: positions do not grow"
        elif after.term < before.term:
            what = f"{where}: term {after.term} after term {before.term}"
        elif after.log_time_ms < before.log_time_ms:
            what = f"{where}: log time {after.log_time_ms} ms after {before.log_time_ms} ms"
        else:
            continue
        yield Violation(INVARIANT, after.at_us, what)


def _lives(records: Sequence[Recorded]) -> Iterator[Violation]:
    for group, own in by_group(records).items():
        seq: int | None = None
        generation: int | None = None
        for record in own:
            if record.kind == "GroupCreated":
                seq = generation = None
            if seq is not None and record.group_seq <= seq:
                what = f"group {group!r} reuses number {record.group_seq} at {place(record)}"
                yield Violation(INVARIANT, record.at_us, what)
            seq = None if record.kind == "GroupDeleted" else record.group_seq
            started = record.fields.get("generation") if record.kind in _GENERATIONS else None
            if started is not None:
                if generation is not None and started <= generation:
                    what = f"group {group!r}: generation {started} begins after {generation}"
                    yield Violation(INVARIANT, record.at_us, what)
                generation = started


_GENERATIONS: Final = frozenset({"GenerationStarted", "GroupEmptied"})


# --- tokens ---


def _tokens_fall(grants: Iterable[Granted], fenced: Fences) -> Iterator[Violation]:
    """Find grants of a partition whose token is below an earlier one's.

    An answer may come so late that another member has the partition by then; S11 makes its right
    end before that, unless a swap or removal took it away without waiting (S12).
    """
    highest: dict[tuple[str, str, int], tuple[int, Granted]] = {}
    for grant in grants:
        fence = fenced.get((grant.group, grant.member_id))
        if fence is not None and fence.from_us <= grant.at_us:
            continue
        for topic, number, token in grant.shares:
            partition = (grant.group, topic, number)
            top, before = highest.setdefault(partition, (token, grant))
            if token < top:
                what = (
                    f"{label(partition)} is granted to {grant.member_id} with token {token}, "
                    f"after {before.member_id} had {top}"
                )
                yield Violation(INVARIANT, grant.at_us, what)
            else:
                highest[partition] = token, grant


def _tokens_reused(grants: Iterable[Granted]) -> Iterator[Violation]:
    """Find a partition's token that two members got."""
    owners: dict[tuple[str, str, int, int], str] = {}
    for grant in grants:
        for topic, number, token in grant.shares:
            owner = owners.setdefault((grant.group, topic, number, token), grant.member_id)
            if owner != grant.member_id:
                what = (
                    f"token {token} of {label((grant.group, topic, number))} was "
                    f"{owner}'s and is given to {grant.member_id}"
                )
                yield Violation(INVARIANT, grant.at_us, what)


def _tokens_invented(grants: Iterable[Granted], records: Sequence[Recorded]) -> Iterator[Violation]:
    """Find tokens whose lower part is no index of an entry that granted in this group (S13)."""
    if not records:
        return
    granting = {(each.group, each.index) for each in records if each.kind in _GRANTS}
    first, last = records[0].index, records[-1].index
    for grant in grants:
        for token in sorted({grant.token, *grant.tokens}):
            index = token % TOKEN_SPAN
            if first <= index <= last and (grant.group, index) not in granting:
                what = f"token {token} of {grant.member_id}: entry {index} granted nothing"
                yield Violation(INVARIANT, grant.at_us, what)

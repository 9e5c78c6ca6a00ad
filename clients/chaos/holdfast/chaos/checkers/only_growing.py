"""INV-3: indexes, terms, log time, group_seq, generations, epochs and fencing tokens only grow.

None of them is ever reused: positions and tokens in the life of the cluster, generations, group
epochs and group_seq in the life of a group (S3, S8, S13). A group that changes its protocol goes on
at its number; only an empty one begins anew (K-Q1). In the heartbeat protocol a target is of an
epoch that was raised before it, a member is at no epoch beyond the target, neither goes back, and a
member that is asked for partitions stays at its epoch until it has given them up (K-O3).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from holdfast.chaos.checkers.verdict import Verdict, Violation
from holdfast.chaos.evidence.calls import Call, calls_of
from holdfast.chaos.evidence.fences import NOT_LEASES, Fences, fence_of_right, fences
from holdfast.chaos.evidence.handovers import heirs, inherits
from holdfast.chaos.evidence.heartbeats.group import HeartbeatGroup
from holdfast.chaos.evidence.log_view import (
    TOKEN_SPAN,
    View,
    by_group,
    label,
    place,
    records_of,
    views,
)
from holdfast.chaos.history.happenings import Granted, Happening, Recorded

INVARIANT: Final = "I3"

_GRANTS: Final = frozenset(
    {
        *("AssignmentStored", "StaticMemberReplaced"),
        *("MemberAdvanced", "MemberSubscribed", "GroupConverted"),
    }
)
"""After the first two: a member of the heartbeat protocol takes a step; one begins to speak the
classic protocol, in which it has one token for all; a member without partitions becomes a classic
one, which has a token for them."""


def check(history: Sequence[Happening]) -> Verdict:
    """Find numbers that do not grow."""
    records = records_of(history)
    grants = [each for each in history if isinstance(each, Granted)]
    found = [
        *_positions(records),
        *_lives(records),
        *_epochs(records),
        *_epochs_told(calls_of(history)),
        *_tokens_fall(grants, fences(history, NOT_LEASES)),
        *_tokens_reused(grants, records),
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
            if record.kind == "GroupConverted" and not record.fields["members"]:
                generation = None  # K-Q1: nobody knows it any more
            started = _begun(record)
            if started is not None:
                goes_on = record.kind == "GroupConverted"
                if generation is not None and started < generation + (not goes_on):
                    what = f"group {group!r}: generation {started} begins after {generation}"
                    yield Violation(INVARIANT, record.at_us, what)
                generation = started


_GENERATIONS: Final = {
    "GenerationStarted": "generation",
    "GroupEmptied": "generation",
    "GroupConverted": "generation",
    "EpochRaised": "epoch",
}
"""The events that begin a generation, or a group epoch, and the field that has it."""


def _begun(record: Recorded) -> int | None:
    name = _GENERATIONS.get(record.kind)
    return None if name is None else int(record.fields[name])


# --- epochs ---


def _epochs(records: Sequence[Recorded]) -> Iterator[Violation]:
    for group, own in by_group(records).items():
        for before, record, after in views(own):
            if before.beats is not None and after.beats is not None:
                for what in _out_of_order(before, before.beats, record, after.beats):
                    where = f"group {group!r} at index {record.index}: {what}"
                    yield Violation(INVARIANT, record.at_us, where)


def _out_of_order(
    before: View, known: HeartbeatGroup, record: Recorded, now: HeartbeatGroup
) -> Iterator[str]:
    fields = record.fields
    if record.kind == "EpochRaised" and fields["epoch"] != before.generation + 1:
        yield f"epoch {fields['epoch']} follows {before.generation}"
    of_now = record.kind != "TargetStored" or (
        known.target_epoch < fields["epoch"] <= before.generation
    )
    if not of_now:
        of = f"of {known.target_epoch}, and the group is at {before.generation}"
        yield f"a target of epoch {fields['epoch']} follows one {of}"
    if record.kind == "MemberAdvanced" and fields["member_id"] in known.standings:
        was = known.standings[fields["member_id"]].epoch
        if not was <= fields["epoch"] <= now.target_epoch:
            of = f"and the target is of {now.target_epoch}"
            yield f"{fields['member_id']} goes from epoch {was} to {fields['epoch']}, {of}"
        if fields["asked_back"] and fields["epoch"] != was:
            yield f"{fields['member_id']} is at epoch {fields['epoch']} before it has given up"


def _epochs_told(calls: Iterable[Call]) -> Iterator[Violation]:
    """Find members that were told an older epoch after a newer one; a join begins anew."""
    told: dict[tuple[str, str, str], int] = {}
    for call in sorted(calls, key=lambda each: each.end_us):
        if call.op != "ConsumerGroupHeartbeat" or not call.ok:
            continue
        whose = (call.invoked.who, call.group, call.member_id)
        if call.invoked.arguments.get("generation", 0) <= 0:
            told.pop(whose, None)
        epoch = call.result.get("generation", 0)
        if 0 < epoch < told.get(whose, 0):
            what = f"{call} was told epoch {epoch}, after {told[whose]}"
            yield Violation(INVARIANT, call.end_us, what)
        if epoch > 0:
            told[whose] = epoch


# --- tokens ---


def _tokens_fall(grants: Iterable[Granted], fenced: Fences) -> Iterator[Violation]:
    """Find grants of a partition whose token is below an earlier one's.

    An answer may come so late that another member has the partition by then; S11 makes its right
    end before that, unless a swap or removal took it away without waiting (S12).
    """
    highest: dict[tuple[str, str, int], tuple[int, Granted]] = {}
    for grant in grants:
        for topic, number, token in grant.shares:
            fence = fence_of_right(fenced, grant.group, grant.member_id, token)
            if fence is not None and fence.from_us <= grant.at_us:
                continue
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


def _tokens_reused(grants: Iterable[Granted], records: Iterable[Recorded]) -> Iterator[Violation]:
    """Find a partition's token that two members got, but for one that was handed on with it."""
    owners: dict[tuple[str, str, int, int], str] = {}
    known = heirs(records)
    for grant in grants:
        for topic, number, token in grant.shares:
            share = (grant.group, topic, number, token)
            owner = owners.setdefault(share, grant.member_id)
            owners[share] = grant.member_id
            if not inherits(known, grant.group, grant.member_id, owner):
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

"""Describe rebalances: when, why, by whom, which members came and went, which partitions moved.

Reads `DescribedRebalance` and writes lines for people; asks no node, decides nothing.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final

from holdfast.cli.render.times import ago, ago_log
from holdfast.coordinator.model.text import span

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holdfast.cli.render.times import Now
    from holdfast.v1 import admin_pb2 as a

NOBODY: Final = "(nobody)"
OPERATOR: Final = "operator"
"""In place of a rule, if an operator started the rebalance: Kafka has no rule for that."""
_JOINED: Final = "{who} joined the group"
_WHY: Final = {
    "A5": _JOINED,
    "B1": _JOINED,
    "A15": "the group leader {who} asked for it",
    "A16": "{who} joined again with other protocols or topics",
    "A18": "{who} joined again with other protocols or topics",
    "B6": "{who} came back with other topics",
    "B8": "{who} came back, and another protocol wins the vote",
    "B12": "{who} came back while the assignment was awaited",
    "G13": "an id that was never used left",
    "G14": "{gone} left",
    "G23": "{gone} removed by {operator}",
    "F9": "the session of {who} ended: it was not heard in time",
    "A21": "{who} did not come back after its connection broke",
    "E10": "{who} did not sync in time",
    OPERATOR: "{operator} asked for it",
}
"""Causes by the rule that opened the join phase."""

_UNASKED: Final = {"F9", "A21", "E10", "G13"}
"""Rules without a caller: the reason is the service's own and repeats the cause."""


def lines(rebalance: a.DescribedRebalance, now: Now) -> Iterator[str]:
    """Yield the lines of one rebalance: a headline, then the details, indented."""
    yield headline(rebalance, now)
    yield f"  why: {why(rebalance)}"
    yield f"  members: {rebalance.members} before{changes(rebalance)}"
    yield f"  moved: {moved(rebalance)}"
    yield from (f"    {line}" for line in moves(rebalance))


def fought_over(takeovers: int) -> str:
    """Write what it may mean that an instance id was taken over so often without a release."""
    return (
        f"taken over {takeovers} times in 10 min: two processes may use this instance id (a "
        "Deployment where a StatefulSet belongs?)"
    )


def headline(rebalance: a.DescribedRebalance, now: Now) -> str:
    """Write when it began, its generations, and how long it took."""
    when = begun(rebalance, now)
    if not rebalance.HasField("join_phase_ms"):
        return f"{when}: generation {rebalance.from_generation_id} -> ? (members are joining)"
    step = f"generation {rebalance.from_generation_id} -> {rebalance.generation_id}"
    if rebalance.HasField("assigned_after_ms"):
        return f"{when}: {step} in {span(rebalance.assigned_after_ms)}"
    return f"{when}: {step}, joined in {span(rebalance.join_phase_ms)}"


def begun(rebalance: a.DescribedRebalance, now: Now) -> str:
    """Write how long ago it began."""
    if rebalance.wall_time_ms:
        return ago(rebalance.wall_time_ms, now.wall_ms)
    return ago_log(rebalance.log_time_ms, now.log_ms)


def why(rebalance: a.DescribedRebalance) -> str:
    """Write the cause, the rule, and the caller's reason."""
    text = _WHY.get(rebalance.rule, "{who}" if rebalance.member_id else "the service decided it")
    cause = text.format(
        who=who(rebalance),
        gone=gone(rebalance),
        operator=f"operator {rebalance.principal or 'unknown'}",
    )
    told = rebalance.reason and rebalance.rule not in _UNASKED
    said = f": {rebalance.reason}" if told else ""
    rule = "" if rebalance.rule == OPERATOR else f" (rule {rebalance.rule})"
    return f"{cause}{rule}{said}"


def who(rebalance: a.DescribedRebalance) -> str:
    """Write which member caused it, and whose it is."""
    name = rebalance.group_instance_id or rebalance.member_id or "a member"
    facts = []
    if rebalance.client_id and rebalance.client_id != rebalance.principal:
        facts.append(f"client {rebalance.client_id}")
    if rebalance.principal:
        facts.append(f"principal {rebalance.principal}")
    return f"{name} ({', '.join(facts)})" if facts else name


def gone(rebalance: a.DescribedRebalance) -> str:
    """Write who went, as far as they are listed."""
    names = [each.name for each in rebalance.changes if each.how != "joined"]
    if not names:
        return who(rebalance)
    rest = rebalance.gone - len(names)
    return _enumerated(names) + (f" and {rest} more" if rest > 0 else "")


def changes(rebalance: a.DescribedRebalance) -> str:
    """Write who came and went, each behind a semicolon."""
    parts = []
    by_how = sorted(rebalance.changes, key=lambda each: each.how)
    for how, some in groupby(by_how, key=lambda each: each.how):
        parts.append(f"{how} {_enumerated([each.name for each in some])}")
    rest = rebalance.joined + rebalance.gone - len(rebalance.changes)
    parts += [f"{rest} more came or went"] if rest > 0 else []
    return "".join(f"; {part}" for part in parts) or "; the same after"


def moved(rebalance: a.DescribedRebalance) -> str:
    """Write in one line how many partitions have another owner."""
    if not rebalance.HasField("assigned_after_ms"):
        return "nothing was assigned" + ("" if rebalance.HasField("join_phase_ms") else " yet")
    return counted(rebalance)


def counted(rebalance: a.DescribedRebalance) -> str:
    """Write how many partitions, or members with other ones, were counted."""
    if not rebalance.partitions_compared:
        whose = f": {_enumerated(rebalance.reassigned_names)}" if rebalance.reassigned else ""
        return f"{_count(rebalance.reassigned, 'member')} with another assignment{whose}"
    if not rebalance.moved + rebalance.given + rebalance.dropped:
        return "nothing"
    counts = (
        (rebalance.moved, "to another owner"),
        (rebalance.given, "newly owned"),
        (rebalance.dropped, "without owner now"),
    )
    return ", ".join(f"{_count(number, 'partition')} {what}" for number, what in counts if number)


def moves(rebalance: a.DescribedRebalance) -> Iterator[str]:
    """Yield the partitions that moved, a line for each pair of owners."""

    def pair(move: a.RebalanceMove) -> tuple[str, str]:
        return move.before or NOBODY, move.after or NOBODY

    for (before, after), some in groupby(sorted(rebalance.moves, key=pair), key=pair):
        yield f"{before} -> {after}: {partitions((m.topic, m.partition) for m in some)}"
    rest = rebalance.moved + rebalance.given + rebalance.dropped - len(rebalance.moves)
    if rest > 0:
        yield f"and {_count(rest, 'partition')} more"


def partitions(places: Iterable[tuple[str, int]]) -> str:
    """Format partitions by topic, with ranges: `documents 0-3,7`."""
    by_topic = groupby(sorted(places), key=lambda place: place[0])
    return "; ".join(f"{topic} {_runs([n for _, n in some])}" for topic, some in by_topic)


def _runs(numbers: list[int]) -> str:
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ",".join(str(r[0]) if len(r) == 1 else f"{r[0]}-{r[-1]}" for r in runs)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _enumerated(names: Iterable[str]) -> str:
    return ", ".join(names)

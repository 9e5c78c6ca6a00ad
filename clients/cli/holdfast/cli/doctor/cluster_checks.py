"""Checks of a cluster, from what each of its nodes answers: findings from facts, and nothing else.

Pure: `asking` gathers the facts.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple

from holdfast.cli.doctor.findings import (
    CHECKS,
    ERROR,
    OF_VIEWS,
    WARNING,
    Finding,
    Report,
)
from holdfast.cli.doctor.machine_checks import (
    certificate_end,
    disk_space,
    memory,
    open_files,
    sync_time,
)
from holdfast.cli.doctor.machine_facts import Machine
from holdfast.cli.nodes.every_node import newest
from holdfast.cli.render.disk_outlook import disk

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.v1.admin_pb2 import DescribeClusterResponse as Described

FULL_SOON_MS: Final = 14 * 86_400_000
FULL_NOW_MS: Final = 3 * 86_400_000
SKEW_MS: Final = 1_000
"""Clocks may differ by so much beyond what the measurement leaves open."""
BEHIND_MAX: Final = 10_000
"""Entries that a follower may be behind: it should take a second to apply them."""


class Seen(NamedTuple):
    """A node's answer, with when it was asked and answered by the clock of who asks."""

    name: str
    address: str
    answer: Described | None
    asked_ms: int = 0
    answered_ms: int = 0


def report_on(seen: Sequence[Seen], now_ms: int) -> Report:
    """Check a cluster as far as its nodes tell of themselves. `now_ms`: Unix time."""
    told = any(one.answer and one.answer.HasField("facts") for one in seen)
    return Report(findings_of(seen, now_ms), frozenset(CHECKS) if told else OF_VIEWS)


def findings_of(seen: Sequence[Seen], now_ms: int) -> list[Finding]:
    """Return what is not as it should be in a cluster. `now_ms`: Unix time."""
    answers = [one.answer for one in seen if one.answer is not None]
    return [
        *_quorum(seen, answers),
        *_behind(answers),
        *_versions(answers),
        *_untold(answers),
        *_clocks(seen),
        *_access(answers),
        *(found for one in answers for found in _troubles(one)),
        *(found for one in answers for found in _machine(one, now_ms)),
    ]


def _quorum(seen: Sequence[Seen], answers: Sequence[Described]) -> Iterator[Finding]:
    nodes, uncounted = _voters(seen, answers)
    silent = [one.name for one in seen if one.answer is None and one.name not in uncounted]
    needed = nodes // 2 + 1
    if not any(one.leader for one in answers):
        yield Finding(
            *("quorum", ERROR, "", "no node knows a leader"),
            "Nothing is served without one: members keep their partitions until their sessions "
            "end, and nobody can join or commit",
            f"see that at least {needed} of {nodes} nodes run and reach each other's peer port; "
            "each node's log says whom it does not reach",
        )
    if not silent:
        return
    left = nodes - len(silent) - needed
    yield Finding(
        *("quorum", ERROR if left < 0 else WARNING, ", ".join(silent)),
        f"{len(silent)} of {nodes} nodes do not answer",
        f"Changes need {needed} nodes; {max(left, 0)} more may fail before nothing is served",
        "start the node, or see why clients do not reach it; if its disk is lost, start it with "
        "--rebuild on an empty directory",
    )


def _voters(seen: Sequence[Seen], answers: Sequence[Described]) -> tuple[int, set[str]]:
    """Return how many nodes vote, and whose silence costs no vote: learners', removed nodes' (S25).

    Of what nodes tell of this, the newest news is true; if none tells anything, all count.
    """
    told = newest(answers)
    if told is None:
        return len(seen), set()
    learners = {node.name for node in told.nodes if node.standing == "learner"}
    return len(told.nodes) - len(learners), learners | {*told.removed_nodes}


def _behind(answers: Sequence[Described]) -> Iterator[Finding]:
    leader = next((one for one in answers if one.leader == one.node), None)
    if leader is None:
        return
    for node in leader.nodes:
        if not node.connected:
            yield Finding(
                *("quorum", WARNING, node.name, "the leader is not connected with this node"),
                "What it lacks grows, and its vote is missing when the leader fails",
                "see its log, the network between the peer ports, and their certificates",
            )
        elif node.role == "rebuilding":
            yield Finding(
                *("quorum", WARNING, node.name, "this node rebuilds its disk from the others"),
                "It does not count towards a majority until it has everything",
                "wait; `holdfast cluster wait` ends when it is done",
            )
    for one in answers:
        behind = leader.commit_index - one.applied_index
        if behind > BEHIND_MAX:
            yield Finding(
                *("quorum", WARNING, one.node),
                f"{behind} committed entries are not applied on this node",
                "If it has to lead now, it must apply them first, and serves nothing meanwhile",
                "see the load of its processor and its disk",
            )


def _versions(answers: Sequence[Described]) -> Iterator[Finding]:
    versions = {one.node: one.version for one in answers}
    if len(set(versions.values())) > 1:
        told = ", ".join(f"{node} runs {version}" for node, version in sorted(versions.items()))
        yield Finding(
            *("versions", WARNING, "", f"the nodes run different versions: {told}"),
            "That is meant for the time of an upgrade, not for longer",
            "install the newer version on the others, too (docs/operations/upgrading.md)",
        )
    for one in answers:
        if one.HasField("upgrade_to") and one.upgrade_to > one.level and not one.upgrade_problem:
            yield Finding(
                *("versions", WARNING, ""),
                f"level {one.level} is in force, and all nodes can run at level {one.upgrade_to}",
                "What the newer version adds to the log waits until the upgrade is ended",
                "holdfast cluster upgrade finish",
            )
    if len({one.recovery_number for one in answers}) > 1:
        told = ", ".join(f"{one.node} has {one.recovery_number}" for one in answers)
        yield Finding(
            *("quorum", ERROR, "", f"the nodes differ in their recovery number: {told}"),
            "A node from before a restore may still give out fencing tokens of the past",
            "stop the node with the lower number, and start it with --rebuild on an empty "
            "directory (docs/operations/backup.md)",
        )


def _untold(answers: Sequence[Described]) -> Iterator[Finding]:
    """Say whose machines were not looked at, so that no silence is taken for health."""
    silent = sorted(one.node for one in answers if not one.HasField("facts"))
    if silent:
        yield Finding(
            *("rights", WARNING, ", ".join(silent)),
            "tells nothing of its machine: clock, disk, memory, certificates and limits were not "
            "checked",
            "Nodes tell that to readers of the cluster alone, and versions before 0.2 to nobody",
            "ask with a certificate whose principal is a reader of the cluster: "
            "`holdfast acl grant PRINCIPAL reader --on-cluster`",
        )


def _clocks(seen: Sequence[Seen]) -> Iterator[Finding]:
    """Compare wall clocks; each was read somewhere between question and answer."""
    read = {
        one.answer.node: (
            one.answer.facts.wall_time_ms - (one.asked_ms + one.answered_ms) / 2,
            (one.answered_ms - one.asked_ms) / 2,
        )
        for one in seen
        if one.answer is not None and one.answer.facts.wall_time_ms
    }
    if len(read) < 2:  # noqa: PLR2004 - to differ takes two
        return
    usual = median(offset for offset, _ in read.values())
    for node, (offset, unsure) in sorted(read.items()):
        if abs(offset - usual) - unsure > SKEW_MS:
            ahead = "ahead of" if offset > usual else "behind"
            yield Finding(
                *("clocks", WARNING, node),
                f"its wall clock is {abs(offset - usual) / 1000:.1f} s {ahead} the others",
                "Sessions do not depend on it. But request ids are checked against log time, "
                "certificates against the wall clock, and people read its times in logs",
                "run chrony or systemd-timesyncd on this machine",
            )


def _access(answers: Sequence[Described]) -> Iterator[Finding]:
    modes = {one.access_mode for one in answers}
    if "open" in modes:
        yield Finding(
            *("settings", WARNING, "", "the access mode is open"),
            "Whoever has a client's certificate may do everything, also to others' groups",
            "grant what is needed, then `holdfast acl mode dry-run`, then `deny` "
            "(docs/operations/permissions.md)",
        )


def _troubles(one: Described) -> Iterator[Finding]:
    for trouble in one.holdfast.message.splitlines():
        yield Finding(
            *("quorum", WARNING, one.node, trouble),
            "Nodes that refuse each other are no majority",
            "do what the sentence says",
        )


def _history(one: Described) -> Iterator[Finding]:
    """Check by the node's own forecast when its disk is full, and what keeps history."""
    history = one.facts.history
    soon = history.HasField("full_in_ms") and history.full_in_ms < FULL_SOON_MS
    if history.measured_ms and soon:
        yield Finding(
            *("disk", ERROR if history.full_in_ms < FULL_NOW_MS else WARNING, one.node),
            disk(history),
            "Below its reserve a node refuses changes while it leads, and all nodes grow alike",
            "enlarge the file system, or have old history deleted (docs/operations/history.md)",
        )
    if history.hindrance:
        yield Finding(
            *("disk", WARNING, one.node),
            f"old history is not deleted as the settings say: {history.hindrance}",
            "Until then it grows, as if nothing was to be deleted",
            "do what the sentence says (docs/operations/history.md)",
        )


def _machine(one: Described, now_ms: int) -> Iterator[Finding]:
    """Check what a node tells of its machine."""
    if not one.HasField("facts"):
        return
    facts = one.facts
    found = Machine(
        resident_bytes=facts.resident_bytes,
        memory_bytes=facts.memory_bytes,
        disk_free_bytes=facts.disk_free_bytes,
        disk_total_bytes=facts.disk_total_bytes,
        open_files_max=facts.open_files_max,
        sync_p99_ms=facts.sync_p99_ms if facts.syncs else None,
    )
    yield from memory(one.node, found)
    yield from disk_space(one.node, found)
    yield from sync_time(one.node, found)
    yield from open_files(one.node, found)
    yield from _history(one)
    for certificate in facts.certificates:
        yield from certificate_end(
            one.node, f"tls.{certificate.key}", certificate.expires_ms, now_ms
        )

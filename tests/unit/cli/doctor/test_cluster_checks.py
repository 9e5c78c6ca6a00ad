"""What `holdfast doctor` finds in a cluster, from what its nodes answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.cli.doctor.cluster_checks import BEHIND_MAX, SKEW_MS, Seen, findings_of, report_on
from holdfast.cli.doctor.findings import CHECKS, Report
from holdfast.v1.admin_pb2 import (
    CertificateFact,
    DescribeClusterResponse,
    DescribedNode,
    HistoryFacts,
    NodeFacts,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.cli.doctor.findings import Finding

NOW_MS = 1_700_000_000_000
DAY_MS = 86_400_000
GIB = 1 << 30
NAMES = ("a", "b", "c")


def answer(name: str) -> DescribeClusterResponse:
    """What a node of a cluster tells to which nothing is wrong; `a` leads."""
    made = DescribeClusterResponse(
        node=name,
        leader="a",
        term=3,
        commit_index=50_000,
        applied_index=50_000,
        version="0.2.0",
        level=2,
        access_mode="deny",
        nodes=[DescribedNode(name=each, role="follower", connected=True) for each in NAMES],
        facts=NodeFacts(
            wall_time_ms=NOW_MS,
            resident_bytes=GIB,
            memory_bytes=8 * GIB,
            disk_free_bytes=80 * GIB,
            disk_total_bytes=100 * GIB,
            open_files_max=65_536,
            syncs=1_000,
            sync_p99_ms=5.0,
            certificates=[CertificateFact(key="certificate", expires_ms=NOW_MS + 300 * DAY_MS)],
        ),
    )
    if name == "a":
        made.upgrade_to = 2
    return made


def seen() -> list[Seen]:
    """Three nodes, each asked and answered within 10 ms."""
    return [Seen(name, f"{name}:7400", answer(name), NOW_MS - 5, NOW_MS + 5) for name in NAMES]


def found(nodes: Sequence[Seen]) -> list[tuple[str, str, str]]:
    """The check, severity and place of each finding."""
    return [(each.check, each.severity, each.place) for each in findings_of(nodes, NOW_MS)]


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    assert findings_of(seen(), NOW_MS) == []


def _no_leader(nodes: list[Seen]) -> None:
    for one in nodes:
        assert one.answer is not None
        one.answer.leader = ""


def _silent(nodes: list[Seen]) -> None:
    nodes[2] = Seen("c", "c:7400", None)


def _two_silent(nodes: list[Seen]) -> None:
    _silent(nodes)
    nodes[1] = Seen("b", "b:7400", None)


def of(nodes: list[Seen], place: int) -> DescribeClusterResponse:
    found_ = nodes[place].answer
    assert found_ is not None
    return found_


def facts(field: str, value: object) -> Callable[[list[Seen]], None]:
    """Node b tells this of its machine."""
    return lambda nodes: setattr(of(nodes, 1).facts, field, value)


def told(field: str, value: object, place: int = 1) -> Callable[[list[Seen]], None]:
    """A node tells this of the cluster."""
    return lambda nodes: setattr(of(nodes, place), field, value)


def _away(nodes: list[Seen]) -> None:
    of(nodes, 0).nodes[1].connected = False


def _rebuilding(nodes: list[Seen]) -> None:
    of(nodes, 0).nodes[1].role = "rebuilding"


def _expires_in(days: int) -> Callable[[list[Seen]], None]:
    def change(nodes: list[Seen]) -> None:
        of(nodes, 1).facts.certificates[0].expires_ms = NOW_MS + days * DAY_MS

    return change


def _trouble(nodes: list[Seen]) -> None:
    of(nodes, 1).holdfast.message = "node 'c' shows a certificate that is expired"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (_no_leader, ("quorum", "error", "")),
        (_silent, ("quorum", "warning", "c")),
        (_away, ("quorum", "warning", "b")),
        (_rebuilding, ("quorum", "warning", "b")),
        (_trouble, ("quorum", "warning", "b")),
        (told("applied_index", 50_000 - BEHIND_MAX - 1), ("quorum", "warning", "b")),
        (told("recovery_number", 1), ("quorum", "error", "")),
        (told("version", "0.3.0"), ("versions", "warning", "")),
        (told("upgrade_to", 3, place=0), ("versions", "warning", "")),
        (told("access_mode", "open"), ("settings", "warning", "")),
        (facts("wall_time_ms", NOW_MS + SKEW_MS + 10), ("clocks", "warning", "b")),
        (facts("wall_time_ms", NOW_MS - SKEW_MS - 10), ("clocks", "warning", "b")),
        (facts("resident_bytes", 7 * GIB), ("memory", "warning", "b")),
        (facts("disk_free_bytes", 9 * GIB), ("disk", "warning", "b")),
        (facts("disk_free_bytes", 4 * GIB), ("disk", "error", "b")),
        (facts("open_files_max", 1_024), ("settings", "warning", "b")),
        (facts("sync_p99_ms", 50.0), ("fsync", "warning", "b")),
        (facts("sync_p99_ms", 500.0), ("fsync", "error", "b")),
        (_expires_in(29), ("certificates", "warning", "b")),
        (_expires_in(6), ("certificates", "error", "b")),
        (_expires_in(-1), ("certificates", "error", "b")),
    ],
)
def test_one_thing_that_is_wrong_is_the_one_finding(
    change: Callable[[list[Seen]], None], expected: tuple[str, str, str]
) -> None:
    nodes = seen()
    change(nodes)

    assert found(nodes) == [expected]
    assert all(_says_all(each) for each in findings_of(nodes, NOW_MS))


def _says_all(finding: Finding) -> bool:
    return all((finding.what, finding.why, finding.do))


def test_without_a_majority_silent_nodes_are_an_error() -> None:
    nodes = seen()
    _two_silent(nodes)

    assert ("quorum", "error", "b, c") in found(nodes)


def test_s25_the_silence_of_who_has_no_vote_costs_no_majority() -> None:
    """Of two voters both are needed, whatever a learner and a removed node are doing."""
    nodes = seen()[:2]
    nodes += [Seen(name, f"{name}:7400", None) for name in ("c", "d")]
    of(nodes, 0).membership_index = 7
    of(nodes, 0).removed_nodes.append("d")
    of(nodes, 0).nodes[2].standing = "learner"
    assert not [check for check, *_ in found(nodes) if check == "quorum"]

    nodes[1] = Seen("b", "b:7400", None)
    assert ("quorum", "error", "b") in found(nodes)


def test_s25_who_votes_is_not_told_by_a_node_of_before_a_restore() -> None:
    """A restored cluster counts its changes anew: the recovery number says who is newer."""
    nodes = seen()
    nodes[2] = Seen("c", "c:7400", None)
    for place in (0, 1):
        of(nodes, place).recovery_number = 1
    stray = answer("old")
    stray.recovery_number, stray.membership_index = 0, 7
    del stray.nodes[1:]
    nodes.append(Seen("old", "old:7400", stray))

    assert ("quorum", "warning", "c") in found(nodes), "of three nodes one is silent"


def test_a_clock_that_was_read_slowly_is_not_called_wrong() -> None:
    """The answer may have been made at any time between the question and its arrival."""
    nodes = seen()
    of(nodes, 1).facts.wall_time_ms = NOW_MS + SKEW_MS + 500
    nodes[1] = nodes[1]._replace(asked_ms=NOW_MS - 600, answered_ms=NOW_MS + 600)

    assert found(nodes) == []


def test_what_a_caller_without_the_right_is_not_told_of_is_not_called_well() -> None:
    nodes = seen()
    for place in range(3):
        of(nodes, place).ClearField("facts")

    report = report_on(nodes, NOW_MS)

    assert [each[:3] for each in report.findings] == [("rights", "warning", "a, b, c")]
    assert report.checked == ["quorum", "versions", "rights"]


def test_all_checks_are_made_where_nodes_tell_of_their_machines() -> None:
    assert report_on(seen(), NOW_MS) == Report([], frozenset(CHECKS))


@pytest.mark.parametrize(
    ("days", "severity"), [(2.9, ["error"]), (3.1, ["warning"]), (13.9, ["warning"]), (14.1, [])]
)
def test_a_disk_that_will_be_full_soon_is_found_by_the_node_s_own_forecast(
    days: float, severity: list[str]
) -> None:
    nodes = seen()
    history = HistoryFacts(measured_ms=DAY_MS, bytes_a_day=1, full_in_ms=int(days * DAY_MS))
    told = nodes[1].answer
    assert told is not None
    told.facts.history.CopyFrom(history)

    assert found(nodes) == [("disk", each, "b") for each in severity]


def test_what_keeps_retention_from_deleting_is_found() -> None:
    nodes = seen()
    told = nodes[0].answer
    assert told is not None
    told.facts.history.CopyFrom(HistoryFacts(retention=True, hindrance="a backup is required"))

    (finding,) = findings_of(nodes, NOW_MS)
    assert (finding.check, finding.severity, finding.place) == ("disk", "warning", "a")
    assert "a backup is required" in finding.what

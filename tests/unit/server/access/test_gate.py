"""The gate: what the mode does with what no grant allows; it follows the grants at once."""

import logging

import pytest

from holdfast.coordinator.model.access import (
    CLUSTER,
    DENY,
    DRY_RUN,
    GROUP,
    MEMBER,
    READER,
    TOPIC,
    Acl,
)
from holdfast.coordinator.model.state import State
from holdfast.coordinator.structures.pmap import PMap
from holdfast.server.access.dry_run import AGAIN_S, TOLD_MAX, DryRun
from holdfast.server.access.gate import Gate, sentence
from holdfast.server.access.table import Need
from holdfast.server.audit.trail import Trail
from holdfast.server.rpc.errors import Refused
from holdfast.v1 import extras_pb2 as x
from holdfast.v1 import group_pb2 as g

JOIN = Need(GROUP, MEMBER, "group_id")
COMMIT = Need(TOPIC, MEMBER)


class Clock:
    """A clock in the hands of a test."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


class Node:
    """A state that changes, and the gate that reads it."""

    def __init__(self, mode: str, *acls: Acl) -> None:
        self.clock = Clock()
        self.state = State(access_mode=mode)
        self.grant(*acls)
        self.gate = Gate(lambda: self.state, dry_run=DryRun(self.clock))

    def grant(self, *acls: Acl) -> None:
        self.state = self.state._replace(acls=PMap((acl, acl) for acl in acls))


def test_an_open_cluster_asks_nobody() -> None:
    node = Node("")

    assert node.gate.open
    assert node.gate.may("nobody", "JoinGroup", JOIN, "g")
    assert node.gate.denied("nobody", "X", JOIN, ["g"]) == frozenset()


def test_what_no_grant_allows_is_refused_with_kafkas_code_and_who_can_help() -> None:
    node = Node(DENY, Acl("a", MEMBER, GROUP, "g"))

    node.gate.check("a", "JoinGroup", JOIN, "g")
    with pytest.raises(Refused) as refused:
        node.gate.check("b", "JoinGroup", JOIN, "g")

    assert refused.value.code == 30
    for word in ("JoinGroup", "member", "'g'", "'b'", "holdfast acl grant b member --group g"):
        assert word in refused.value.sentence
    assert node.gate.denied("a", "OffsetCommit", COMMIT, ["t"]) == {"t"}


def test_a_revocation_counts_from_the_next_call_on() -> None:
    node = Node(DENY, Acl("a", MEMBER, GROUP, "g"))
    assert node.gate.may("a", "Heartbeat", JOIN, "g")

    node.grant()
    assert not node.gate.may("a", "Heartbeat", JOIN, "g")
    node.grant(Acl("*", MEMBER, GROUP, "*"))
    assert node.gate.may("a", "Heartbeat", JOIN, "g")


def test_a_dry_run_refuses_nothing_and_tells_each_thing_once_a_while(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    node = Node(DRY_RUN, Acl("a", MEMBER, GROUP, "g"))

    for _ in range(1_000):
        assert node.gate.may("b", "JoinGroup", JOIN, "g")
        assert node.gate.may("a", "JoinGroup", JOIN, "g")
    assert [r.getMessage() for r in caplog.records] == [
        "dry run: JoinGroup by 'b' would be refused: it needs the role member on group 'g'"
    ]

    node.clock.now += AGAIN_S
    node.gate.may("b", "JoinGroup", JOIN, "g2")
    told = [r.getMessage() for r in caplog.records]
    assert "999 more" in told[1]
    assert "'g2'" in told[2]


def test_a_line_of_a_dry_run_says_which_call_it_was(caplog: pytest.LogCaptureFixture) -> None:
    """As every line that a call causes: its method and request id."""
    caplog.set_level(logging.WARNING)
    request = g.LeaveGroupRequest(holdfast=x.RequestExtras(request_id="0193"))

    Node(DRY_RUN).gate.check("b", "LeaveGroup", JOIN, "g", request)

    assert [vars(record)["call"] for record in caplog.records] == ["LeaveGroup 0193"]


def test_many_principals_cannot_fill_the_log_or_the_memory(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    node = Node(DRY_RUN)

    for number in range(3 * TOLD_MAX):
        assert node.gate.may(f"p{number}", "JoinGroup", JOIN, "g")

    assert len(caplog.records) == TOLD_MAX
    node.clock.now += AGAIN_S
    node.gate.may("p", "JoinGroup", JOIN, "g")
    assert f"{2 * TOLD_MAX} more" in caplog.records[TOLD_MAX].getMessage()


def test_a_page_is_told_why_a_principal_may_not_see_it() -> None:
    """`/metrics` has no gRPC status: it shows the sentence, with the command that helps."""
    read = Need(CLUSTER, READER)
    node = Node(DENY, Acl("scraper", READER, CLUSTER, ""))

    assert node.gate.problem("scraper", "/metrics", read) == ""
    told = node.gate.problem("b", "/metrics", read)
    for word in ("/metrics", "role reader", "cluster", "'b'", "acl grant b reader --on-cluster"):
        assert word in told


@pytest.mark.parametrize(
    ("principal", "name", "offered"),
    [
        ("b", "a; reboot", "`holdfast acl grant b member --group 'a; reboot'`"),
        ("$(reboot)", "g", "`holdfast acl grant '$(reboot)' member --group g`"),
        ("b", "team-*", None),
        ("b", "*", None),
        ("*", "g", None),
        ("b", "g" * 2_000, None),
    ],
)
def test_the_command_that_a_refusal_offers_grants_what_was_asked_and_nothing_else(
    principal: str, name: str, offered: str | None
) -> None:
    """An administrator copies it, and the names in it are the caller's choice."""
    told = sentence(principal, "JoinGroup", JOIN, name)

    assert (offered or "`holdfast acl grant --help`") in told


class Notes(Trail):
    """A trail that keeps what it is told."""

    def __init__(self) -> None:
        super().__init__(None)
        self.denials: list[tuple[str, ...]] = []

    def denied(self, *told: str) -> None:
        self.denials.append(told)


def test_what_is_refused_is_noted_once_a_call_and_what_is_left_out_of_a_list_is_not() -> None:
    node, notes = Node(DENY, Acl("a", MEMBER, GROUP, "g")), Notes()
    gate = Gate(lambda: node.state, notes)

    gate.check("a", "JoinGroup", JOIN, "g")
    assert not gate.may("b", "ListGroups", JOIN, "g")
    assert notes.denials == []

    with pytest.raises(Refused):
        gate.check("b", "JoinGroup", JOIN, "g")
    gate.denied("b", "OffsetCommit", COMMIT, ["t2", "t1", "t3"])
    assert notes.denials == [
        ("b", "JoinGroup", "group 'g'", "needs the role member"),
        ("b", "OffsetCommit", "topic 't1' and 2 more", "needs the role member"),
    ]


def test_what_a_dry_run_lets_through_is_no_denial() -> None:
    node, notes = Node(DRY_RUN), Notes()

    Gate(lambda: node.state, notes).check("b", "JoinGroup", JOIN, "g")

    assert notes.denials == []

"""The gate: what the mode does with what no grant allows; it follows the grants at once."""

import logging

import pytest

from holdfast.coordinator.model.access import DENY, DRY_RUN, GROUP, MEMBER, TOPIC, Acl
from holdfast.coordinator.model.state import State
from holdfast.coordinator.structures.pmap import PMap
from holdfast.server.access.dry_run import AGAIN_S, TOLD_MAX, DryRun
from holdfast.server.access.gate import Gate
from holdfast.server.access.table import Need
from holdfast.server.rpc.errors import Refused

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
        self.gate = Gate(lambda: self.state, DryRun(self.clock))

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

"""What Admin asks about the cluster itself, of a node with real rules, by both shells."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from holdfast.client import InvalidArgument, NotYet, sync
from holdfast.coordinator.model.events import LevelRaised, SegmentSealed
from holdfast.coordinator.model.levels import LEVEL_MAX, LEVEL_MIN
from holdfast.raft.membership import ChangeRefused, Membership
from holdfast.v1 import admin_pb2, events_pb2, log_pb2
from unit.server.nodes import Served, served

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.raft.membership import Change

WHERE = {"client_address": "h3:1", "peer_address": "h3:2"}
LEFT_OUT = {
    "ReportBackup": "only `holdfast backup verify` has verified a backup",
    "ReadEvents": "what happened is read by `holdfast log` and `holdfast replay`",
    "Watch": "as ReadEvents",
}


def told(
    story: Callable[[sync.Admin], None],
    level: int = LEVEL_MAX,
    prepare: Callable[[Served], None] = lambda _: None,
) -> None:
    """Run the blocking story against a node; its shell is the asyncio one for threads."""

    def blocking(address: str) -> None:
        with sync.Admin(address) as admin:
            story(admin)

    async def run() -> None:
        async with served() as node:
            if level > node.replica.state.level:
                node.replica.slip_in("", LevelRaised(level))
            prepare(node)
            await asyncio.to_thread(blocking, node.address)

    asyncio.run(run())


def test_every_call_of_operators_has_a_method_or_a_reason_to_have_none() -> None:
    """A call that the contract gets later is not forgotten here."""
    services = (admin_pb2.DESCRIPTOR.services_by_name, log_pb2.DESCRIPTOR.services_by_name)
    calls = {name for each in services for one in each.values() for name in one.methods_by_name}
    methods = {name.replace("_", "") for name in dir(sync.Admin) if not name.startswith("_")}

    assert {name for name in calls if name.lower() not in methods} == set(LEFT_OUT)


def test_s25_a_node_comes_and_goes_and_each_call_may_be_repeated() -> None:
    """An answer can be lost, so the same call again is answered as done."""

    def story(admin: sync.Admin) -> None:
        assert [admin.add_node("node-3", **WHERE) for _ in range(2)] == [True, False]
        assert [admin.promote_node("node-3") for _ in range(2)] == [True, False]
        assert [admin.remove_node("node-3") for _ in range(2)] == [True, False]
        with pytest.raises(InvalidArgument, match="never used again"):
            admin.add_node("node-3", **WHERE)

    told(story)


def test_s25_a_learner_that_has_not_caught_up_is_not_promoted_yet() -> None:
    """Whoever asks has to know whether asking again can help."""

    def refuse(node: Served) -> None:
        async def refused(change: Change) -> None:
            del change
            raise ChangeRefused("node 'node-3' is 7 entries behind")

        now = node.replica.membership
        node.replica.membership = Membership(now.voters, Membership.of(("node-3",)).voters)
        node.replica.change_nodes = refused  # type: ignore[method-assign]  # of a stand-in

    def story(admin: sync.Admin) -> None:
        with pytest.raises(NotYet, match="7 entries behind"):
            admin.promote_node("node-3")

    told(story, prepare=refuse)


def test_nodes_do_not_change_at_level_1() -> None:
    """Nodes of an older version could not read it on the log."""

    def story(admin: sync.Admin) -> None:
        with pytest.raises(InvalidArgument, match="UNSUPPORTED_VERSION"):
            admin.add_node("node-3", **WHERE)

    told(story, level=LEVEL_MIN)


def test_an_upgrade_is_not_ended_while_a_node_is_away() -> None:
    """What runs there is unknown, and it could not go on with the cluster."""

    def story(admin: sync.Admin) -> None:
        with pytest.raises(InvalidArgument, match="node-2"):
            admin.finish_upgrade()

    told(story, level=LEVEL_MIN)


def test_an_upgrade_is_ended_at_the_newest_level_of_all_nodes_and_may_be_again() -> None:
    def alone(node: Served) -> None:
        node.replica.membership = Membership.of(("node-1",))

    def story(admin: sync.Admin) -> None:
        assert [admin.finish_upgrade() for _ in range(2)] == [LEVEL_MAX, LEVEL_MAX]

    told(story, level=LEVEL_MIN, prepare=alone)


def test_s22_the_log_is_sealed_and_where_nothing_came_since_nothing_is_done() -> None:
    """Who asks from a program waits for the boundary, so it is told in either case."""

    def story(admin: sync.Admin) -> None:
        admin.create_topics({"t": 1})
        first, again = admin.seal_log(), admin.seal_log()

        assert (first.already, again.already) == (False, True)
        assert first.sealed.index > 0
        assert again.sealed == first.sealed

    told(story)


def test_s15_a_call_to_seal_has_a_request_id_by_which_it_is_done_once() -> None:
    noted = list[str]()

    def note(node: Served) -> None:
        node.replica.subscribe(
            on_applied=lambda records, _: noted.extend(
                each.request_id for each in records if isinstance(each.event, SegmentSealed)
            )
        )

    def story(admin: sync.Admin) -> None:
        admin.create_topics({"t": 1})
        admin.seal_log()

    told(story, prepare=note)

    assert [bool(each) for each in noted] == [True]


def test_grants_are_given_shown_tested_and_taken_back() -> None:
    reader = events_pb2.Acl(principal="ops", role="reader", kind="group", name="g")

    def story(admin: sync.Admin) -> None:
        admin.alter_acls(granted=[reader])
        assert list(admin.describe_acls("ops").acls) == [reader]
        assert admin.test_acl("ops", "DescribeGroups", "g").allowed
        admin.alter_acls(revoked=[reader])
        assert not admin.describe_acls("ops").acls
        assert not admin.test_acl("ops", "DescribeGroups", "g").allowed
        with pytest.raises(InvalidArgument):
            admin.alter_acls(mode="shut")

    told(story)


def test_certificates_are_revoked_shown_and_accepted_again() -> None:
    fingerprint = "ab" * 32
    revocation = events_pb2.Revocation(fingerprint=fingerprint)

    def story(admin: sync.Admin) -> None:
        admin.alter_revocations(revoked=[revocation])
        assert [one.fingerprint for one in admin.describe_revocations()] == [fingerprint]
        admin.alter_revocations(lifted=[fingerprint])
        assert admin.describe_revocations() == []

    told(story)

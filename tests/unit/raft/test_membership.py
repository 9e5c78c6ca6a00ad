"""A membership as a value: what a change makes of it, what it forbids, and its text (S25)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.raft import membership as m
from holdfast.raft.membership import (
    AddLearner,
    Change,
    ChangeRefused,
    ClusterNode,
    Membership,
    MembershipUnreadable,
    Promote,
    Remove,
    after,
)

ABC = Membership.of(("A", "B", "C"))
D = ClusterNode("D", "d:7401", "d:7400")
WITH_D = after(ABC, AddLearner(D))


def test_a_cluster_begins_with_voters_whose_addresses_their_files_say() -> None:
    assert ABC.voter_names == ABC.names == ("A", "B", "C")
    assert ABC.voters[0] == ClusterNode("A", "", "")
    assert (ABC.learners, ABC.removed) == ((), ())


def test_a_new_node_is_a_learner() -> None:
    assert WITH_D.voter_names == ("A", "B", "C")
    assert WITH_D.learners == (D,)
    assert WITH_D.names == ("A", "B", "C", "D")


def test_a_promoted_learner_is_a_voter_with_its_addresses() -> None:
    promoted = after(WITH_D, Promote("D"))

    assert promoted.voter_names == ("A", "B", "C", "D")
    assert D in promoted.voters
    assert promoted.learners == ()


@pytest.mark.parametrize("name", ["B", "D"])
def test_a_removed_node_leaves_its_name(name: str) -> None:
    then = after(WITH_D, Remove(name))

    assert name not in then.names
    assert then.removed == (name,)


def test_a_learner_whose_address_was_wrong_is_corrected() -> None:
    """S25 c: it counts for nothing, so no majority changes; its name and certificate are kept."""
    right = ClusterNode("D", "d:7501", "d:7400")

    assert after(WITH_D, AddLearner(right)) == Membership(ABC.voters, (right,))


REFUSED: list[tuple[Membership, Change, str]] = [
    (ABC, AddLearner(ClusterNode("B", "x:1", "x:2")), "the cluster has a node 'B'"),
    (WITH_D, AddLearner(D), "a learner that other nodes reach at d:7401 and clients at d:7400"),
    (
        after(WITH_D, Promote("D")),
        AddLearner(ClusterNode("D", "d:1", "d:2")),
        "a voter that other nodes reach at d:7401 and clients at d:7400",
    ),
    (WITH_D, AddLearner(ClusterNode("E", "d:7401", "e:2")), "d:7401 is the address of node 'D'"),
    (WITH_D, AddLearner(ClusterNode("E", "e:1", "d:7400")), "d:7400 is the address of node 'D'"),
    (WITH_D, AddLearner(ClusterNode("E", "d:7400", "e:2")), "d:7400 is the address of node 'D'"),
    (ABC, AddLearner(ClusterNode("D", "d:1", "d:1")), "for peers and for clients"),
    (ABC, AddLearner(ClusterNode("", "d:1", "d:2")), "a new node needs a name"),
    (ABC, AddLearner(ClusterNode("D", "", "d:2")), "a new node needs a name"),
    (ABC, AddLearner(ClusterNode("D", "d:1", "")), "a new node needs a name"),
    (ABC, AddLearner(ClusterNode("D", "d" * 301, "d:2")), "more than 300 characters"),
    (after(ABC, Remove("C")), AddLearner(ClusterNode("C", "c:1", "c:2")), "never used again"),
    (ABC, Promote("D"), "there is no learner 'D': the voters are A, B, C, the learners none"),
    (ABC, Promote("A"), "a voter already"),
    (ABC, Remove("D"), "there is no node 'D'"),
    (after(ABC, Remove("C")), Remove("C"), "was removed already"),
    (Membership.of(("A",)), Remove("A"), "the only voter"),
]


@pytest.mark.parametrize(("now", "change", "sentence"), REFUSED)
def test_what_the_membership_alone_forbids(now: Membership, change: Change, sentence: str) -> None:
    with pytest.raises(ChangeRefused, match=sentence):
        after(now, change)


def test_a_learner_beside_the_only_voter_does_not_let_that_one_go() -> None:
    alone = after(Membership.of(("A",)), AddLearner(D))

    with pytest.raises(ChangeRefused, match="the only voter"):
        after(alone, Remove("A"))
    assert after(alone, Remove("D")).voter_names == ("A",)


def test_nodes_and_removed_names_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(m, "NODES_MAX", 4)
    monkeypatch.setattr(m, "REMOVED_MAX", 1)

    with pytest.raises(ChangeRefused, match="has 4 nodes"):
        after(WITH_D, AddLearner(ClusterNode("E", "e:1", "e:2")))
    assert after(WITH_D, AddLearner(ClusterNode("D", "d:1", "d:2"))).names == WITH_D.names
    with pytest.raises(ChangeRefused, match="no more names can be kept"):
        after(after(WITH_D, Remove("D")), Remove("C"))


@pytest.mark.parametrize("membership", [ABC, WITH_D, after(WITH_D, Remove("C"))])
def test_what_is_written_is_read(membership: Membership) -> None:
    assert Membership.decode(membership.encode()) == membership


def test_the_text_is_what_the_log_of_later_versions_will_hold() -> None:
    """Entries outlive the version that wrote them, so this must not change unnoticed."""
    assert after(WITH_D, Remove("C")).encode() == (
        '{"learners":[["D","d:7401","d:7400"]],"removed":["C"],"voters":[["A","",""],["B","",""]]}'
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"learners":[],"removed":[],"voters":[]}',
        '{"learners":[],"removed":[],"voters":[["A","","","more"]]}',
        '{"learners":[],"removed":[],"voters":[["A","",7]]}',
        '{"learners":[],"removed":[3],"voters":[["A","",""]]}',
        '{"learners":[],"more":1,"removed":[],"voters":[["A","",""]]}',
        '{"learners": [],"removed":[],"voters":[["A","",""]]}',
    ],
)
def test_what_no_node_writes_is_not_read(text: str) -> None:
    with pytest.raises(MembershipUnreadable):
        Membership.decode(text)


def test_s19_a_membership_keeps_the_disks_that_founded_through_every_change() -> None:
    """They say which cluster it is, so nobody's coming or going changes them (ADR 43)."""
    founded = replace(ABC, founders=(("A", "disk-1"), ("B", "disk-2")))
    changes = AddLearner(D), Promote("D"), Remove("A")
    for change in changes:
        founded = after(founded, change)

    assert founded.founders == (("A", "disk-1"), ("B", "disk-2"))
    assert Membership.decode(founded.encode()) == founded


def test_a_membership_without_founders_has_the_text_that_it_always_had() -> None:
    assert "founders" not in ABC.encode()
    with pytest.raises(MembershipUnreadable):
        Membership.decode(ABC.encode().replace("{", '{"founders":[],', 1))


@pytest.mark.parametrize("founders", ['[["A"]]', '[["A",1]]', '"A"', "7"])
def test_founders_that_nobody_writes_are_unreadable(founders: str) -> None:
    with pytest.raises(MembershipUnreadable):
        Membership.decode(ABC.encode().replace("{", f'{{"founders":{founders},', 1))

"""Which assignor all members share, and who can run it (KIP-848)."""

from __future__ import annotations

import pytest

from holdfast.coordinator.consumer.client_side import negotiation
from holdfast.coordinator.consumer.state import ConsumerBody, Member, restored
from holdfast.coordinator.model.member_profile import ClientAssignor, ConsumerProfile
from unit.coordinator.consumer.client_side.computing_members import Computing, assignor


def body(**said: tuple[ClientAssignor, ...]) -> ConsumerBody:
    """A group of members that can run these."""
    members = [
        Member(name, None, ConsumerProfile(client_assignors=known), joined_seq=at, since_ms=0)
        for at, (name, known) in enumerate(said.items())
    ]
    return restored(ConsumerBody(), members)


def knows(least: int, most: int, version: int, name: str = "own") -> ClientAssignor:
    return assignor(name, minimum_version=least, maximum_version=most, version=version)


def test_one_that_somebody_lacks_is_not_shared() -> None:
    """KIP-848: it must be supported by all the members."""
    assert negotiation.shared(body(a=(assignor(),), b=())) is None
    assert negotiation.shared(body(a=(assignor("x"),), b=(assignor("y"),))) is None
    assert negotiation.shared(body()) is None


@pytest.mark.parametrize(
    ("first", "second", "version", "able"),
    [
        (knows(0, 3, 1), knows(1, 2, 2), 2, {"a", "b"}),
        (knows(0, 1, 1), knows(2, 3, 2), None, set()),
        (knows(1, 2, 1), knows(2, 3, 3), None, set()),
        (knows(1, 2, 1), knows(1, 3, 3), 2, {"b"}),
        (knows(0, 0, 0), knows(0, 0, 0), 0, {"a", "b"}),
    ],
)
def test_versions_are_shared_and_the_able_read_what_all_say(
    first: ClientAssignor, second: ClientAssignor, version: int | None, able: set[str]
) -> None:
    """KIP-848: a version in common, and somebody who understands the metadata of all."""
    found = negotiation.shared(body(a=(first,), b=(second,)))

    assert (found and found.version) == version
    assert (set(found.able) if found else set()) == able


def test_of_several_the_one_counts_that_most_members_want_first() -> None:
    """KIP-848: the precedence is that of the members."""
    x, y, z = assignor("x"), assignor("y"), assignor("z")

    assert negotiation.name_of(body(a=(x, y), b=(y, x), c=(y, x))) == "y"
    assert negotiation.name_of(body(a=(x, y), b=(y, x))) == "x", "of a tie, the first by name"
    assert negotiation.name_of(body(a=(z, x, y), b=(z, y, x), c=(y, x))) == "y"
    assert negotiation.name_of(body(a=(z, x), b=(x, z), c=(x,))) == "x"


def test_a_process_that_stopped_is_a_member_and_computes_nothing() -> None:
    """K-N2: its place is kept, so it has to share the assignor."""
    made = body(a=(assignor(),), b=(assignor(),))
    stopped = made.members["a"]._replace(instance_id="i1", epoch=-2)
    found = negotiation.shared(made._replace(members=made.members.set("a", stopped)))

    assert found is not None
    assert found.able == {"b"}


def test_who_says_what_others_say_costs_nobody_a_look_at_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """K-P9, ADR 53: a thousand joins that share an entry looked at each other, a million times."""
    looks: list[str] = []
    seen = ConsumerProfile.client_assignor

    def look(profile: ConsumerProfile, name: str) -> ClientAssignor | None:
        looks.append(name)
        return seen(profile, name)

    monkeypatch.setattr(ConsumerProfile, "client_assignor", look)
    talk = Computing(t=4)
    talk.decide(*[talk.comes(f"m{number}", topics=None, regex="t.*") for number in range(100)])

    assert len(looks) <= 500

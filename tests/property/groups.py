"""Random groups for the tests of assignors, and whose claims count in them."""

from __future__ import annotations

from hypothesis import strategies as st

from holdfast.coordinator.assignors import Assignment, MemberSubscription

TOPICS = ("t", "u", "v")
counts_of_topics = st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 9))


@st.composite
def groups(
    draw: st.DrawFn, *, equal: bool = False, weights: bool = False
) -> list[MemberSubscription]:
    """Members with random instance ids, subscriptions and (perhaps false) claims."""
    ids = draw(st.lists(st.integers(0, 40), unique=True, max_size=7))
    common = draw(st.frozensets(st.sampled_from(TOPICS)))
    members = []
    for number in ids:
        topics = common if equal else draw(st.frozensets(st.sampled_from(TOPICS)))
        claims = st.dictionaries(
            st.sampled_from(TOPICS), st.lists(st.integers(0, 10), unique=True, max_size=6)
        )
        member = MemberSubscription(
            member_id=f"m-{number}",
            instance_id=f"i-{number}" if draw(st.booleans()) else None,
            topics=topics,
            owned=draw(claims),
            generation=draw(st.integers(-1, 3)),
            weight=draw(st.integers(1, 5)) if weights else 1,
        )
        members.append(member)
    return members


def slots(assignment: Assignment, member_id: str) -> set[tuple[str, int]]:
    return {(topic, n) for topic, numbers in assignment[member_id].items() for n in numbers}


def valid_claims(
    members: list[MemberSubscription], counts: dict[str, int]
) -> dict[str, set[tuple[str, int]]]:
    """Who may claim what: the newest generation; among equals the first in member order."""

    def rank(member: MemberSubscription) -> tuple[int, bool, str]:
        return (
            -member.generation,
            member.instance_id is None,
            member.instance_id or member.member_id,
        )

    claims: dict[str, set[tuple[str, int]]] = {m.member_id: set() for m in members}
    taken: set[tuple[str, int]] = set()
    for member in sorted(members, key=rank):
        for topic in member.topics & member.owned.keys():
            fresh = {(topic, n) for n in member.owned[topic] if n < counts.get(topic, 0)} - taken
            claims[member.member_id] |= fresh
            taken |= fresh
    return claims


def by_topic(owned: set[tuple[str, int]]) -> dict[str, list[int]]:
    return {topic: sorted(n for t, n in owned if t == topic) for topic in {t for t, _ in owned}}

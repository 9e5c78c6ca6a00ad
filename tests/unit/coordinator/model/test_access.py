"""Grants and revocations: what a grant covers, which role counts, and what is refused."""

import pytest

from holdfast.coordinator.model.access import (
    ADMIN,
    CLUSTER,
    GROUP,
    MEMBER,
    NAME_LENGTH_MAX,
    NOTHING,
    OPERATOR,
    RANKS,
    READER,
    REASON_LENGTH_MAX,
    REVOCATIONS_MAX,
    TOPIC,
    Acl,
    Revocation,
    administrator,
    is_fingerprint,
    problem_of,
    rank,
    revocation_problem,
)


def test_each_role_includes_all_before_it() -> None:
    ranks = [RANKS[role] for role in (READER, MEMBER, OPERATOR, ADMIN)]

    assert ranks == sorted(set(ranks))
    assert min(ranks) > NOTHING


@pytest.mark.parametrize(
    ("acl", "covered", "not_covered"),
    [
        (Acl("a", READER, GROUP, "orders"), ["orders"], ["orders2", "order", "", "Orders"]),
        (Acl("a", READER, GROUP, "orders*"), ["orders", "orders-2"], ["order", "x-orders"]),
        (Acl("a", READER, GROUP, "*"), ["orders", "*"], []),
        (Acl("a", READER, GROUP, "a*b"), ["a*b"], ["ab", "axb"]),
    ],
)
def test_a_name_covers_itself_and_a_prefix_what_begins_so(
    acl: Acl, covered: list[str], not_covered: list[str]
) -> None:
    assert all(rank([acl], "a", GROUP, name) == RANKS[READER] for name in covered)
    assert all(rank([acl], "a", GROUP, name) == NOTHING for name in not_covered)


def test_a_grant_is_about_one_kind_and_one_principal() -> None:
    acls = [Acl("a", MEMBER, GROUP, "x")]

    assert rank(acls, "a", GROUP, "x") == RANKS[MEMBER]
    assert rank(acls, "a", TOPIC, "x") == NOTHING
    assert rank(acls, "a", CLUSTER) == NOTHING
    assert rank(acls, "b", GROUP, "x") == NOTHING


def test_what_is_granted_to_everyone_counts_for_each() -> None:
    acls = [Acl("*", READER, TOPIC, "t*"), Acl("a", OPERATOR, TOPIC, "t1")]

    assert rank(acls, "b", TOPIC, "t1") == RANKS[READER]
    assert rank(acls, "a", TOPIC, "t1") == RANKS[OPERATOR], "the highest counts"


def test_an_administrator_of_the_cluster_may_do_everything_and_its_operator_may_not() -> None:
    acls = [administrator("root"), Acl("op", OPERATOR, CLUSTER, "")]

    for kind, name in ((GROUP, "g"), (TOPIC, "t"), (CLUSTER, "")):
        assert rank(acls, "root", kind, name) == RANKS[ADMIN]
    assert rank(acls, "op", CLUSTER) == RANKS[OPERATOR]
    assert rank(acls, "op", GROUP, "g") == NOTHING


@pytest.mark.parametrize(
    "acl",
    [
        Acl("a", "owner", GROUP, "g"),
        Acl("a", READER, "node", "n"),
        Acl("", READER, GROUP, "g"),
        Acl("a\n", READER, GROUP, "g"),
        Acl("a", READER, GROUP, ""),
        Acl("a", READER, TOPIC, "x" * (NAME_LENGTH_MAX + 1)),
        Acl("a", ADMIN, CLUSTER, "c1"),
    ],
)
def test_a_grant_that_means_nothing_has_a_problem(acl: Acl) -> None:
    assert problem_of(acl)


@pytest.mark.parametrize(
    "acl",
    [Acl("*", READER, GROUP, "*"), administrator("spiffe://x/y"), Acl("a", MEMBER, TOPIC, "t*")],
)
def test_a_grant_that_means_something_has_none(acl: Acl) -> None:
    assert problem_of(acl) is None


SOME = "0123456789abcdef" * 4


@pytest.mark.parametrize("text", ["", SOME[1:], SOME + "0", SOME.upper(), "g" * 64, SOME + "\n"])
def test_a_fingerprint_is_64_digits_in_lower_case(text: str) -> None:
    assert is_fingerprint(SOME)
    assert not is_fingerprint(text)


def test_what_people_write_is_bounded_and_can_be_printed() -> None:
    full = Revocation(SOME, "p" * 1_024, 1, "r" * REASON_LENGTH_MAX)

    assert revocation_problem(full) is None
    assert revocation_problem(Revocation(SOME)) is None, "neither name nor reason is needed"
    assert "1024" in str(revocation_problem(full._replace(principal="p" * 1_025)))
    assert str(REASON_LENGTH_MAX) in str(revocation_problem(full._replace(reason="r" * 201)))
    assert "printed" in str(revocation_problem(full._replace(reason="\x1b[31m")))


def test_the_whole_list_fits_into_an_answer() -> None:
    """16 MiB is what a client's channel has to take (`guard.answer_size`)."""
    most = len(SOME) + 4 * (1_024 + REASON_LENGTH_MAX) + 64

    assert REVOCATIONS_MAX * most < 15 << 20

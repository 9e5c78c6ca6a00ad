"""Compiled rights say the same as all grants read one by one (`model.access.rank`)."""

import random
from typing import SupportsIndex

import pytest

from holdfast.coordinator.model.access import (
    ACLS_MAX,
    CLUSTER,
    GROUP,
    KINDS,
    NOTHING,
    OPERATOR,
    RANKS,
    READER,
    ROLES,
    TOPIC,
    Acl,
    rank,
)
from holdfast.server.access import rights
from holdfast.server.access.rights import ByPrincipal

PRINCIPALS = ("a", "b", "*")
NAMES = ("", "x", "xy", "xyz", "y", "*", "x*")


def random_acl(chance: random.Random) -> Acl:
    kind = chance.choice(KINDS)
    name = "" if kind == CLUSTER else chance.choice(("x", "xy", "x*", "xy*", "*", "y"))
    return Acl(chance.choice(PRINCIPALS), chance.choice(ROLES), kind, name)


@pytest.mark.parametrize("seed", range(50))
def test_the_compiled_rights_are_those_of_the_grants(seed: int) -> None:
    chance = random.Random(seed)
    acls = {random_acl(chance) for _ in range(chance.randrange(8))}
    compiled = ByPrincipal(acls)

    for principal in (*PRINCIPALS, "c"):
        for kind in KINDS:
            for name in ("",) if kind == CLUSTER else NAMES:
                wanted = rank(acls, principal, kind, name)
                for _ in range(2):  # the second one is remembered
                    assert compiled.of(principal).rank(kind, name) == wanted, (seed, acls)


def test_a_caller_that_names_ever_more_things_does_not_fill_the_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rights, "KNOWN_MAX", 10)
    compiled = ByPrincipal([Acl("a", READER, GROUP, "g*")])
    for number in range(1_000):
        assert compiled.of("a").rank(GROUP, f"g{number}") == RANKS[READER]
        assert compiled.of(f"p{number}").rank(TOPIC, "t") == NOTHING

    assert len(compiled.of("a")._groups._known) <= 10
    assert len(compiled._made) <= 10


def test_names_that_are_too_long_for_anything_are_not_kept() -> None:
    """A join may be as long as an entry of the log, and nearly all of it may be the name.

    Thousands of these, kept, would fill the node's memory for a caller without any grant.
    """
    compiled = ByPrincipal([Acl("a", READER, GROUP, "g*")])
    for number in range(100):
        assert compiled.of("a").rank(GROUP, f"g{number}" * 1_000) == RANKS[READER]
        assert compiled.of("a").rank(GROUP, f"x{number}" * 1_000) == NOTHING

    assert sum(map(len, compiled.of("a")._groups._known)) == 0


def test_a_name_costs_no_more_with_many_prefixes_than_with_few() -> None:
    """ADR 30: a look-up. A call may name thousands of things, all in one turn of the loop."""

    class Name(str):
        """A name that counts how often something is compared with its beginning."""

        __slots__ = ()
        looked = 0

        def startswith(
            self,
            prefix: str | tuple[str, ...],
            start: SupportsIndex | None = None,
            end: SupportsIndex | None = None,
        ) -> bool:
            Name.looked += 1
            return super().startswith(prefix, start, end)

        def __getitem__(self, place: SupportsIndex | slice) -> str:
            Name.looked += 1
            return super().__getitem__(place)

    many = [Acl("a", READER, TOPIC, f"{number:04}-*") for number in range(ACLS_MAX - 1)]
    compiled = ByPrincipal([*many, Acl("a", OPERATOR, TOPIC, "0007*")])

    assert compiled.of("a").rank(TOPIC, Name("0007-x")) == RANKS[OPERATOR]
    assert compiled.of("a").rank(TOPIC, Name("0008-x")) == RANKS[READER]
    assert compiled.of("a").rank(TOPIC, Name("0008")) == NOTHING
    assert 0 < Name.looked < 10

"""Copies with a field or two changed are what `_replace` makes, and of the same class."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from holdfast.coordinator.structures.copies import with_one, with_two


class Three(NamedTuple):
    first: int
    second: str
    third: tuple[int, ...] = ()


OLD = Three(1, "a", (2,))


@pytest.mark.parametrize("name", Three._fields)
def test_one_field_is_another(name: str) -> None:
    changed: dict[str, Any] = {name: "new"}
    copy = with_one(Three, name)(OLD, "new")

    assert copy == OLD._replace(**changed)
    assert type(copy) is Three
    assert Three(1, "a", (2,)) == OLD


@pytest.mark.parametrize(("one", "two"), [("first", "third"), ("third", "second")])
def test_two_fields_are_others(one: str, two: str) -> None:
    changed: dict[str, Any] = {one: "x", two: "y"}
    copy = with_two(Three, one, two)(OLD, "x", "y")

    assert copy == OLD._replace(**changed)
    assert type(copy) is Three


def test_a_field_that_is_not_there_is_found_when_the_function_is_made() -> None:
    """At the start of a node, and not in the middle of an entry."""
    with pytest.raises(ValueError, match="not in tuple"):
        with_one(Three, "fourth")
    with pytest.raises(ValueError, match="not in tuple"):
        with_two(Three, "first", "fourth")

"""A scenario that guards a rule: nothing goes wrong with it, and what it prevents happens without.

A test that cannot fail guards nothing; so each scenario runs twice, and must name the harm that
the rule prevents when the rule is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.raft.core.context import ALL, Switch

if TYPE_CHECKING:
    from collections.abc import Callable

Switches = frozenset[Switch]


def first_harm(**harms: object) -> str:
    """Return the name of the first thing that went wrong, or nothing."""
    return next((name for name, happened in harms.items() if happened), "")


def guards(
    *switches: Switch, harm: str
) -> Callable[[Callable[[Switches], str]], Callable[..., None]]:
    """Turn a scenario into a test that runs it with all defences on, and with these off."""

    def decorate(scenario: Callable[[Switches], str]) -> Callable[..., None]:
        @pytest.mark.parametrize(
            ("left_out", "expected"),
            [(frozenset(), ""), (frozenset(switches), harm)],
            ids=["guarded", "without"],
        )
        def test(left_out: Switches, expected: str) -> None:
            harm = scenario(ALL - left_out)
            assert harm == expected, f"harm: {harm or 'none'}, expected: {expected or 'none'}"

        test.__name__, test.__doc__ = scenario.__name__, scenario.__doc__
        test.__module__, test.__qualname__ = scenario.__module__, scenario.__qualname__
        return test

    return decorate

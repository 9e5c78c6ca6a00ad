"""A scenario that guards a rule: nothing goes wrong with it, and what it prevents happens without.

A test that cannot fail guards nothing; so each scenario runs twice, and must name the harm that
the rule prevents when the rule is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.raft.core.switches import ALL, Rule

if TYPE_CHECKING:
    from collections.abc import Callable

Rules = frozenset[Rule]


def first_harm(**harms: object) -> str:
    """Return the name of the first thing that went wrong, or nothing."""
    return next((name for name, happened in harms.items() if happened), "")


def guards(*rules: Rule, harm: str) -> Callable[[Callable[[Rules], str]], Callable[..., None]]:
    """Turn a scenario into a test that runs it with all rules and without these."""

    def decorate(scenario: Callable[[Rules], str]) -> Callable[..., None]:
        @pytest.mark.parametrize(
            ("left_out", "expected"),
            [(frozenset(), ""), (frozenset(rules), harm)],
            ids=["guarded", "without"],
        )
        def test(left_out: Rules, expected: str) -> None:
            harm = scenario(ALL - left_out)
            assert harm == expected, f"harm: {harm or 'none'}, expected: {expected or 'none'}"

        test.__name__, test.__doc__ = scenario.__name__, scenario.__doc__
        test.__module__, test.__qualname__ = scenario.__module__, scenario.__qualname__
        return test

    return decorate

"""When the topics of a group's expressions are looked up: by time, and for who has other rights."""

from __future__ import annotations

import pytest

from holdfast.coordinator.kernel.decide import decide
from holdfast.coordinator.model import commands as c
from holdfast.coordinator.model.access import DENY, OPEN
from holdfast.coordinator.model.consumer_events import ResolvedRegex
from holdfast.coordinator.model.effects import ResolveRegexes
from holdfast.coordinator.model.events import AccessModeChanged, LevelRaised
from unit.coordinator.desk import Desk

FOUND = (ResolvedRegex("t.*", ("t",)),)


def joining(member_id: str, principal: str, regex: str = "t.*") -> c.ConsumerGroupHeartbeat:
    """A join of a member of a principal."""
    return c.ConsumerGroupHeartbeat(
        c.Caller(1, principal, "client"),
        *("g", member_id, 0),
        rebalance_timeout_ms=10_000,
        regex=regex,
        owned=(),
    )


def looked_up(mode: str) -> Desk:
    """A group with one member, of the principal `a`, whose expression was just looked up."""
    desk = Desk()
    desk.happened("", LevelRaised(2), AccessModeChanged(mode))
    desk.topics(t=2)
    desk.decide_all("g", joining("m1", "a"))
    desk.decide_all("g", c.InstallRegexes("g", FOUND))
    return desk


@pytest.mark.parametrize(
    ("mode", "principal", "regex", "asks"),
    [
        (DENY, "b", "t.*", True),
        (DENY, "a", "t.*", False),
        (OPEN, "b", "t.*", False),
        (DENY, "b", "u.*", False),
    ],
)
def test_p9_a_principal_for_which_nobody_searched_has_topics_looked_up_at_once(
    mode: str, principal: str, regex: str, *, asks: bool
) -> None:
    """K-P9: it may not read what was found for others; else at the next time (K-P5)."""
    desk = looked_up(mode)
    decision = decide(desk.state, desk.volatile, joining("m2", principal, regex))
    asked = [each.regexes for each in decision.effects if isinstance(each, ResolveRegexes)]

    assert asked == ([("t.*",)] if asks else [])

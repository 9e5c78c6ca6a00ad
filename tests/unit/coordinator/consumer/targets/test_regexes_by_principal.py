"""When the topics of a group's expressions are looked up: by time, and for who has other rights."""

from __future__ import annotations

from typing import NoReturn

import pytest

from holdfast.coordinator.consumer.targets import regexes
from holdfast.coordinator.kernel.decide import decide, new_draft
from holdfast.coordinator.kernel.queries import newest_topic
from holdfast.coordinator.model import commands as c
from holdfast.coordinator.model.access import DENY, DRY_RUN, OPEN, READER, TOPIC, Acl
from holdfast.coordinator.model.consumer_events import ResolvedRegex
from holdfast.coordinator.model.effects import InstallRegexes, ResolveRegexes
from holdfast.coordinator.model.events import AccessModeChanged, AclsChanged, LevelRaised
from holdfast.coordinator.structures.pmap import PMap
from unit.coordinator.desk import Desk

FOUND = (ResolvedRegex("t.*", ("t", "tb")),)


def joining(member_id: str, principal: str, regex: str = "t.*") -> c.ConsumerGroupHeartbeat:
    """A join of a member of a principal."""
    return c.ConsumerGroupHeartbeat(
        c.Caller(1, principal, "client"),
        *("g", member_id, 0),
        rebalance_timeout_ms=10_000,
        regex=regex,
        owned=(),
    )


def found(desk: Desk) -> InstallRegexes:
    """What a search finds now."""
    seen = (newest_topic(desk.state), desk.state.applied_index)
    return InstallRegexes("g", FOUND, *seen)


def looked_up(mode: str) -> Desk:
    """A group with one member, of the principal `a`, whose expression was just looked up."""
    desk = Desk()
    desk.happened("", LevelRaised(2), AccessModeChanged(mode))
    desk.happened("", AclsChanged(tuple(Acl("a", READER, TOPIC, each) for each in ("t", "tb")), ()))
    desk.happened("", AclsChanged((Acl("b", READER, TOPIC, "tb*"),), ()))
    desk.topics(t=2, tb=2)
    desk.decide_all("g", joining("m1", "a"))
    desk.decide_all("g", found(desk))
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


def matched(desk: Desk) -> tuple[str, ...]:
    """The topics that the users of the expression get."""
    found: ResolvedRegex = desk.state.groups["g"].body.regexes["t.*"]
    return found.topics


def owned(desk: Desk, member_id: str) -> set[str]:
    """The topics of which a member owns a partition."""
    return {each.topic for each in desk.state.groups["g"].body.members[member_id].owned}


@pytest.mark.parametrize(
    ("mode", "principal", "topics"),
    [
        (DENY, "a", ("t", "tb")),
        (DENY, "b", ("tb",)),
        (DENY, "c", ()),
        (DRY_RUN, "b", ("t", "tb")),
        (OPEN, "b", ("t", "tb")),
    ],
)
def test_p9_what_was_found_for_others_is_cut_to_what_the_principal_may_read(
    mode: str, principal: str, topics: tuple[str, ...]
) -> None:
    """K-P9: in the entry of its join, which may assign by it already."""
    desk = looked_up(mode)
    desk.decide_all("g", joining("m2", principal))

    assert matched(desk) == topics
    assert owned(desk, "m2") <= set(topics)


def test_p9_nobody_is_assigned_by_what_was_searched_without_it() -> None:
    """K-P9: `m1` is gone, so all is free; `m2` may not read the topic `t`."""
    desk = looked_up(DENY)
    desk.decide_all("g", joining("m2", "b"))
    desk.decide_all("g", c.LeaveGroup(c.Caller(2, "a"), "g", (c.LeavingMember("m1", None),)))
    epoch = desk.state.groups["g"].body.members["m2"].epoch
    desk.decide_all("g", c.ConsumerGroupHeartbeat(c.Caller(3, "b"), "g", "m2", epoch))

    assert owned(desk, "m2") == {"tb"}


def test_p9_a_result_is_cut_for_who_came_while_the_search_ran() -> None:
    """K-P9: the node asked for the rights of those who were there as it began."""
    desk = looked_up(DENY)
    desk.decide_all("g", joining("m2", "b"))
    desk.decide_all("g", found(desk))

    assert matched(desk) == ("tb",)


def read(*_: object) -> NoReturn:
    pytest.fail("it went through the members")


@pytest.mark.source("it replaces the walk over maps")
def test_p9_nobody_goes_through_the_members_where_everybody_may_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """K-P9, S10: else a large group costs each join as much as it has members."""
    desk = looked_up(OPEN)
    monkeypatch.setattr(PMap, "values", read)
    draft = new_draft(desk.state, desk.volatile, "g")
    regexes.cut(draft, "t.*", "b")

    assert draft.proposed == []


@pytest.mark.source("it replaces the walk over maps")
def test_p9_a_beat_looks_at_no_other_member_for_rights(monkeypatch: pytest.MonkeyPatch) -> None:
    """K-P9, S10: else a large group costs each of its beats as much as it has members."""
    desk = looked_up(DENY)
    desk.decide_all("g", joining("m2", "a"))
    monkeypatch.setattr(PMap, "values", read)
    epoch = desk.state.groups["g"].body.members["m2"].epoch
    beat = c.ConsumerGroupHeartbeat(c.Caller(3, "a", "client"), "g", "m2", epoch)
    assert decide(desk.state, desk.volatile, beat).events == ()

"""Lookups of regular expressions: one group at a time, and none for an ex-leader."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from holdfast.coordinator.cluster.settings import applied
from holdfast.coordinator.model.consumer_events import ResolvedRegex
from holdfast.coordinator.model.effects import InstallRegexes
from holdfast.coordinator.model.events import SettingChange, TopicSize
from holdfast.coordinator.model.state import Settings, State
from holdfast.coordinator.structures.pmap import PMap
from holdfast.runtime.groups import regex_resolver, regexes
from holdfast.runtime.groups.regex_resolver import RegexResolver

if TYPE_CHECKING:
    from holdfast.runtime.groups.regexes import Counts


def state(*topics: str) -> State:
    """A state with these topics."""
    return State(topics=PMap({name: TopicSize(name, 1) for name in topics}))


async def settled() -> None:
    """Let everything happen that can happen."""
    for _ in range(50):
        await asyncio.sleep(0)


class World:
    """A resolver on a state that a test changes; what it submits is kept."""

    def __init__(self) -> None:
        self.state = state("a", "b")
        self.installed: list[InstallRegexes] = []
        self.resolver = RegexResolver(lambda: self.state, self.installed.append, self.readable)
        self.forbidden: set[tuple[str, str]] = set()

    async def until_installed(self) -> None:
        """Let the loop turn until something is installed; a test that waits in vain fails."""
        for _ in range(10_000):
            if self.installed:
                return
            await asyncio.sleep(0)
        pytest.fail("nothing was installed within 10,000 turns of the loop")

    def readable(self, seen: State, group_id: str) -> Counts:
        """What says whether a group may have a topic."""
        assert seen is self.state
        return lambda _, topic: (group_id, topic) not in self.forbidden


def test_p8_topics_are_those_of_the_state_when_the_group_has_its_turn() -> None:
    """K-P8: what was created meanwhile is there; the group would be asked again for it."""

    async def story() -> None:
        world = World()
        world.resolver.ask("g", ("a|c",))
        world.state = state("a", "b", "c")
        await settled()

        assert world.installed == [InstallRegexes("g", (ResolvedRegex("a|c", ("a", "c")),), 0, 0)]

    asyncio.run(story())


def test_groups_have_their_turns_in_order_and_a_group_one_for_all_that_it_asked() -> None:
    async def story() -> None:
        world = World()
        world.resolver.ask("g", (".",))
        world.resolver.ask("h", ("b",))
        world.resolver.ask("g", ("a", "."))
        await settled()

        assert [each.group_id for each in world.installed] == ["g", "h"]
        assert [each.regex for each in world.installed[0].resolved] == [".", "a"]

    asyncio.run(story())


def test_p9_who_may_read_a_topic_is_asked_for_the_group() -> None:
    """K-P9: what a group's members may not read is not in its result, and in another's it is."""

    async def story() -> None:
        world = World()
        world.forbidden.add(("g", "b"))
        for group_id in ("g", "h"):
            world.resolver.ask(group_id, (".",))
        await settled()

        assert [each.resolved[0].topics for each in world.installed] == [("a",), ("a", "b")]

    asyncio.run(story())


def test_s1_an_ex_leader_installs_nothing() -> None:
    """S1: neither what is under way nor what waits; afterwards it can be asked again."""

    async def story() -> None:
        world = World()
        world.state = state(*(f"t{number}" for number in range(3_000)))
        for group_id in ("g", "h"):
            world.resolver.ask(group_id, (".+",))
        await asyncio.sleep(0)
        world.resolver.clear()
        await settled()
        dropped = not world.installed
        world.resolver.ask("i", ("t7",))
        await world.until_installed()

        assert dropped
        assert world.installed == [InstallRegexes("i", (ResolvedRegex("t7", ("t7",)),), 0, 0)]

    asyncio.run(story())


def test_a_lookup_that_fails_inside_is_an_alarm_and_the_next_group_has_its_turn(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A defect is told, and stops nobody else."""

    async def broken(wanted: tuple[str, ...], *rest: object) -> tuple[ResolvedRegex, ...]:
        if "bad" in wanted:
            raise RuntimeError("a defect")
        return await regexes.resolve(wanted, *rest)  # type: ignore[arg-type]  # as they were given

    monkeypatch.setattr(regex_resolver, "resolve", broken)

    async def story() -> None:
        world = World()
        world.resolver.ask("g", ("bad",))
        world.resolver.ask("h", ("a",))
        await settled()

        assert [each.group_id for each in world.installed] == ["h"]

    asyncio.run(story())
    assert "alarm: the topics that group 'g'" in caplog.text


def test_s7_what_is_found_is_cut_to_entries_and_one_that_fits_none_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """S7: no command is longer than an entry, and the group is told what was looked up in vain."""

    async def story() -> None:
        world = World()
        names = [f"{first}{number:0200}" for first in "abc" for number in range(150)]
        sizes = SettingChange("log.entry_bytes_max", "65536")
        world.state = state(*names)._replace(settings=applied(Settings(), "", (sizes,)))
        world.resolver.ask("g", ("a.*", "b.*", "c.*", ".*"))
        await world.until_installed()
        await settled()

        assert [[one.regex for one in each.resolved] for each in world.installed] == [
            ["a.*"],
            ["b.*"],
            ["c.*"],
        ]
        assert {each.in_vain for each in world.installed} == {(".*",)}

    asyncio.run(story())
    assert "group 'g': the regular expression '.*' matches 450 topics" in caplog.text


def test_s7_a_lookup_of_which_nothing_fits_ends(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        world = World()
        sizes = SettingChange("log.entry_bytes_max", "65536")
        topics = state(*(f"{number:0200}" for number in range(400)))
        world.state = topics._replace(settings=applied(Settings(), "", (sizes,)))
        world.resolver.ask("g", (".*",))
        await world.until_installed()

        assert world.installed == [InstallRegexes("g", (), 0, 0, (".*",))]

    asyncio.run(story())
    assert "raise log.entry_bytes_max" in caplog.text

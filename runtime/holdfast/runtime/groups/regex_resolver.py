"""Looks up which topics the regular expressions of groups match, and submits what it found.

A decision asks for it (`effects.ResolveRegexes`); the node matches the names of its applied state
and has `InstallRegexes` decided, so that all replicas have the same result on the log (K-P1, K-P8).
One group at a time, in the order in which they asked: a new topic may have all of them ask at once.
What is under way when the leadership ends is dropped; the next leader is asked again.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from holdfast.coordinator.cluster import settings
from holdfast.coordinator.groups.sizes import of_names
from holdfast.coordinator.kernel.queries import newest_topic
from holdfast.coordinator.model.effects import InstallRegexes
from holdfast.runtime.groups.regexes import problem_of, resolve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from holdfast.coordinator.model.consumer_events import ResolvedRegex
    from holdfast.coordinator.model.ids import GroupId, TopicName
    from holdfast.coordinator.model.state import State
    from holdfast.runtime.groups.regexes import Counts

    Readable = Callable[[State, GroupId], Counts]
    """Gives, for one lookup, what says whether a topic counts for an expression of the group."""

logger = logging.getLogger(__name__)

ENTRY_MARGIN: Final = 8 * 1024
"""Bytes of an entry for all that is no name of a topic."""
HEAD: Final = 4_352
"""Bytes of an expression with its record: it may have 1,000 characters."""
TOO_MANY: Final = (
    "group %r: the regular expression %r matches %d topics, whose names are %d bytes; an entry of "
    "the log holds %d, so its members keep the topics that they have: subscribe to fewer topics by "
    "it, or raise log.entry_bytes_max"
)


def everything(_regex: str, _topic: TopicName) -> bool:
    """Let every topic count: nobody asks who may read it."""
    return True


def anybodys(_state: State, _group_id: GroupId) -> Counts:
    """Let every topic count, in every group."""
    return everything


class RegexResolver:
    """The lookups of a leading node. The loop's thread only."""

    def __init__(
        self,
        state: Callable[[], State],
        submit: Callable[[InstallRegexes], None],
        readable: Readable = anybodys,
    ) -> None:
        """`state`: gives the newest applied state. `submit`: has a command decided."""
        self._state, self._submit, self._readable = state, submit, readable
        self._waiting: dict[GroupId, dict[str, None]] = {}
        self._task: asyncio.Task[None] | None = None

    def ask(self, group_id: GroupId, regexes: Iterable[str]) -> None:
        """Have these looked up; a group that waits already has one lookup for all that it asked."""
        self._waiting.setdefault(group_id, {}).update(dict.fromkeys(regexes))
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._run())

    def clear(self) -> None:
        """Drop everything that waits or is under way."""
        self._waiting.clear()
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _run(self) -> None:
        while self._waiting:
            group_id = next(iter(self._waiting))
            regexes = self._waiting.pop(group_id)
            try:
                await self._resolve(group_id, regexes)
            except Exception:
                logger.critical(
                    "alarm: the topics that group %r subscribes to by regular expressions were not "
                    "looked up; please report this",
                    group_id,
                    exc_info=True,
                )

    async def _resolve(self, group_id: GroupId, regexes: Iterable[str]) -> None:
        state = self._state()
        for regex in regexes:
            if problem := problem_of(regex):  # another version of RE2 took it, on another node
                logger.error("group %r: %r matches no topic: %s", group_id, regex, problem)
        found = await resolve(regexes, state.topics, self._readable(state, group_id))
        most = settings.of_cluster(state).entry_bytes_max - ENTRY_MARGIN
        in_vain = [each for each in found if of_names(each.topics) > most]
        for regex, topics in in_vain:
            logger.error(TOO_MANY, group_id, regex, len(topics), of_names(topics), most)
        fitting = [each for each in found if each not in in_vain]
        names = tuple(each.regex for each in in_vain)
        for some in _cut(fitting, most) or [()]:
            seen = (newest_topic(state), state.applied_index)
            self._submit(InstallRegexes(group_id, some, *seen, names))


def _cut(found: Iterable[ResolvedRegex], most: int) -> list[tuple[ResolvedRegex, ...]]:
    """Cut what was found to as few commands as entries can hold, in order."""
    commands: list[tuple[ResolvedRegex, ...]] = []
    room = 0
    for each in found:
        size = of_names(each.topics) + HEAD
        if size <= room and commands:
            commands[-1] = (*commands[-1], each)
        else:
            commands.append((each,))
            room = most
        room -= size
    return commands

"""Regular expressions of subscriptions: whether one can be used, and which topics it matches.

They have RE2's syntax, and RE2 reads a text once whatever the expression is: with Python's `re` one
member could stop the node (K-P1). What takes RE2 long by itself is refused by bounds. Matching is
cut into slices of the node's loop, whose length follows from the size of the expressions, so that
other calls are served in between. Knows no groups and no rules.
"""

from __future__ import annotations

import asyncio
import functools
import re
from typing import TYPE_CHECKING, Final, Protocol

import re2

from holdfast.coordinator.model.consumer_events import ResolvedRegex

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from holdfast.coordinator.model.ids import TopicName

    Counts = Callable[[str, TopicName], bool]
    """Whether a topic that a regular expression matches counts for it."""

LENGTH_MAX: Final = 1_000
"""Characters of the longest one that is looked at; the core refuses longer ones by their length."""
STEPS_MAX: Final = 1_500
"""Steps of the largest program. A match takes at most some 6 nanoseconds for each step and each
character of a topic's name: about 2 ms at the very worst, and 2 microseconds as a rule."""
STEPS_AT_ONCE: Final = 2_000
"""Steps of the programs that are run in one turn of the loop."""
_MEMORY: Final = 64 << 10
"""Bytes that RE2 may take for one; it keeps 128 of them. More would let it compile for longer."""
_ABOVE: Final = 0xFF
"""Stands for all characters above it: names of topics have ASCII only, so none of them matches."""
_UNICODE_CLASS: Final = re.compile(r"\\[pP]")
"""With `(?i)`, RE2 takes 30 ms to read a single one of these."""


class Program(Protocol):
    """A compiled regular expression."""

    @property
    def programsize(self) -> int:
        """How many steps it has."""

    def fullmatch(self, text: bytes) -> object | None:
        """Match the text as a whole; None: it does not."""


@functools.lru_cache(maxsize=256)
def problem_of(regex: str) -> str:
    """Return why a regular expression cannot be used, as a part of a sentence; "" if it can."""
    if _UNICODE_CLASS.search(regex):
        return r"names of topics have ASCII characters only, so classes of Unicode (\p) are no use"
    try:
        steps = compiled(regex).programsize
    except re2.error as error:
        return _told(error)
    if steps > STEPS_MAX:
        return f"a match would take {steps} steps for each character, and {STEPS_MAX} are allowed"
    return ""


def compiled(regex: str) -> Program:
    """Compile a regular expression, or return it compiled; raises re2.error.

    It is for bytes, of which each is one character: programs for UTF-8 are several times as large.
    """
    options = re2.Options()
    options.log_errors, options.never_capture, options.max_mem = False, True, _MEMORY
    options.encoding = re2.Options.Encoding.LATIN1
    return re2.compile(bytes(min(ord(each), _ABOVE) for each in regex), options)


def _told(error: re2.error) -> str:
    """Return what RE2 says, which it says in bytes."""
    said = error.args[0] if error.args else ""
    return said.decode("latin-1") if isinstance(said, bytes) else str(said)


async def resolve(
    regexes: Iterable[str], topics: Iterable[TopicName], counts: Counts
) -> tuple[ResolvedRegex, ...]:
    """Return the topics that each regular expression matches as a whole, in slices.

    One that cannot be used matches nothing. `topics` must not change meanwhile.
    """
    found: dict[str, list[TopicName]] = {regex: [] for regex in sorted(set(regexes))}
    programs = {regex: compiled(regex) for regex in found if not problem_of(regex)}
    steps = sum(program.programsize for program in programs.values())
    at_once = max(1, STEPS_AT_ONCE // max(1, steps))
    for number, topic in enumerate(topics, start=1):
        name = topic.encode()
        for regex, program in programs.items():
            if program.fullmatch(name) is not None and counts(regex, topic):
                found[regex].append(topic)
        if number % at_once == 0:
            await give_way(at_once)
    return tuple(ResolvedRegex(regex, tuple(sorted(names))) for regex, names in found.items())


async def give_way(done: int) -> None:
    """Yield to the loop once; `done`: topics since the last time."""
    del done  # tests count it
    await asyncio.sleep(0)

"""What ends a stream: a sentence, raised in any of Spark's processes, and found again in its stack.

Knows no source and no Spark.
"""

from __future__ import annotations

import re
from typing import Final

from holdfast.coordinator.model.ids import Position
from holdfast.coordinator.model.text import readable, truncate
from holdfast.replay.findings import CannotCheck, WrongUse
from holdfast.replay.read.log_rows import ENTRY_LAST, START


class TailStopped(Exception):
    """The stream cannot go on; the text is one sentence. Its name marks it in Spark's stacks."""


class Unreached(CannotCheck):
    """No node of a cluster serves its log. The text and the name are as those of TailStopped."""


_SAID: Final = re.compile(
    rf"({TailStopped.__name__}|{Unreached.__name__}|{WrongUse.__name__}): ([^\n]+)"
)


def said_in(stack: str) -> Exception | None:
    """Return what ended a stream, from a stack that Spark gives; None if it was none of ours."""
    found = _SAID.search(stack)
    if found is None:
        return None
    return (Unreached if found[1] == Unreached.__name__ else ValueError)(found[2].strip())


def shown(place: Position) -> str:
    """Write a position behind which a stream goes on."""
    if place == START:
        return "the beginning"
    if place.ordinal == ENTRY_LAST:
        return f"entry {place.index}"
    return f"{place.index}.{place.ordinal}"


def one_line(why: object) -> str:
    """Write a reason so that it fits into a sentence."""
    return readable(truncate(str(why)))

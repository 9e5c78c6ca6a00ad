"""What a number, a text or a list from a peer may be; anything beyond is `BadMessage`.

Protobuf takes any number for a number, and what is missing for zero or empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NoReturn

from holdfast.raft.api import BadMessage
from holdfast.raft.messages import ITEMS_MAX

NUMBER_MAX: Final = 2**63 - 1
"""Anything above is a negative number in two's complement, or nothing that a node counts."""
TEXT_MAX: Final = 256
"""Characters of a text, and bytes of a digest."""


def bad(why: str) -> NoReturn:
    """Raise BadMessage for what a peer sent."""
    raise BadMessage(f"no node sends this: {why}")


def bound(bits: int) -> None:
    """Refuse numbers that are too great; `bits`: all of a message's numbers, joined by `|`."""
    if bits > NUMBER_MAX:
        bad(f"a number exceeds {NUMBER_MAX}")


def flag(value: int) -> bool:
    """Check a number that stands for a bool, and return that."""
    if value > 1:
        bad(f"{value} is not a flag")
    return value == 1


def text(value: str) -> str:
    """Check a text that may be empty, and return it."""
    if len(value) > TEXT_MAX:
        bad(f"a text of {len(value)} characters exceeds {TEXT_MAX}")
    return value


def name(value: str) -> str:
    """Check a text that must not be empty, and return it."""
    if not value:
        bad("a name is missing")
    return text(value)


def count(items: Sequence[object]) -> int:
    """Check the length of a list, and return it."""
    if len(items) > ITEMS_MAX:
        bad(f"a list of {len(items)} exceeds {ITEMS_MAX}")
    return len(items)


def measure(tail: bytes, wanted: int) -> None:
    """Check that the bytes after a head are as many as it says."""
    if wanted > len(tail):
        bad(f"{len(tail)} bytes after its head are too few: it speaks of {wanted}")
    if wanted < len(tail):
        bad(f"{len(tail) - wanted} bytes too many")

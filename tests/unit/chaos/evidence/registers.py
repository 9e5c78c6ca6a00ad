"""Histories of one register, by hand and by chance, for the tests of the search."""

from __future__ import annotations

from random import Random
from typing import Final

from holdfast.chaos.evidence.offset_registers import Access
from holdfast.chaos.evidence.wgl import Operation

START: Final = 0
"""What a register holds at first."""


def write(value: int, start: int, end: int | None) -> Operation:
    return Operation(f"w{value}", start, end, Access("write", value))


def read(value: int, start: int, end: int | None) -> Operation:
    return Operation(f"r{value}", start, end, Access("read", value), reads=True)


def random_history(random: Random) -> list[Operation]:
    """A few operations on a register, answered by chance: about half of them by an honest one."""
    honest = random.random() < 0.5
    held, found = START, []
    for moment in sorted(random.sample(range(40), 6)):
        start, end = moment - random.randint(0, 8), moment + random.randint(0, 8)
        if random.random() < 0.5:
            held = random.randint(1, 3)
            unknown = random.random() < 0.2
            found.append(write(held, start, None if unknown else end))
        else:
            found.append(read(held if honest else random.randint(0, 3), start, end))
    return found


def honest_history(random: Random, operations: int) -> list[Operation]:
    """What ten callers of a true register see."""
    planned, free = [], [0] * 10
    for _ in range(operations):
        caller = random.randrange(10)
        start = free[caller] + random.randint(1, 5)
        moment = start + random.randint(0, 20)
        free[caller] = moment + random.randint(0, 20)
        planned.append((moment, start, free[caller], random.random() < 0.5))
    held, told = START, []
    for number, (_, start, end, writes) in enumerate(sorted(planned), 1):
        held = number if writes else held
        told.append(write(held, start, end) if writes else read(held, start, end))
    return told


def spoilt_history(random: Random, operations: int) -> list[Operation]:
    """The same, but one answer, somewhere, is of an older or later moment."""
    told = honest_history(random, operations)
    reads = [number for number, each in enumerate(told) if each.reads]
    victim, other = random.choice(reads), random.choice(told)
    told[victim] = told[victim]._replace(what=Access("read", other.what.value))
    return told

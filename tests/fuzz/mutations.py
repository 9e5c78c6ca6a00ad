"""Bytes made from well-formed ones by chance: flipped, cut, doubled, spliced, stretched numbers.

A plain mutator for a quick look and for machines without a coverage-guided fuzzer; a seed gives the
same bytes everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

_TELLING = (b"\x00", b"\xff", b"\x7f", b"\x80" * 9 + b"\x01", b"\xff" * 8, b"\x00" * 8, b"{", b'"')


def mutated(seeds: Sequence[bytes], random: Random) -> Iterator[bytes]:
    """Go on for ever: a seed changed in one to eight places, now and then no seed at all."""
    while True:
        if random.random() < 0.05:
            yield random.randbytes(random.randrange(64))
            continue
        data = bytearray(random.choice(seeds))
        for _ in range(random.randint(1, 8)):
            _change(data, seeds, random)
        yield bytes(data)


def _change(data: bytearray, seeds: Sequence[bytes], random: Random) -> None:
    at = random.randint(0, len(data))
    match random.randrange(6):
        case 0 if at < len(data):
            data[at] ^= 1 << random.randrange(8)
        case 1 if at < len(data):
            data[at] = random.randrange(256)
        case 2:
            del data[at : at + random.randint(1, 8)]
        case 3:
            data[at:at] = random.choice(_TELLING)
        case 4:
            data[at:at] = data[at : at + random.randint(1, 40)]
        case _:
            other = random.choice(seeds)
            begin = random.randint(0, len(other))
            data[at : at + random.randint(0, 20)] = other[begin : begin + random.randint(0, 40)]

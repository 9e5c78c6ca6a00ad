"""How far colours lie apart for readers who see all of them, and for three who do not.

The matrices are those of Machado, Oliveira and Fernandes (2009) for a full loss of one kind of
cone; a distance is Euclid's in CIELAB. About 2.3 is a difference that is just noticed.
"""

from __future__ import annotations

from math import dist
from typing import Final, NamedTuple

Matrix = tuple[tuple[float, float, float], ...]

READERS: Final[dict[str, Matrix]] = {
    "all colours": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "no red": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "no green": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "no blue": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}


class Rgb(NamedTuple):
    """A colour of a screen, each part from 0 to 255."""

    red: float
    green: float
    blue: float


def parsed(text: str) -> Rgb:
    """Read `#rrggbb`."""
    return Rgb(*(float(int(text[at : at + 2], 16)) for at in (1, 3, 5)))


def contrast(one: Rgb, other: Rgb) -> float:
    """The ratio of WCAG 2.2, from 1 to 21."""
    dark, light = sorted((_luminance(one), _luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def apart(one: Rgb, other: Rgb, reader: Matrix) -> float:
    """How far two colours lie apart for a reader."""
    return dist(_lab(one, reader), _lab(other, reader))


def _linear(colour: Rgb) -> list[float]:
    shares = (part / 255 for part in colour)
    return [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in shares]


def _luminance(colour: Rgb) -> float:
    red, green, blue = _linear(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _lab(colour: Rgb, reader: Matrix) -> tuple[float, float, float]:
    light = _linear(colour)
    seen = (sum(a * b for a, b in zip(row, light, strict=True)) for row in reader)
    red, green, blue = (min(1.0, max(0.0, part)) for part in seen)
    x = _root((0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.9505)
    y = _root(0.2126 * red + 0.7152 * green + 0.0722 * blue)
    z = _root((0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.089)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def _root(share: float) -> float:
    return share ** (1 / 3) if share > 0.008856 else 7.787 * share + 16 / 116

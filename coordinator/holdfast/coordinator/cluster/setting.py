"""What a setting is (S23): a number in bounds, a word of some, or a list of such words, in order.

On the log every value is text. Knows no setting.
"""

from __future__ import annotations

from typing import Final, NamedTuple

CLUSTER: Final = "cluster"
GROUP: Final = "group"
DEFAULT: Final = "default"
"""Where a value comes from; the first two are also the widest scope in which it may be set."""
DIGITS_MAX: Final = 40
"""More than any bound has, and few enough to be read at no cost."""


class Setting(NamedTuple):
    """One setting."""

    name: str
    scope: str
    default: int | str
    least: int
    """The smallest value that is allowed."""
    most: int
    """The largest value that is allowed."""
    unit: str
    kafka_name: str
    documentation: str
    words: tuple[str, ...] = ()
    """The words that are allowed; empty: it is a number."""
    many: bool = False
    """It is a list of such words, with commas between them; their order counts."""

    @property
    def bounds(self) -> str:
        """What is allowed, for people."""
        if not self.words:
            return f"{self.least} to {self.most}"
        return ("a list of: " if self.many else "one of: ") + ", ".join(self.words)

    def read(self, text: str) -> int | str:
        """Return the meaning of a value that `problem` has nothing against."""
        return text if self.words else int(text)

    def problem(self, text: str) -> str | None:
        """Say in a sentence what is wrong with a value; None if nothing is."""
        if self.words:
            return self._problem_of_words(text)
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) <= DIGITS_MAX):
            return f"{text[:40]!r} is not a whole number"
        if not self.least <= int(text) <= self.most:
            return f"{int(text)} is out of bounds: {self.bounds} {self.unit} are allowed"
        return None

    def _problem_of_words(self, text: str) -> str | None:
        named = text.split(",") if self.many else [text]
        if all(each in self.words for each in named) and len(set(named)) == len(named):
            return None
        return f"{text[:80]!r} is not allowed; {self.bounds}" + (", each once" * self.many)


class Broken(NamedTuple):
    """Settings whose values do not fit together."""

    names: tuple[str, ...]
    problem: str

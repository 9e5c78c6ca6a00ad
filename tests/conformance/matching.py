"""Whether an answer is what Kafka gave: strict, but for ids that a service makes up, and for order.

A string that starts with `$` is a symbol: it stands for one id of this run, one-to-one over a whole
transcript. `{"any_of": [...]}`, `{"if_leader": [...]}` and `"*"` stand where Kafka itself leaves it
to chance. The client id of a member is not compared: after a static swap Kafka shows the old
process, we the new one (a deliberate difference, bettered K-B10).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Json = Any

UNORDERED = {
    *("members", "groups", "topics", "partitions", "results", "assigned_partitions"),
    *("topic_partitions", "responses", "subscribed_topic_names", "partition_indexes"),
}
"""Lists whose order means nothing; but the members of a LeaveGroup answer follow the request."""
NO_PARTITIONS: Json = {"assigned_partitions": []}
"""An assignment without partitions, in our format: no bytes at all."""


class Difference(Exception):
    """What was answered is not what was recorded."""


class Symbols:
    """The one-to-one map between symbols and this run's ids; immutable, so that it can be tried."""

    def __init__(self, ids: dict[str, str] | None = None) -> None:
        self._ids = ids or {}
        self._symbols = {value: symbol for symbol, value in self._ids.items()}

    def bound(self, symbol: str, value: Json) -> Symbols:
        """With this symbol bound to this id; raise Difference if either stands for another."""
        if self._ids.get(symbol, value) != value:
            raise Difference(f"{symbol} is {self._ids[symbol]!r}, not {self.shown(value)!r}")
        if self._symbols.get(value, symbol) != symbol:
            raise Difference(f"{value!r} is {self._symbols[value]}, a new id was due for {symbol}")
        if not isinstance(value, str) or not value:
            raise Difference(f"{value!r} is no id, one was due for {symbol}")
        return self if symbol in self._ids else Symbols({**self._ids, symbol: value})

    def resolved(self, request: Json) -> Json:
        """A recorded request with this run's ids; raise Difference for an id nobody was given."""
        if isinstance(request, dict):
            return {key: self.resolved(value) for key, value in request.items()}
        if isinstance(request, list):
            return [self.resolved(value) for value in request]
        if not is_symbol(request):
            return request
        if request not in self._ids:
            raise Difference(f"{request} was never given out")
        return self._ids[request]

    def unbound_in(self, value: Json) -> int:
        """How many symbols of a value are not bound yet."""
        if isinstance(value, dict):
            return sum(self.unbound_in(each) for each in value.values())
        if isinstance(value, list):
            return sum(self.unbound_in(each) for each in value)
        return int(is_symbol(value) and value not in self._ids)

    def shown(self, value: Json) -> Json:
        """A value of this run with symbols for ids, for people."""
        if isinstance(value, dict):
            return {key: self.shown(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self.shown(each) for each in value]
        return self._symbols.get(value, value) if isinstance(value, str) else value


def is_symbol(value: Json) -> bool:
    return isinstance(value, str) and value.startswith("$")


def match(expected: Json, actual: Json, symbols: Symbols, *, ordered: bool = False) -> Symbols:
    """The symbols after the comparison; raise Difference if `actual` is not what is expected.

    `ordered`: the members of this answer are in order.
    """
    for found in _matches(expected, actual, symbols, None, ordered=ordered):
        return found
    raise Difference(f"{expected} expected, got {symbols.shown(actual)}")


def _matches(
    expected: Json, actual: Json, symbols: Symbols, parent: Json, *, ordered: bool
) -> Iterator[Symbols]:
    """All ways in which it fits; lists without order may fit in several, of which one may fail."""
    if expected == "*" or (expected == NO_PARTITIONS and actual == ""):
        yield symbols
    elif isinstance(expected, dict) and set(expected) in ({"any_of"}, {"if_leader"}):
        yield from _choices(expected, actual, symbols, parent, ordered=ordered)
    elif isinstance(expected, dict):
        if isinstance(actual, dict) and set(expected) == set(actual):
            yield from _fields(sorted(expected), expected, actual, symbols, ordered=ordered)
    elif isinstance(expected, list):
        if isinstance(actual, list):
            yield from _in_order(expected, actual, symbols, ordered=ordered)
    else:
        yield from _leaf(expected, actual, symbols)


def _choices(
    expected: Json, actual: Json, symbols: Symbols, parent: Json, *, ordered: bool
) -> Iterator[Symbols]:
    """What Kafka leaves to chance: one of several, or something that only the leader is told."""
    if "if_leader" in expected:
        leads = parent.get("leader") == parent.get("member_id")
        yield from _bag(expected["if_leader"] if leads else [], actual, symbols, ordered=ordered)
        return
    for choice in expected["any_of"]:
        yield from _matches(choice, actual, symbols, parent, ordered=ordered)


def _leaf(expected: Json, actual: Json, symbols: Symbols) -> Iterator[Symbols]:
    if is_symbol(expected):
        try:
            yield symbols.bound(expected, actual)
        except Difference:
            return
    elif type(expected) is type(actual) and expected == actual:
        yield symbols


def _fields(
    keys: list[str], expected: Json, actual: Json, symbols: Symbols, *, ordered: bool
) -> Iterator[Symbols]:
    if not keys:
        yield symbols
        return
    key, rest = keys[0], keys[1:]
    want, got = expected[key], actual[key]
    if key == "client_id":
        fits: Iterator[Symbols] = iter((symbols,))
    elif key in UNORDERED and isinstance(want, list) and not (ordered and key == "members"):
        fits = _bag(want, got, symbols, ordered=ordered)
    else:
        fits = _matches(want, got, symbols, actual, ordered=ordered)
    for after in fits:
        yield from _fields(rest, expected, actual, after, ordered=ordered)


def _in_order(
    expected: list[Json], actual: list[Json], symbols: Symbols, *, ordered: bool
) -> Iterator[Symbols]:
    if len(expected) != len(actual):
        return
    if not expected:
        yield symbols
        return
    for after in _matches(expected[0], actual[0], symbols, None, ordered=ordered):
        yield from _in_order(expected[1:], actual[1:], after, ordered=ordered)


def _bag(
    expected: list[Json], actual: Json, symbols: Symbols, *, ordered: bool
) -> Iterator[Symbols]:
    """Without order: what has the fewest unknown ids is looked for first."""
    if not isinstance(actual, list) or len(expected) != len(actual):
        return
    if not expected:
        yield symbols
        return
    want = min(expected, key=symbols.unbound_in)
    rest = list(expected)
    rest.remove(want)
    for at, got in enumerate(actual):
        for after in _matches(want, got, symbols, None, ordered=ordered):
            yield from _bag(rest, [*actual[:at], *actual[at + 1 :]], after, ordered=ordered)

"""Makes, once for each class, the function that makes its values of messages.

Each event of each entry passes here on every node, so that nothing is asked at reading what is
known when the function is made: there is one for classes whose fields are all plain, one for those
with a single field, and one for all others. Knows no class and no message.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

Turn = Callable[[Any, Any], Any]
"""Makes a value of (the whole message, its raw field)."""


class Turned(NamedTuple):
    """A field that must be converted."""

    place: int
    """Its place among the message's fields."""
    turn: Turn


class Flat(NamedTuple):
    """A flattened value: some neighbouring fields of the message make one of the value."""

    start: int
    """The place of its first field among the message's."""
    end: int
    """The place after its last field."""
    made: type[Any]
    """Its class, a NamedTuple."""


def value_reader(
    make: Callable[[Any], Any],
    names: Sequence[str],
    turned: Sequence[Turned],
    flat: Sequence[Flat],
) -> Callable[[Any], Any]:
    """Return a function of a message, whose fields have these names, that makes a value of it.

    `make`: makes the value of its fields. `flat`: the last one first, since joining one moves the
    fields after it.
    """
    get = getter(names)
    if not turned and not flat:
        return lambda message: make(get(message))
    if turned and len(names) == 1:
        return _single(make, names[0], turned[0].turn)
    return _general(make, get, turned, flat)


def _single(make: Callable[[Any], Any], name: str, turn: Turn) -> Callable[[Any], Any]:
    one = attrgetter(name)
    return lambda message: make((turn(message, one(message)),))


def _general(
    make: Callable[[Any], Any],
    get: Callable[[Any], Any],
    turned: Sequence[Turned],
    flat: Sequence[Flat],
) -> Callable[[Any], Any]:
    joined = tuple((start, end, maker(each)) for start, end, each in flat)

    def read(message: object) -> Any:  # noqa: ANN401 - what `make` makes
        parts = list(get(message))
        for place, turn in turned:
            parts[place] = turn(message, parts[place])
        for start, end, join in joined:
            parts[start:end] = (join(parts[start:end]),)
        return make(parts)

    return read


def getter(paths: Sequence[str]) -> Callable[[Any], Any]:
    """Make a function that reads all paths of an object as a tuple, also fewer than two."""
    if not paths:
        return lambda _: ()
    if len(paths) == 1:
        one = attrgetter(paths[0])
        return lambda source: (one(source),)
    return attrgetter(*paths)


def maker(made: type[Any]) -> Callable[[Any], Any]:
    """Return a function that makes a value of its fields, all of them, in order."""
    if issubclass(made, tuple):
        return partial(tuple.__new__, made)  # what the class's own constructor calls, in Python
    return lambda fields: made(*fields)

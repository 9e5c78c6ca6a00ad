"""Makes, once for each class, the function that makes messages of its values.

Each event of each entry passes here, and each changed value of the state, so that nothing is asked
at writing what is known when the function is made: there is one for classes whose fields are all
plain, one for those that are a single list of values, and one for all others. A message in a list
is made where it belongs, since one that is made apart is copied. Knows no class and no message.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

Make = Callable[..., Any]
"""Makes a message of its fields, by name."""
Add = Callable[[Make, Any], Any]
"""Makes a message of a value."""
_Get = Callable[[Any], tuple[Any, ...]]


def value_writer(
    get: _Get | None,
    names: Sequence[str],
    turned: Sequence[tuple[int, Callable[[Any], Any]]],
    lists: Sequence[tuple[int, Add]],
) -> Add:
    """Return a function that makes messages, whose fields have these names, of values.

    `get`: reads the fields of a value; None: the value is a tuple of them. `turned`: places of
    fields that are converted, and how. `lists`: places of lists of values, and how one is added.
    """
    if not turned and not lists:
        return _plain(get, names)
    if get is not None and lists and len(names) == 1:
        return _single(get, names[0], lists[0][1])
    return _general(get or tuple, names, turned, lists)


def _plain(get: _Get | None, names: Sequence[str]) -> Add:
    if get is None:
        return lambda make, value: make(**dict(zip(names, value, strict=True)))
    return lambda make, value: make(**dict(zip(names, get(value), strict=True)))


def _single(get: _Get, name: str, add: Add) -> Add:
    field = attrgetter(name)

    def write(make: Make, value: object) -> Any:  # noqa: ANN401 - what `make` makes
        message = make()
        one = field(message).add
        for item in get(value)[0]:
            add(one, item)
        return message

    return write


def _general(
    get: _Get,
    names: Sequence[str],
    turned: Sequence[tuple[int, Callable[[Any], Any]]],
    lists: Sequence[tuple[int, Add]],
) -> Add:
    plain = tuple(i for i in range(len(names)) if i not in {place for place, _ in lists})

    def write(make: Make, value: object) -> Any:  # noqa: ANN401 - as above
        parts = list(get(value))
        for place, turn in turned:
            parts[place] = turn(parts[place])
        message = make(**{names[place]: parts[place] for place in plain})
        for place, add in lists:
            one = getattr(message, names[place]).add
            for item in parts[place]:
                add(one, item)
        return message

    return write

"""Check the arguments of a call before anything is sent.

Like arguments.py, for calls. A value out of its range is a ValueError, a value of a wrong type a
TypeError; both name the argument and say what it has to be. Plain checks, no IO.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import index
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from holdfast.client._session.session_io import TopicPartition
from holdfast.client._text import abbreviate
from holdfast.client._translate.arguments import INT32_MAX, check_group, check_positive, listed

if TYPE_CHECKING:
    from collections.abc import Iterable

INT64_MAX: Final = 2**63 - 1
GROUP_STATES: Final = (
    *("Empty", "PreparingRebalance", "CompletingRebalance", "Stable"),
    *("Assigning", "Reconciling"),
)
"""Kafka's words, which the contract carries as strings."""
GROUP_TYPES: Final = ("classic", "consumer", "share")
"""Kafka's words; this service has the first two of these types."""


class Offset(NamedTuple):
    """The offset of a partition, with metadata of the application's own."""

    value: int
    metadata: str = ""


def check_timeout(timeout_ms: object) -> None:
    """Check a time-out by the rule of a member's times. Raises ValueError."""
    check_positive("timeout_ms", timeout_ms, "milliseconds")


def check_members(members: Iterable[object]) -> None:
    """Check the arguments of `restart_on_signals` before a signal comes. Raises TypeError."""
    for member in members:
        if not callable(getattr(member, "begin_restart", None)):
            raise TypeError(
                "restart_on_signals takes members one by one, as restart_on_signals(*members), "
                f"not {abbreviate(member)}."
            )


def one_by_one(call: str, names: tuple[object, ...]) -> tuple[str, ...]:
    """Return names that `call` takes as separate arguments. Raises TypeError for a list."""
    texts = tuple(name for name in names if isinstance(name, str))
    if len(texts) < len(names):
        wrong = next(name for name in names if not isinstance(name, str))
        raise TypeError(
            f'{call} takes names one by one, as {call}("a", "b") or {call}(*names), '
            f"not {abbreviate(wrong)}."
        )
    return texts


def group_named(group: object) -> str:
    """Check a group's name. Raises TypeError if it is no text, ValueError if it is impossible."""
    if not isinstance(group, str):
        raise TypeError(f"group is the name of a group, not {abbreviate(group)}.")
    check_group(group)
    return group


def groups_named(call: str, names: tuple[object, ...]) -> tuple[str, ...]:
    """Check groups that `call` takes as separate arguments. Raises as the two functions above."""
    return tuple(group_named(name) for name in one_by_one(call, names))


def words_listed(argument: str, names: object, known: tuple[str, ...]) -> tuple[str, ...]:
    """Check a list of known words, in any case. Raises ValueError, else as `names_listed`."""
    folded = {word.casefold() for word in known}
    texts = names_listed(argument, names)
    for text in texts:
        if text.casefold() not in folded:
            raise ValueError(f"{argument} has {abbreviate(text)}; known are {', '.join(known)}.")
    return texts


def names_listed(argument: str, names: object) -> tuple[str, ...]:
    """Check a list of names. Raises ValueError for a single text, TypeError for other items."""
    given = listed(argument, names, "names")
    texts = tuple(name for name in given if isinstance(name, str))
    if len(texts) < len(given):
        raise TypeError(
            f"{argument} is a list of names, each a text, not {abbreviate(list(given))}."
        )
    return texts


def partitions_listed(partitions: object) -> list[TopicPartition]:
    """Return partitions by name, in order. Raises as `partition_named`."""
    text = isinstance(partitions, str | bytes)
    given = (partitions,) if text else listed("partitions", partitions, "partitions")
    return sorted(partition_named(each) for each in given)


def partition_named(name: object) -> TopicPartition:
    """Read a partition. Raises TypeError if it is no pair, ValueError for its number's range."""
    match name:
        case [str(topic), number] if _whole(number) is not None:
            what = f"The partition number of {abbreviate(topic)}"
            return TopicPartition(topic, _within(what, number, 0, INT32_MAX))
    raise TypeError(
        'A partition is named by topic and number, as in ("documents", 0) or as partition.name '
        f"has it, not by {abbreviate(name)}."
    )


def offsets_to_commit(offsets: object) -> dict[TopicPartition, Offset]:
    """Read offsets by partition. Raises ValueError for a range, else TypeError."""
    given = _mapping("offsets", offsets, '{("documents", 0): 42}')
    named = {partition_named(key): value for key, value in given.items()}
    return {name: _offset(name, value) for name, value in named.items()}


def _offset(name: TopicPartition, given: object) -> Offset:
    """Read an offset; a negative one is refused as in Kafka's OffsetAndMetadata."""
    about = f"The offset of partition {name.number} of {abbreviate(name.topic)}"
    if isinstance(given, tuple) and not isinstance(given, Offset):
        raise TypeError(
            f"{about} with metadata is written Offset(number, text), not {abbreviate(given)}."
        )
    value, metadata = given if isinstance(given, Offset) else (given, "")
    number = _within(about, value, 0, INT64_MAX)
    if not isinstance(metadata, str | None):
        raise TypeError(f"{about} has metadata that is no text: {abbreviate(metadata)}.")
    return Offset(number, metadata or "")


def partition_counts(argument: str, counts: object) -> dict[str, int]:
    """Read topics by name with a number of partitions each. Raises ValueError, TypeError."""
    return {
        topic: _within(f"The partition count of {abbreviate(topic)}", count, 1, INT32_MAX)
        for topic, count in _by_name(argument, counts, '{"documents": 4}').items()
    }


def settings_to_alter(settings: object) -> dict[str, str | None]:
    """Convert settings by name, numbers to text. Raises TypeError for other values."""
    given = _by_name("settings", settings, '{"group.max_size": "100"}')
    return {name: _setting(name, value) for name, value in given.items()}


def _setting(name: str, value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    number = _whole(value)
    if number is None:
        raise TypeError(
            f"Setting {abbreviate(name)} is a text or a whole number, or None for its default, "
            f"not {abbreviate(value)}."
        )
    return str(number)


def _by_name(argument: str, given: object, example: str) -> dict[str, object]:
    by_name = _mapping(argument, given, example)
    if not all(isinstance(name, str) for name in by_name):
        raise _no_mapping(argument, given, example)
    return dict(by_name)


def _mapping(argument: str, given: object, example: str) -> Mapping[Any, object]:
    if not isinstance(given, Mapping):
        raise _no_mapping(argument, given, example)
    return given


def _no_mapping(argument: str, given: object, example: str) -> TypeError:
    return TypeError(f"{argument} is a mapping such as {example}, not {abbreviate(given)}.")


def _within(what: str, value: object, least: int, most: int) -> int:
    """Return an integer. Raises TypeError if it is none, ValueError if it is out of range."""
    number = _whole(value)
    if number is not None and least <= number <= most:
        return number
    refusal = TypeError if number is None else ValueError
    raise refusal(f"{what} is a whole number, {least} to {most}, not {abbreviate(value)}.")


def _whole(value: Any) -> int | None:  # noqa: ANN401 - that is the question
    """Convert to int, also from other libraries' types; None: no integer, or a bool."""
    try:
        return None if isinstance(value, bool) else index(value)
    except TypeError:
        return None

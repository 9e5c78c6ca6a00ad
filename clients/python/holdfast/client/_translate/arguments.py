"""Check the arguments of a member before anything is sent.

A typo must not become a guess: `takeover="Wait"` is not "now", and `topics="documents"` is not nine
topics of one letter. What the service would refuse anyway is refused here with the same rule. Each
refusal is a ValueError of one sentence; a value of a wrong type (a callback that is no function, a
list that is none) is a TypeError. Plain checks, no IO.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, cast

from holdfast.client._text import abbreviate
from holdfast.coordinator.assignors import Assignor

if TYPE_CHECKING:
    from holdfast.client._session.session_io import Settings

INT32_MAX: Final = 2**31 - 1
GROUP_LENGTH_MAX: Final = 512
CLIENT_ID_LENGTH_MAX: Final = 255
"""The bound in server/rpc/callers.py."""
NAME_LENGTH_MAX: Final = 249
_NAME: Final = re.compile(rf"(?!\.{{1,2}}\Z)[A-Za-z0-9._-]{{1,{NAME_LENGTH_MAX}}}")
"""Kafka's rule for topics and for group.instance.id; the service's stand in coordinator, in
cluster/topics.py and classic/validation.py."""
_NAME_IS: Final = f"1 to {NAME_LENGTH_MAX} of letters, digits, '.', '_', '-' (and not '.' or '..')"
_CLIENT_ID: Final = re.compile(rf"[ -~]{{0,{CLIENT_ID_LENGTH_MAX}}}")
"""The characters that a call's metadata can carry."""
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_TIMES: Final = (
    *("session_timeout_ms", "rebalance_timeout_ms"),
    *("heartbeat_interval_ms", "topics_refresh_ms"),
)


def listed(argument: str, given: object, of: str) -> tuple[object, ...]:
    """Return the items of a list.

    Raises ValueError for a text, whose letters are not meant, and TypeError for a value of another
    type.
    """
    if isinstance(given, str | bytes):
        raise ValueError(  # noqa: TRY004 - a text in place of a list is a slip in the value
            f"{argument} is a list of {of}, not {abbreviate(given)}: write [{abbreviate(given)}]."
        )
    if not isinstance(given, Iterable):
        raise TypeError(f"{argument} is a list of {of}, not {abbreviate(given)}.")
    return tuple(given)


def topic_names(topics: object) -> tuple[str, ...]:
    """Return the topics in order, each once. Raises ValueError for an impossible name."""
    given = listed("topics", topics, "names")
    names = tuple(name for name in given if isinstance(name, str) and name)
    if not names or len(names) < len(given):
        raise ValueError(f"topics names at least one topic, each a text, not {abbreviate(given)}.")
    for name in names:
        if not _NAME.fullmatch(name):
            raise ValueError(
                f"topics has {abbreviate(name)}, which no topic can be called: "
                f"a name is {_NAME_IS}."
            )
    return tuple(sorted(set(names)))


def assignors_of(given: object) -> tuple[Assignor, ...]:
    """Return the assignors, the most preferred first. Raises TypeError for other objects."""
    assignors = tuple(given) if isinstance(given, Iterable) else (None,)
    if not all(_can_assign(each) for each in assignors):
        raise TypeError(
            f"assignors is a list of objects such as RangeAssignor(), not {abbreviate(given)}."
        )
    return cast("tuple[Assignor, ...]", assignors)


def _can_assign(assignor: object) -> bool:
    """Return whether an object has the methods of an assignor; a class is no assignor."""
    return isinstance(assignor, Assignor) and not isinstance(assignor, type)


def check_callables(**callbacks: object) -> None:
    """Raise TypeError for a callback that cannot be called; None is allowed."""
    for name, callback in callbacks.items():
        if callback is not None and not callable(callback):
            raise TypeError(f"{name} is a function or None, not {abbreviate(callback)}.")


def check_client_id(client_id: object) -> None:
    """Raise ValueError for a client id that the service refuses; None is allowed."""
    if client_id is None:
        return
    if not isinstance(client_id, str) or not _CLIENT_ID.fullmatch(client_id):
        raise ValueError(
            f"client_id {abbreviate(client_id)} is not up to {CLIENT_ID_LENGTH_MAX} of the "
            "printable characters of ASCII; None sends none."
        )


def check_instance_id(instance_id: object) -> None:
    """Check Kafka's rule for group.instance.id; None is allowed. Raises ValueError."""
    if instance_id is None:
        return
    if not isinstance(instance_id, str) or not _NAME.fullmatch(instance_id):
        raise ValueError(
            f"instance_id {abbreviate(instance_id)} is not {_NAME_IS}; None makes a dynamic member."
        )


def check_name(argument: str, name: object) -> None:
    """Raise ValueError for what cannot be the name of a topic or of an assignor."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(f"{argument} {abbreviate(name)} is not {_NAME_IS}.")


def checked(settings: Settings) -> Settings:
    """Return the settings if they are valid for a member. Raises ValueError."""
    check_group(settings.group)
    check_instance_id(settings.instance_id)
    for name in _TIMES:
        check_positive(name, getattr(settings, name), "milliseconds")
    if settings.start_timeout_ms is not None:
        check_positive("start_timeout_ms", settings.start_timeout_ms, "milliseconds, or None")
    if settings.heartbeat_interval_ms >= settings.session_timeout_ms:
        raise ValueError(
            f"heartbeat_interval_ms ({settings.heartbeat_interval_ms}) must be below "
            f"session_timeout_ms ({settings.session_timeout_ms}); a third of it is usual."
        )
    if settings.takeover not in ("now", "wait"):
        raise ValueError(f'takeover is "now" or "wait", not {abbreviate(settings.takeover)}.')
    check_positive("weight", settings.weight, "whole number")
    if not settings.assignors and settings.group_protocol == "classic":
        raise ValueError("assignors is empty: give at least one, or leave it out.")
    return settings


def check_group(group: object) -> None:
    """Raise ValueError for a name that no group can have."""
    if not isinstance(group, str) or not group:
        raise ValueError(f"group is the name of a group, not {abbreviate(group)}.")
    if len(group) > GROUP_LENGTH_MAX or _CONTROL.search(group):
        raise ValueError(
            f"group {abbreviate(group)} has more than {GROUP_LENGTH_MAX} characters or control "
            "characters; the service takes neither."
        )


def check_positive(name: str, value: object, what: str) -> None:
    """Raise ValueError unless it is a positive number; a bool, a number to Python, is refused."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= INT32_MAX:
        raise ValueError(f"{name} is 1 to {INT32_MAX} ({what}), not {abbreviate(value)}.")

"""What a member can be asked to be: a wrong argument is refused before anything is sent.

A slip must not become a guess: `takeover="Wait"` is not "now", and `topics="documents"` is not nine
topics of one letter. What the service would refuse anyway is refused here with the same rule. Each
refusal is a ValueError of one sentence. Plain checks, no IO.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.client.signals import Settings

INT32_MAX: Final = 2**31 - 1
GROUP_LENGTH_MAX: Final = 512
_INSTANCE_ID: Final = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._-]{1,249}")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_TIMES: Final = (
    *("session_timeout_ms", "rebalance_timeout_ms"),
    *("heartbeat_interval_ms", "topics_refresh_ms"),
)


def topic_names(topics: Iterable[object]) -> tuple[str, ...]:
    """The topics in order, each once."""
    if isinstance(topics, str | bytes):
        raise ValueError(  # noqa: TRY004 - every refusal here is of one kind
            f"topics is a list of names, not {topics!r}: write [{topics!r}]."
        )
    given = tuple(topics)
    names = tuple(name for name in given if isinstance(name, str) and name)
    if not names or len(names) < len(given):
        raise ValueError(f"topics names at least one topic, each a text, not {given!r}.")
    return tuple(sorted(set(names)))


def check_instance_id(instance_id: object) -> None:
    """Kafka's rule for group.instance.id; None is right, too."""
    if instance_id is None:
        return
    if not isinstance(instance_id, str) or not _INSTANCE_ID.fullmatch(instance_id):
        raise ValueError(
            f"instance_id {instance_id!r} is not 1 to 249 of letters, digits, '.', '_', '-' "
            "(and not '.' or '..'); None makes a dynamic member."
        )


def checked(settings: Settings) -> Settings:
    """The same settings, if a member can live by them."""
    _check_group(settings.group)
    check_instance_id(settings.instance_id)
    for name in _TIMES:
        _check_positive(name, getattr(settings, name), "milliseconds")
    if settings.heartbeat_interval_ms >= settings.session_timeout_ms:
        raise ValueError(
            f"heartbeat_interval_ms ({settings.heartbeat_interval_ms}) must be below "
            f"session_timeout_ms ({settings.session_timeout_ms}); a third of it is usual."
        )
    if settings.takeover not in ("now", "wait"):
        raise ValueError(f'takeover is "now" or "wait", not {settings.takeover!r}.')
    _check_positive("weight", settings.weight, "whole number")
    if not settings.assignors:
        raise ValueError("assignors is empty: give at least one, or leave it out.")
    return settings


def _check_group(group: object) -> None:
    if not isinstance(group, str) or not group:
        raise ValueError(f"group is the name of a group, not {group!r}.")
    if len(group) > GROUP_LENGTH_MAX or _CONTROL.search(group):
        raise ValueError(
            f"group {group[:40]!r} has more than {GROUP_LENGTH_MAX} characters or control "
            "characters; the service takes neither."
        )


def _check_positive(name: str, value: object, what: str) -> None:
    """Bools are numbers to Python, and a slip here."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= INT32_MAX:
        raise ValueError(f"{name} is 1 to {INT32_MAX} ({what}), not {value!r}.")

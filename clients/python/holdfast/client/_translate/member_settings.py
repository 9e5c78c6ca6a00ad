"""What a member wants, from the arguments that it is made with: by protocol, checked.

Some belong to one protocol: in the heartbeat protocol the service assigns, and timeouts are the
group's. An argument of the other protocol is refused, for it would be without effect. No IO.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any, Final

from holdfast.client._session.session_io import Settings, Subscription
from holdfast.client._text import abbreviate
from holdfast.client._translate.arguments import (
    assignors_of,
    check_name,
    check_positive,
    checked,
    topic_names,
)
from holdfast.client._translate.client_assignor import said_by
from holdfast.coordinator.assignors import RangeAssignor, StickyAssignor

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.coordinator.assignors import Assignor

DEFAULT_ASSIGNORS: Final[tuple[Assignor, ...]] = (StickyAssignor(), RangeAssignor())
REGEX_LENGTH_MAX: Final = 1_000
RACK_LENGTH_MAX: Final = 249
"""The service's bounds."""
_CLASSIC: Final = {
    "session_timeout_ms": "it is the group's there (group.consumer_session_timeout_ms)",
    "heartbeat_interval_ms": "it is the group's there (group.consumer_heartbeat_interval_ms)",
    "assignors": "the service assigns there: see server_assignor, or else client_assignors",
    "weight": "the service assigns there",
    "topics_refresh_ms": "the service watches the topics there",
}
"""Arguments of the classic protocol alone, and what stands in their place."""
_CONSUMER: Final = (
    *("topic_regex", "rack_id", "server_assignor", "work_timeout_ms", "absence_ms"),
    "client_assignors",
)


class Unset(enum.Enum):
    """Stands for an argument that was not given: None would be one that was."""

    UNSET = "not given"

    def __repr__(self) -> str:
        return self.value


UNSET: Final = Unset.UNSET


def settings_of(protocol: object, member_id: str, given: Mapping[str, Any]) -> Settings:
    """Make the settings of a member from all arguments that describe it.

    `member_id` is for a member that makes its own. Raises ValueError and TypeError.
    """
    if protocol not in ("classic", "consumer"):
        raise ValueError(f'protocol is "classic" or "consumer", not {abbreviate(protocol)}.')
    set_ones = {name: value for name, value in given.items() if value is not UNSET}
    if protocol == "consumer":
        return _consumer(member_id, set_ones)
    for name in _CONSUMER:
        if name in set_ones:
            raise ValueError(
                f'{name} belongs to the heartbeat protocol: give protocol="consumer" as well.'
            )
    if "topics" not in set_ones:
        raise TypeError("topics is missing: name the topics that the member wants.")
    set_ones["topics"] = topic_names(set_ones["topics"])
    set_ones["assignors"] = assignors_of(set_ones.get("assignors", DEFAULT_ASSIGNORS))
    return checked(Settings(**set_ones))


def _consumer(member_id: str, given: dict[str, Any]) -> Settings:
    for name, instead in _CLASSIC.items():
        if name in given:
            raise ValueError(f'{name} is not for protocol="consumer": {instead}.')
    wanted = subscription_of(given.pop("topics", UNSET), given.pop("topic_regex", UNSET))
    if (work_ms := given.get("work_timeout_ms")) is not None:
        check_positive("work_timeout_ms", work_ms, "milliseconds, or None")
    if (absence_ms := given.get("absence_ms")) is not None:
        check_positive("absence_ms", absence_ms, "milliseconds, or None")
    if "client_assignors" in given:
        given["client_assignors"] = said_by(given["client_assignors"])
    _check_text("rack_id", given.get("rack_id"), RACK_LENGTH_MAX)
    if given.get("server_assignor") is not None:
        check_name("server_assignor", given["server_assignor"])
    settings = Settings(
        **given,
        topics=wanted.topics,
        topic_regex=wanted.regex,
        assignors=(),
        member_id=member_id,
        group_protocol="consumer",
    )
    return checked(settings)


def subscription_of(topics: object, topic_regex: object) -> Subscription:
    """Read what a member of the heartbeat protocol wants; at least one of both must be given.

    Raises ValueError for a pattern or a topic that cannot be, TypeError for other values.
    """
    if topics is UNSET and topic_regex is UNSET:
        raise ValueError("Give topics, or a topic_regex: the member would want nothing.")
    _check_text("topic_regex", None if topic_regex is UNSET else topic_regex, REGEX_LENGTH_MAX)
    if topic_regex is None:
        raise TypeError("topic_regex is a text; leave it out for none.")
    names = () if topics is UNSET else topic_names(topics)
    return Subscription(names, "" if topic_regex is UNSET else str(topic_regex))


def _check_text(name: str, value: object, length_max: int) -> None:
    """Check a text that goes to the service as it is; None is allowed. Raises ValueError."""
    if value is None:
        return
    if not isinstance(value, str) or not 0 < len(value) <= length_max:
        raise ValueError(
            f"{name} is a text of 1 to {length_max} characters, not {abbreviate(value)}."
        )

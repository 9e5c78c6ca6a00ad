"""The settings of the heartbeat protocol: entries of the catalogue, their view, their relations.

Per group are those that Kafka has per group, too, under the same names; bounds hold for all groups.
Knows no other setting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from holdfast.coordinator.cluster.setting import CLUSTER, GROUP, Broken, Setting

_INT32_MAX: Final = 2**31 - 1

OF_CONSUMERS: Final = (
    Setting(
        "group.consumer_session_timeout_ms",
        GROUP,
        45000,
        1,
        _INT32_MAX,
        "ms",
        "group.consumer.session.timeout.ms",
        "How long a member of the heartbeat protocol may be silent.",
    ),
    Setting(
        "group.consumer_min_session_timeout_ms",
        CLUSTER,
        45000,
        1,
        _INT32_MAX,
        "ms",
        "group.consumer.min.session.timeout.ms",
        "The shortest session timeout that a group of the heartbeat protocol may have.",
    ),
    Setting(
        "group.consumer_max_session_timeout_ms",
        CLUSTER,
        60000,
        1,
        _INT32_MAX,
        "ms",
        "group.consumer.max.session.timeout.ms",
        "The longest session timeout that a group of the heartbeat protocol may have.",
    ),
    Setting(
        "group.consumer_heartbeat_interval_ms",
        GROUP,
        5000,
        1,
        _INT32_MAX,
        "ms",
        "group.consumer.heartbeat.interval.ms",
        "How often a member of the heartbeat protocol is to be heard.",
    ),
    Setting(
        "group.consumer_min_heartbeat_interval_ms",
        CLUSTER,
        5000,
        1,
        _INT32_MAX,
        "ms",
        "group.consumer.min.heartbeat.interval.ms",
        "The shortest heartbeat interval that a group of the heartbeat protocol may have.",
    ),
    Setting(
        "group.consumer_max_heartbeat_interval_ms",
        CLUSTER,
        15000,
        1,
        _INT32_MAX,
        "ms",
        "group.consumer.max.heartbeat.interval.ms",
        "The longest heartbeat interval that a group of the heartbeat protocol may have.",
    ),
    Setting(
        "group.consumer_max_size",
        GROUP,
        10000,
        1,
        1_000_000,
        "members",
        "group.consumer.max.size",
        "How many members a group of the heartbeat protocol may have.",
    ),
    Setting(
        "group.consumer_assignors",
        GROUP,
        "uniform,range",
        0,
        0,
        "",
        "group.consumer.assignors",
        "The assignors that members of the heartbeat protocol may ask for; the first is for "
        "those that ask for none.",
        words=("uniform", "range"),
        many=True,
    ),
    Setting(
        "group.consumer_migration_policy",
        GROUP,
        "bidirectional",
        0,
        0,
        "",
        "group.consumer.migration.policy",
        "Which groups may change their protocol while they have members: to the heartbeat "
        "protocol (upgrade), to the classic one (downgrade), either way, or none.",
        words=("bidirectional", "upgrade", "downgrade", "disabled"),
    ),
    Setting(
        "group.consumer_takeover",
        GROUP,
        "newest",
        0,
        0,
        "",
        "",
        "Who gets the place of a static member of the heartbeat protocol that has not released it: "
        "the newest process of its principal at once, whoever asks once the holder's session is "
        "over, or nobody but who happens to ask then, as in Kafka (refuse). Processes that tell "
        "no life have Kafka's rule.",
        words=("newest", "after_session", "refuse"),
    ),
    Setting(
        "group.consumer_assignment_interval_ms",
        GROUP,
        0,
        0,
        _INT32_MAX,
        "ms",
        "group.consumer.assignment.interval.ms",
        "The least time between two targets of a group of the heartbeat protocol; 0: each "
        "change has its own.",
    ),
    Setting(
        "group.consumer_min_assignment_interval_ms",
        CLUSTER,
        0,
        0,
        _INT32_MAX,
        "ms",
        "group.consumer.min.assignment.interval.ms",
        "The least assignment interval that a group of the heartbeat protocol may have.",
    ),
    Setting(
        "group.consumer_max_assignment_interval_ms",
        CLUSTER,
        15000,
        0,
        _INT32_MAX,
        "ms",
        "group.consumer.max.assignment.interval.ms",
        "The longest assignment interval that a group of the heartbeat protocol may have.",
    ),
    Setting(
        "group.consumer_regex_refresh_interval_ms",
        GROUP,
        600000,
        10000,
        _INT32_MAX,
        "ms",
        "group.consumer.regex.refresh.interval.ms",
        "How often the topics of regular expressions are looked up when no topic has changed.",
    ),
    Setting(
        "group.consumer_inline_work",
        GROUP,
        12_000,
        0,
        _INT32_MAX,
        "members and partitions",
        "",
        "How large a group of the heartbeat protocol may be, in members and partitions together, "
        "for its target to be computed in the leader's loop, where that takes about 20 ms for the "
        "default; a larger one's is computed by a child process of low priority.",
    ),
)


class ConsumerSettings(NamedTuple):
    """The settings of the heartbeat protocol that are in force for one group."""

    session_timeout_ms: int
    heartbeat_interval_ms: int
    max_size: int
    assignors: tuple[str, ...]
    migration_policy: str
    takeover: str
    assignment_interval_ms: int
    regex_refresh_interval_ms: int
    inline_work: int
    bounds: tuple[tuple[str, int, int], ...]
    """Each setting that has bounds of its own among the settings, with these."""


_BOUNDED: Final = ("session_timeout_ms", "heartbeat_interval_ms", "assignment_interval_ms")


def view(number: Callable[[str], int], text: Callable[[str], str]) -> ConsumerSettings:
    """Make the view of one scope; the functions give values in force there by name."""

    def of(name: str) -> int:
        return number(f"group.consumer_{name}")

    return ConsumerSettings(
        session_timeout_ms=of("session_timeout_ms"),
        heartbeat_interval_ms=of("heartbeat_interval_ms"),
        max_size=of("max_size"),
        assignors=tuple(text("group.consumer_assignors").split(",")),
        migration_policy=text("group.consumer_migration_policy"),
        takeover=text("group.consumer_takeover"),
        assignment_interval_ms=of("assignment_interval_ms"),
        regex_refresh_interval_ms=of("regex_refresh_interval_ms"),
        inline_work=of("inline_work"),
        bounds=tuple([(name, of(f"min_{name}"), of(f"max_{name}")) for name in _BOUNDED]),
    )


def broken(found: ConsumerSettings, where: str) -> Iterator[Broken]:
    """Yield the relations that do not hold; `where` ends the sentences."""
    values = (found.session_timeout_ms, found.heartbeat_interval_ms, found.assignment_interval_ms)
    for (name, least, most), value in zip(found.bounds, values, strict=True):
        if not least <= value <= most:
            names = tuple(f"group.consumer_{prefix}{name}" for prefix in ("", "min_", "max_"))
            told = f"group.consumer_{name} {value} would be outside of {least} to {most}{where}"
            yield Broken(names, told)
    if found.heartbeat_interval_ms >= found.session_timeout_ms:
        yield Broken(
            ("group.consumer_heartbeat_interval_ms", "group.consumer_session_timeout_ms"),
            f"group.consumer_heartbeat_interval_ms {found.heartbeat_interval_ms} would not be "
            f"shorter than group.consumer_session_timeout_ms {found.session_timeout_ms}{where}",
        )

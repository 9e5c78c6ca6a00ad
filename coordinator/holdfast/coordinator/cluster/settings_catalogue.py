"""The settings that the log keeps (S23): one entry each, and nothing else.

Names are Kafka's where Kafka has the setting: its first dot parts
the table from the key, the others become underscores. Knows no rules between settings; those are in
`settings`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.coordinator.cluster.setting import CLUSTER, DEFAULT, GROUP, Setting
from holdfast.coordinator.cluster.settings_consumer import OF_CONSUMERS

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CLUSTER", "DEFAULT", "GROUP", "REGISTRY", "Setting"]

_INT32_MAX: Final = 2**31 - 1
_INT64_MAX: Final = 2**63 - 1
_MIB: Final = 1 << 20
_DAY_MS: Final = 24 * 3_600_000


_ALL: Final = (
    Setting(
        "group.min_session_timeout_ms",
        GROUP,
        6_000,
        1,
        _INT32_MAX,
        "ms",
        "group.min.session.timeout.ms",
        "The shortest session timeout that a member may ask for.",
    ),
    Setting(
        "group.max_session_timeout_ms",
        GROUP,
        1_800_000,
        1,
        _INT32_MAX,
        "ms",
        "group.max.session.timeout.ms",
        "The longest session timeout that a member may ask for.",
    ),
    Setting(
        "group.initial_rebalance_delay_ms",
        GROUP,
        3_000,
        0,
        _INT32_MAX,
        "ms",
        "group.initial.rebalance.delay.ms",
        "How long the first join phase of an empty group waits for more members.",
    ),
    Setting(
        "group.max_size",
        GROUP,
        10_000,
        1,
        1_000_000,
        "members",
        "group.max.size",
        "How many members a group may have.",
    ),
    Setting(
        "group.metadata_bytes_max",
        GROUP,
        512,
        16,
        64 * _MIB,
        "bytes",
        "",
        "A member's share of the bytes that the members of a group may send as protocol metadata; "
        "a group that is not full may use the shares of absent members too.",
    ),
    Setting(
        "group.assignment_bytes_max",
        GROUP,
        320,
        16,
        64 * _MIB,
        "bytes",
        "",
        "A member's share of the bytes that a group leader may send as assignments; what counts "
        "is the sum over the group.",
    ),
    Setting(
        "offset.metadata_max_bytes",
        GROUP,
        4_096,
        0,
        _MIB,
        "characters",
        "offset.metadata.max.bytes",
        "The longest text beside a committed offset, counted in characters as in Kafka.",
    ),
    Setting(
        "offsets.retention_minutes",
        GROUP,
        10_080,
        1,
        _INT32_MAX,
        "minutes",
        "offsets.retention.minutes",
        "How long, in log time, offsets of a group without members are kept, and the group itself.",
    ),
    Setting(
        "offsets.retention_check_interval_ms",
        CLUSTER,
        600_000,
        100,
        _DAY_MS,
        "ms",
        "offsets.retention.check.interval.ms",
        "How often expired offsets and groups are looked for.",
    ),
    Setting(
        "dedupe.window_ms",
        CLUSTER,
        600_000,
        1_000,
        _DAY_MS,
        "ms",
        "",
        "How old, in log time, a request id may be. An older one is refused as outcome unknown.",
    ),
    Setting(
        "dedupe.requests_max",
        CLUSTER,
        50_000,
        100,
        10_000_000,
        "requests",
        "",
        "How many answers are kept for repeated requests; each costs about half a kilobyte.",
    ),
    Setting(
        "cluster.groups_max",
        CLUSTER,
        100_000,
        1,
        10_000_000,
        "groups",
        "",
        "How many groups there may be.",
    ),
    Setting(
        "cluster.topics_max",
        CLUSTER,
        50_000,
        1,
        10_000_000,
        "topics",
        "",
        "How many topics there may be.",
    ),
    Setting(
        "cluster.partitions_max",
        CLUSTER,
        1_000_000,
        1,
        100_000_000,
        "partitions",
        "",
        "How many partitions all topics may have together.",
    ),
    Setting(
        "cluster.members_max",
        CLUSTER,
        200_000,
        1,
        10_000_000,
        "members",
        "",
        "How many members all groups may have together; a member id that was handed out and not "
        "used yet counts as one.",
    ),
    Setting(
        "cluster.state_bytes_max",
        CLUSTER,
        1 << 30,
        64 * 1024,
        1 << 40,
        "bytes",
        "",
        "How many bytes of a node's memory the state may take, about. Above it nothing new is "
        "taken in; what members that are there need may be a quarter more. Answers kept for "
        "repeated requests count: with less than 2 kB for each of dedupe.requests_max, many "
        "commits alone may reach it, and are then refused.",
    ),
    Setting(
        "principal.calls_per_second_max",
        CLUSTER,
        0,
        0,
        _INT32_MAX,
        "calls",
        "",
        "How many calls one principal may make at a node in a second, heartbeats apart. 0: any "
        "number.",
    ),
    Setting(
        "principal.bytes_per_second_max",
        CLUSTER,
        0,
        0,
        1 << 40,
        "bytes",
        "",
        "How many bytes of requests one principal may send a node in a second, heartbeats apart. "
        "0: any number.",
    ),
    Setting(
        "principal.watches_max",
        CLUSTER,
        0,
        0,
        _INT32_MAX,
        "watches",
        "",
        "How many watches of the event log one principal may have at a node; never more than 32. "
        "0: 32.",
    ),
    Setting(
        "topic.partitions_max",
        CLUSTER,
        100_000,
        1,
        1_000_000,
        "partitions",
        "",
        "How many partitions a topic may have.",
    ),
    Setting(
        "log.entry_bytes_max",
        CLUSTER,
        8 * _MIB,
        64 * 1024,
        64 * _MIB,
        "bytes",
        "",
        "The largest entry of the replicated log.",
    ),
    Setting(
        "log.segment_bytes_max",
        CLUSTER,
        64 * _MIB,
        64 * 1024,
        1 << 34,
        "bytes",
        "",
        "A segment of old events is sealed when its records have this many bytes.",
    ),
    Setting(
        "log.segment_events_max",
        CLUSTER,
        250_000,
        1,
        100_000_000,
        "events",
        "",
        "A segment of old events is sealed when it has this many records.",
    ),
    Setting(
        "log.segment_age_ms_max",
        CLUSTER,
        _DAY_MS,
        1_000,
        30 * _DAY_MS,
        "ms",
        "",
        "A segment of old events is sealed when its first record is this old, in log time.",
    ),
    Setting(
        "log.retention_ms",
        CLUSTER,
        -1,
        -1,
        _INT64_MAX,
        "ms",
        "log.retention.ms",
        "How old, in log time, the newest record of a sealed segment becomes before the segment is "
        "deleted on all nodes; -1: never. What it led to is kept as a checkpoint.",
    ),
    Setting(
        "log.retention_bytes",
        CLUSTER,
        -1,
        -1,
        _INT64_MAX,
        "bytes",
        "log.retention.bytes",
        "How many bytes all sealed segments may take on a node's disk before the oldest are "
        "deleted; -1: no bound.",
    ),
    Setting(
        "log.retention_min_ms",
        CLUSTER,
        _DAY_MS,
        0,
        _INT64_MAX,
        "ms",
        "",
        "How much of the history is kept in any case, in log time, whatever log.retention_ms and "
        "log.retention_bytes say.",
    ),
    Setting(
        "log.retention_require_backup",
        CLUSTER,
        0,
        0,
        1,
        "0 or 1",
        "",
        "1: nothing is deleted that is not in a backup which `holdfast backup verify --report` has "
        "verified.",
    ),
    Setting(
        "log.retention_check_interval_ms",
        CLUSTER,
        300_000,
        100,
        _DAY_MS,
        "ms",
        "log.retention.check.interval.ms",
        "How often the leader looks for history to delete.",
    ),
)

REGISTRY: Final[Mapping[str, Setting]] = {
    setting.name: setting for setting in (*_ALL, *OF_CONSUMERS)
}
"""All settings by name."""

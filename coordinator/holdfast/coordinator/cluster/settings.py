"""Settings that shape answers, kept in the log (S23): typed views, and checks of changes.

On the log a setting is text; here it gets its meaning. A setting has a value for the cluster, and
those of scope `group` may have another one for single groups. Knows the replicated `Settings` and
the catalogue, and nothing of groups, commands or files.

Sizes (S7). What a group must write at once has to fit into one entry, or the group could never
finish a rebalance. The most that it may have to write is bounded when settings are changed:
`group.max_size x (group.metadata_bytes_max + group.assignment_bytes_max) <= log.entry_bytes_max`.
The two byte limits are a member's *share*. A group of few members may fill the shares that the
absent ones leave: what is limited is the sum over the group (`metadata_pool`, `assignment_pool`),
so that one worker alone may own thousands of partitions, and 10,000 workers some hundred bytes
each. Beside the assignments there has to be room for the members' ids (`MEMBER_BYTES`). Who needs
more for a group lowers its `group.max_size` and raises its shares.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, NamedTuple

from holdfast.coordinator.cluster import settings_consumer
from holdfast.coordinator.cluster.setting import Broken
from holdfast.coordinator.cluster.settings_catalogue import (
    CLUSTER,
    DEFAULT,
    GROUP,
    REGISTRY,
    Setting,
)
from holdfast.coordinator.cluster.settings_consumer import ConsumerSettings
from holdfast.coordinator.model.rejections import InvalidConfig
from holdfast.coordinator.model.state import Settings
from holdfast.coordinator.model.usage import Usage
from holdfast.coordinator.structures.pmap import PMap

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.coordinator.model.events import SettingChange
    from holdfast.coordinator.model.ids import GroupId
    from holdfast.coordinator.model.state import State


class GroupSettings(NamedTuple):
    """The settings in force for one group."""

    min_session_timeout_ms: int
    max_session_timeout_ms: int
    initial_rebalance_delay_ms: int
    max_size: int
    metadata_bytes_max: int
    assignment_bytes_max: int
    offset_metadata_max: int
    retention_ms: int
    consumer: ConsumerSettings
    """Those of the heartbeat protocol."""

    @property
    def metadata_pool(self) -> int:
        """Bytes of protocol metadata that all members of the group may have together."""
        return self.max_size * self.metadata_bytes_max

    @property
    def assignment_pool(self) -> int:
        """Bytes that all assignments of a generation may have together."""
        return self.max_size * self.assignment_bytes_max


class PrincipalSettings(NamedTuple):
    """What one principal may take of a node; 0: as much as it likes."""

    calls_per_second_max: int
    bytes_per_second_max: int
    watches_max: int


class ClusterSettings(NamedTuple):
    """The settings in force for the cluster as a whole."""

    retention_check_interval_ms: int
    dedupe_window_ms: int
    dedupe_requests_max: int
    topic_partitions_max: int
    entry_bytes_max: int
    segment_bytes_max: int
    segment_events_max: int
    segment_age_ms_max: int
    history_age_ms_max: int
    """-1: no bound, as of bytes."""
    history_bytes_max: int
    history_age_ms_min: int
    history_requires_backup: int
    """1 or 0."""
    history_check_interval_ms: int
    ceilings: Usage
    """What everything may take together."""
    principal: PrincipalSettings
    """What one principal may take of a node."""


class InForce(NamedTuple):
    """A setting with its value in force."""

    setting: Setting
    value: int | str
    source: str
    """Where the value comes from."""


class _Views:
    """The views made last. Settings change seldom and every command reads them.

    They are kept by identity of an immutable value, so they are never stale.
    """

    __slots__ = ("cluster", "groups", "largest_group", "of")

    def __init__(self, of: Settings) -> None:
        self.of = of
        self.cluster = _cluster_view(of)
        self.largest_group = 0
        self.groups: dict[GroupId, GroupSettings] = {"": _group_view(of, "")}


_latest: list[_Views] = []


def _views(settings: Settings) -> _Views:
    if not _latest or _latest[0].of is not settings:
        _latest[:] = [_Views(settings)]
    return _latest[0]


def of(state: State, group_id: GroupId) -> GroupSettings:
    """Return a group's settings: its own values on top of the cluster's on top of the defaults."""
    views = _views(state.settings)
    scope = group_id if group_id in state.settings.groups else ""
    if scope not in views.groups:
        views.groups[scope] = _group_view(state.settings, scope)
    return views.groups[scope]


def of_cluster(state: State) -> ClusterSettings:
    """Return the settings of the cluster as a whole."""
    return _views(state.settings).cluster


def largest_group(state: State) -> int:
    """Return the largest `group.max_size` of any group; searched once for each settings value."""
    views = _views(state.settings)
    if not views.largest_group:
        groups = ("", *state.settings.groups)
        name = "group.max_size"
        views.largest_group = max(number(state.settings, one, name) for one in groups)
    return views.largest_group


def _group_view(settings: Settings, group_id: GroupId) -> GroupSettings:
    def value(name: str) -> int:
        return number(settings, group_id, name)

    def text(name: str) -> str:
        return str(in_force(settings, group_id, name).value)

    return GroupSettings(
        min_session_timeout_ms=value("group.min_session_timeout_ms"),
        max_session_timeout_ms=value("group.max_session_timeout_ms"),
        initial_rebalance_delay_ms=value("group.initial_rebalance_delay_ms"),
        max_size=value("group.max_size"),
        metadata_bytes_max=value("group.metadata_bytes_max"),
        assignment_bytes_max=value("group.assignment_bytes_max"),
        offset_metadata_max=value("offset.metadata_max_bytes"),
        retention_ms=value("offsets.retention_minutes") * 60_000,
        consumer=settings_consumer.view(value, text),
    )


def _cluster_view(settings: Settings) -> ClusterSettings:
    def value(name: str) -> int:
        return number(settings, "", name)

    return ClusterSettings(
        retention_check_interval_ms=value("offsets.retention_check_interval_ms"),
        dedupe_window_ms=value("dedupe.window_ms"),
        dedupe_requests_max=value("dedupe.requests_max"),
        topic_partitions_max=value("topic.partitions_max"),
        entry_bytes_max=value("log.entry_bytes_max"),
        segment_bytes_max=value("log.segment_bytes_max"),
        segment_events_max=value("log.segment_events_max"),
        segment_age_ms_max=value("log.segment_age_ms_max"),
        history_age_ms_max=value("log.retention_ms"),
        history_bytes_max=value("log.retention_bytes"),
        history_age_ms_min=value("log.retention_min_ms"),
        history_requires_backup=value("log.retention_require_backup"),
        history_check_interval_ms=value("log.retention_check_interval_ms"),
        ceilings=Usage(
            groups=value("cluster.groups_max"),
            topics=value("cluster.topics_max"),
            partitions=value("cluster.partitions_max"),
            members=value("cluster.members_max"),
            state_bytes=value("cluster.state_bytes_max"),
        ),
        principal=PrincipalSettings(
            calls_per_second_max=value("principal.calls_per_second_max"),
            bytes_per_second_max=value("principal.bytes_per_second_max"),
            watches_max=value("principal.watches_max"),
        ),
    )


def in_force(settings: Settings, group_id: GroupId, name: str) -> InForce:
    """Return a setting in force for a group ("": the cluster). Raises KeyError if it is unknown."""
    setting = REGISTRY[name]
    own = settings.groups.get(group_id, _NOTHING).get(name) if group_id else None
    if own is not None:
        return InForce(setting, setting.read(own), GROUP)
    common = settings.cluster.get(name)
    if common is not None:
        return InForce(setting, setting.read(common), CLUSTER)
    return InForce(setting, setting.default, DEFAULT)


def number(settings: Settings, group_id: GroupId, name: str) -> int:
    """Return a setting in force that is a number. Raises as `in_force` does."""
    return int(in_force(settings, group_id, name).value)


_NOTHING: Final[PMap[str, str]] = PMap()


# --- changing them ---


def applied(settings: Settings, group_id: GroupId, changes: Iterable[SettingChange]) -> Settings:
    """Return the settings after the changes; a value of None restores the inherited one."""
    scope = settings.groups.get(group_id, _NOTHING) if group_id else settings.cluster
    for key, value in changes:
        scope = scope.remove(key) if value is None else scope.set(key, value)
    if not group_id:
        return settings._replace(cluster=scope)
    groups = settings.groups.set(group_id, scope) if scope else settings.groups.remove(group_id)
    return settings._replace(groups=groups)


def check(
    settings: Settings, group_id: GroupId, changes: tuple[SettingChange, ...]
) -> tuple[InvalidConfig | None, ...]:
    """Check changes; one result each: None, or its refusal. If one is refused, none may be made."""
    alone = tuple(_check_alone(change, group_id) for change in changes)
    if any(alone):
        return alone
    after = applied(settings, group_id, changes)
    scopes = (group_id,) if group_id else ("", *after.groups)
    broken = [found for scope in scopes for found in _check_together(after, scope)]
    return tuple(_blame(broken, change.key) for change in changes)


def unfit(settings: Settings, group_id: GroupId) -> list[str]:
    """Return every relation between settings that does not hold for a group ("": the cluster)."""
    return [broken.problem for broken in _check_together(settings, group_id)]


def _check_alone(change: SettingChange, group_id: GroupId) -> InvalidConfig | None:
    setting = REGISTRY.get(change.key)
    if setting is None:
        return InvalidConfig(change.key, no_such(change.key))
    if group_id and setting.scope != GROUP:
        return InvalidConfig(change.key, "holds for the cluster and cannot be set for one group")
    if change.value is None:
        return None
    problem = setting.problem(change.value)
    return None if problem is None else InvalidConfig(change.key, problem)


def no_such(key: str) -> str:
    """Say that a setting does not exist, and which one was probably meant."""
    near = get_close_matches(key.replace("-", "_"), REGISTRY, n=1)
    by_kafka = next((s.name for s in REGISTRY.values() if s.kafka_name == key), None)
    meant = by_kafka or (near[0] if near else None)
    sentence = "there is no such setting"
    return f"{sentence} (did you mean {meant}?)" if meant else sentence


def _check_together(settings: Settings, group_id: GroupId) -> Iterable[Broken]:
    group, cluster = _group_view(settings, group_id), _cluster_view(settings)
    where = f" for group {group_id!r}" if group_id else ""
    if group.min_session_timeout_ms > group.max_session_timeout_ms:
        names = ("group.min_session_timeout_ms", "group.max_session_timeout_ms")
        low, high = group.min_session_timeout_ms, group.max_session_timeout_ms
        yield Broken(names, f"the shortest session {low} ms would exceed the longest {high}{where}")
    most = group.metadata_pool + group.assignment_pool
    if most > cluster.entry_bytes_max:
        yield Broken(
            _SIZES,
            f"group.max_size {group.max_size} x (group.metadata_bytes_max "
            f"{group.metadata_bytes_max} + group.assignment_bytes_max "
            f"{group.assignment_bytes_max}) = {most} would exceed log.entry_bytes_max "
            f"{cluster.entry_bytes_max}{where}; lower one of them in the same call",
        )
    named = group.max_size * MEMBER_BYTES + group.assignment_pool
    if named > cluster.entry_bytes_max:
        yield Broken(
            _SIZES,
            f"group.max_size {group.max_size} x (group.assignment_bytes_max "
            f"{group.assignment_bytes_max} and {MEMBER_BYTES} for a member's ids) = {named} would "
            f"exceed log.entry_bytes_max {cluster.entry_bytes_max}{where}; lower one of them in "
            "the same call",
        )
    yield from settings_consumer.broken(group.consumer, where)


MEMBER_BYTES: Final = 400
"""Of one member's ids in an event that names all members, at most: a client id, and two UUIDs."""

_SIZES: Final = (
    "group.max_size",
    "group.metadata_bytes_max",
    "group.assignment_bytes_max",
    "log.entry_bytes_max",
)


def _blame(broken: Iterable[Broken], key: str) -> InvalidConfig | None:
    """Refuse a change that takes part in a relation that does not hold; else return None."""
    problem = next((found.problem for found in broken if key in found.names), None)
    return None if problem is None else InvalidConfig(key, problem)

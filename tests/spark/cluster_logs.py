"""Logs of what belongs to no group, and defects of `evolve` in it, one for each kind of field."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final, NamedTuple

import pytest

from holdfast.coordinator.cluster import request_table
from holdfast.coordinator.kernel import evolve
from holdfast.coordinator.kernel.apply import replay
from holdfast.coordinator.model import events
from holdfast.coordinator.model.access import Acl, Revocation
from holdfast.coordinator.model.events import (
    AccessModeChanged,
    AclsChanged,
    BackupVerified,
    ClusterFormed,
    HistoryCut,
    LevelRaised,
    PartitionsAdded,
    Record,
    RecoveryNumberRaised,
    RequestRecorded,
    RevocationsChanged,
    SegmentSealed,
    SettingChange,
    SettingsChanged,
    TopicsCreated,
    TopicsDeleted,
    TopicSize,
)
from holdfast.coordinator.model.ids import Position
from holdfast.coordinator.model.state import State
from holdfast.coordinator.structures.pmap import PMap
from spark.event_logs import EventLog, committed

WINDOW_MS: Final = 1_000
MOST: Final = 12
DEDUPE: Final = (
    SettingChange("dedupe.window_ms", str(WINDOW_MS)),
    SettingChange("dedupe.requests_max", str(MOST)),
)


def cluster_log() -> EventLog:
    """Everything that can happen to what belongs to no group, and be undone again."""
    log = EventLog()
    log.entry("", ClusterFormed("c", (SettingChange("group.max_size", "10"), *DEDUPE)))
    log.entry("", TopicsCreated((TopicSize("t", 4), TopicSize("u", 1), TopicSize("v", 2))))
    log.entry("", SettingsChanged("g", (SettingChange("group.max_size", "5"),)))
    log.entry("", SettingsChanged("h", (SettingChange("group.max_size", "6"),)))
    log.entry("", LevelRaised(2))
    log.entry("", PartitionsAdded((TopicSize("t", 8),)), TopicsDeleted(("u", "v")))
    log.entry("", TopicsCreated((TopicSize("v", 3),)), request="made")
    log.entry("", RequestRecorded("made", b"digest", b"answer"), request="made")
    log.entry("", SettingsChanged("h", (SettingChange("group.max_size", None),)))
    _access(log)
    _places(log)
    requests(log, 40, Random(1))
    return log


def _access(log: EventLog) -> None:
    one, two = Acl("p", "admin", "cluster", ""), Acl("q", "reader", "group", "g*")
    log.entry("", AclsChanged((one, two), ()), AccessModeChanged("dry-run"))
    log.entry("", AclsChanged((), (one,)), AccessModeChanged("deny"))
    revoked = Revocation("a1" * 32, "who", 5, "why", 7)
    log.entry("", RevocationsChanged((revoked, Revocation("b2" * 32)), ()))
    log.entry("", RevocationsChanged((), ("b2" * 32,)))


def _places(log: EventLog) -> None:
    log.entry("", SegmentSealed(Position(3, 0)), SegmentSealed(Position(5, 0)))
    log.entry("", HistoryCut(Position(3, 0), 17, b"digest"))
    log.entry("", BackupVerified(6), BackupVerified(4))
    log.entry("", RecoveryNumberRaised(1, 9), RecoveryNumberRaised(3, 9))


def requests(log: EventLog, count: int, random: Random) -> None:
    """Requests that are forgotten because they are old, or many, and some of them late."""
    for nth in range(count):
        pause_ms = random.choice((0, 1, 5, WINDOW_MS // 3))
        after_ms = 3 * WINDOW_MS if nth % 20 == 19 else pause_ms  # all are too old at once
        made_ms = log.now_ms + random.choice((-500, 0, 700, 5_000))
        name = f"{made_ms:012x}{'7000'}8000{nth:012x}"
        cut = [name[at:to] for at, to in ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32))]
        request_id = "-".join(cut) if nth % 3 else f"r{nth}"
        group = random.choice(("", "g"))
        born = (events.GroupCreated(),) if group and not log.state.version_of(group) else ()
        told = RequestRecorded(request_id, bytes([nth]), bytes([nth, nth]))
        made = (*born, committed(0, nth)) if group else ()
        log.entry(group, *made, told, request=request_id, after_ms=after_ms)


def dedupe_log(seed: int) -> EventLog:
    random, log = Random(seed), EventLog()
    log.entry("", ClusterFormed("c", DEDUPE))
    requests(log, (3, 21, 40, 90)[seed % 4], random)
    return log


class ClusterDefect(NamedTuple):
    """What goes wrong in a fold of the cluster's own events."""

    event: type
    damage: Callable[[State, State, Any], State]
    """What it makes of the state before an event, and the right one after it."""
    found_by: str
    """The kind of entry that tells it, and its key if it is one of `cluster`."""


def wrong_state(
    defect: ClusterDefect, records: list[Record], monkeypatch: pytest.MonkeyPatch
) -> State:
    """Fold records by an `evolve` that has this defect."""
    with monkeypatch.context() as patch:
        right = evolve.CLUSTER[defect.event]

        def fold(state: State, event: Any, record: Record) -> State:  # noqa: ANN401 - of its class
            return defect.damage(state, right(state, event, record), event)

        patch.setitem(evolve.CLUSTER, defect.event, fold)
        return replay(State(), records)


def wrong_requests(name: str, records: list[Record], monkeypatch: pytest.MonkeyPatch) -> State:
    """Fold records by a table of requests that has a defect."""
    with monkeypatch.context() as patch:
        attribute, value = REQUEST_DEFECTS[name]
        patch.setattr(request_table, attribute, value)
        return replay(State(), records)


REQUEST_DEFECTS: Final[dict[str, tuple[str, Any]]] = {
    "requests go at any pace": ("FORGOTTEN_AT_ONCE_MAX", 100),
    "requests are kept for one window": ("WINDOWS_KEPT", 1),
    "what is not known begins too late": ("_floor", lambda _key, served_ms, _window_ms: served_ms),
}
"""Replaced names of `cluster.request_table`."""


def _kept(field: str) -> Callable[[State, State, Any], State]:
    return lambda before, after, _event: after._replace(**{field: getattr(before, field)})


def _always_there(state: State) -> State:
    topics = ((each.name, each._replace(created_index=0)) for each in state.topics.values())
    return state._replace(topics=PMap(topics))


DEFECTS: Final[dict[str, ClusterDefect]] = {
    "another name": ClusterDefect(
        ClusterFormed, lambda _b, after, _e: after._replace(cluster_id="d"), "cluster id"
    ),
    "settings stay": ClusterDefect(SettingsChanged, _kept("settings"), "setting"),
    "topics stay": ClusterDefect(TopicsDeleted, _kept("topics"), "topic"),
    "topics do not grow": ClusterDefect(PartitionsAdded, _kept("topics"), "topic"),
    "topics were always there": ClusterDefect(
        TopicsCreated, lambda _b, after, _e: _always_there(after), "topic"
    ),
    "grants stay": ClusterDefect(
        AclsChanged,
        lambda before, after, _e: after._replace(acls=before.acls.update_all(after.acls.items())),
        "acl",
    ),
    "the mode stays": ClusterDefect(AccessModeChanged, _kept("access_mode"), "cluster access mode"),
    "certificates stay revoked": ClusterDefect(
        RevocationsChanged,
        lambda before, after, event: (
            _kept("revocations")(before, after, event) if event.lifted else after
        ),
        "revocation",
    ),
    "an old boundary": ClusterDefect(
        SegmentSealed,
        lambda before, after, _e: (
            after._replace(sealed=before.sealed or after.sealed) if before.sealed.index else after
        ),
        "cluster sealed",
    ),
    "no level": ClusterDefect(LevelRaised, _kept("raised_to"), "cluster level"),
    "no cut": ClusterDefect(HistoryCut, _kept("history_cut"), "cluster history cut"),
    "an older backup": ClusterDefect(
        BackupVerified, lambda _b, after, e: after._replace(backed_up=e.index), "cluster backed up"
    ),
    "an old recovery number": ClusterDefect(
        RecoveryNumberRaised, _kept("recovery_number"), "cluster recovery number"
    ),
    "recovered long ago": ClusterDefect(
        RecoveryNumberRaised, _kept("recovered_at"), "cluster recovered at"
    ),
}
"""By what goes wrong."""

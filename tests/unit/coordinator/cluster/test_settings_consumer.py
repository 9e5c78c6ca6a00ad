"""Settings of the heartbeat protocol (S23): words, lists, bounds that are settings themselves."""

from __future__ import annotations

import pytest

from holdfast.coordinator.cluster import settings
from holdfast.coordinator.cluster.settings_catalogue import REGISTRY
from holdfast.coordinator.model.events import SettingChange
from holdfast.coordinator.model.state import Settings, State

KAFKAS_DEFAULTS = {
    "group.consumer.session.timeout.ms": 45_000,
    "group.consumer.min.session.timeout.ms": 45_000,
    "group.consumer.max.session.timeout.ms": 60_000,
    "group.consumer.heartbeat.interval.ms": 5_000,
    "group.consumer.min.heartbeat.interval.ms": 5_000,
    "group.consumer.max.heartbeat.interval.ms": 15_000,
    "group.consumer.assignors": "uniform,range",
    "group.consumer.migration.policy": "bidirectional",
    "group.consumer.max.assignment.interval.ms": 15_000,
    "group.consumer.regex.refresh.interval.ms": 600_000,
}
PER_GROUP = {"session_timeout_ms", "heartbeat_interval_ms", "assignment_interval_ms"}
"""Those that Kafka has for single groups, too."""


def change(**values: str) -> tuple[SettingChange, ...]:
    return tuple(SettingChange(f"group.consumer_{key}", value) for key, value in values.items())


def refused(of: Settings, group_id: str = "", **values: str) -> str:
    results = settings.check(of, group_id, change(**values))
    return "; ".join(each.problem for each in results if each)


@pytest.mark.parametrize(("kafka_name", "default"), KAFKAS_DEFAULTS.items())
def test_names_and_defaults_are_kafkas(kafka_name: str, default: int | str) -> None:
    """All but the assignment interval, which is 0 here: computing a target is no burden."""
    (setting,) = (each for each in REGISTRY.values() if each.kafka_name == kafka_name)

    assert setting.default == default
    table, _, key = kafka_name.partition(".")
    assert setting.name == f"{table}.{key.replace('.', '_')}"


def test_single_groups_may_differ_in_what_kafka_lets_them() -> None:
    for name in PER_GROUP:
        assert REGISTRY[f"group.consumer_{name}"].scope == "group"
        for bound in ("min", "max"):
            assert REGISTRY[f"group.consumer_{bound}_{name}"].scope == "cluster"


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        ({"assignors": ""}, "a list of: uniform, range, each once"),
        ({"assignors": "range,range"}, "each once"),
        ({"assignors": "range, uniform"}, "a list of"),
        ({"assignors": "best"}, "'best' is not allowed"),
        ({"migration_policy": "sideways"}, "one of: bidirectional, upgrade, downgrade, disabled"),
        ({"max_size": "many"}, "is not a whole number"),
        ({"session_timeout_ms": "44000"}, "would be outside of 45000 to 60000"),
        ({"max_session_timeout_ms": "44999"}, "would be outside of 45000 to 44999"),
        ({"heartbeat_interval_ms": "16000"}, "would be outside of 5000 to 15000"),
        ({"assignment_interval_ms": "16000"}, "would be outside of 0 to 15000"),
        (
            {"min_session_timeout_ms": "1000", "session_timeout_ms": "5000"},
            "heartbeat_interval_ms 5000 would not be shorter than",
        ),
    ],
)
def test_a_value_that_cannot_be_is_refused_and_says_what_can(
    bad: dict[str, str], problem: str
) -> None:
    assert problem in refused(Settings(), **bad)


def test_a_bound_may_not_leave_a_group_outside() -> None:
    """Kafka clamps the group's value instead, in silence."""
    own = settings.applied(Settings(), "h", change(session_timeout_ms="60000"))

    assert "for group 'h'" in refused(own, max_session_timeout_ms="50000")
    assert refused(own, max_session_timeout_ms="70000") == ""


def test_what_is_in_force_is_read_once_and_typed() -> None:
    chosen = settings.applied(Settings(), "", change(assignors="range,uniform"))
    chosen = settings.applied(chosen, "h", change(session_timeout_ms="50000"))
    state = State(settings=chosen)

    of_g, of_h = settings.of(state, "g").consumer, settings.of(state, "h").consumer
    assert of_g.assignors == of_h.assignors == ("range", "uniform")
    assert (of_g.session_timeout_ms, of_h.session_timeout_ms) == (45_000, 50_000)
    assert settings.of(state, "h") is settings.of(state, "h")
    assert settings.in_force(chosen, "h", "group.consumer_assignors").value == "range,uniform"

"""Settings on the log: defaults, bounds, scopes, and the sizes that must go together (S7, S23)."""

from __future__ import annotations

import pytest

from holdfast.coordinator.cluster import settings
from holdfast.coordinator.cluster.settings_catalogue import REGISTRY
from holdfast.coordinator.model.events import SettingChange
from holdfast.coordinator.model.rejections import InvalidConfig
from holdfast.coordinator.model.state import Settings, State

KAFKAS_DEFAULTS = {
    "group.min.session.timeout.ms": 6_000,
    "group.max.session.timeout.ms": 1_800_000,
    "group.initial.rebalance.delay.ms": 3_000,
    "offset.metadata.max.bytes": 4_096,
    "offsets.retention.minutes": 10_080,
    "offsets.retention.check.interval.ms": 600_000,
}
"""Kafka's bounds and defaults."""


def change(**values: str | None) -> tuple[SettingChange, ...]:
    """`group__max_size="5"` stands for group.max_size."""
    return tuple(SettingChange(k.replace("__", "."), v) for k, v in values.items())


def refused(
    changes: tuple[SettingChange, ...], group_id: str = "", of: Settings | None = None
) -> str:
    results = settings.check(of or Settings(), group_id, changes)
    return "; ".join(f"{each.key}: {each.problem}" for each in results if each)


@pytest.mark.parametrize(("kafka_name", "default"), KAFKAS_DEFAULTS.items())
def test_kafkas_defaults_under_kafkas_names(kafka_name: str, default: int) -> None:
    (setting,) = (each for each in REGISTRY.values() if each.kafka_name == kafka_name)
    assert setting.default == default
    table, _, key = kafka_name.partition(".")
    assert setting.name == f"{table}.{key.replace('.', '_')}"


def test_every_default_is_within_its_bounds_and_explained() -> None:
    for name, setting in REGISTRY.items():
        assert setting.name == name
        assert setting.problem(str(setting.default)) is None
        assert bool(setting.unit) is not bool(setting.words)
        assert setting.documentation.endswith(".")


def test_s7_the_defaults_go_together_and_leave_room_for_10000_members() -> None:
    group, cluster = settings.of(State(), "g"), settings.of_cluster(State())
    assert group.max_size >= 10_000
    assert cluster.entry_bytes_max == 8 * 1024 * 1024
    assert group.max_size * (group.metadata_bytes_max + group.assignment_bytes_max) <= 8 * 1024**2


@pytest.mark.parametrize(
    "bad",
    [
        {"group__max_size": "11000"},
        {"group__metadata_bytes_max": "4096"},
        {"group__assignment_bytes_max": "4096"},
        {"log__entry_bytes_max": "1000000"},
    ],
)
def test_s7_what_could_never_fit_into_an_entry_is_refused(bad: dict[str, str]) -> None:
    (name,) = change(**bad)
    assert refused((name,)).startswith(f"{name.key}: group.max_size ")
    assert "would exceed log.entry_bytes_max" in refused((name,))


def test_s7_the_ids_of_all_members_have_to_fit_into_an_entry_too() -> None:
    """With the smallest shares it is the ids that fill an entry: each generation names everyone."""
    shares = change(group__metadata_bytes_max="40", group__assignment_bytes_max="40")
    assert refused((*change(group__max_size="15000"), *shares)) == ""
    assert "for a member's ids" in refused((*change(group__max_size="100000"), *shares))


def test_what_does_not_fit_already_hides_nothing_else_that_does_not() -> None:
    """Only whoever changes it is blamed, so another relation may be broken beside it."""
    large = settings.applied(Settings(), "", change(group__max_size="100000"))
    own = settings.applied(large, "g", change(group__min_session_timeout_ms="20000"))
    shorter = change(group__max_session_timeout_ms="10000")
    assert "the shortest session" in refused(shorter, of=own)


def test_s7_shares_may_grow_when_the_group_shrinks_in_the_same_call() -> None:
    both = change(group__max_size="1000", group__metadata_bytes_max="4096")
    assert refused(both) == ""
    assert refused(both, "g") == ""


def test_s7_a_change_for_the_cluster_may_not_break_a_group_of_its_own_size() -> None:
    """1,000 members with 6 KB each fit into an entry now, and would not into a smaller one."""
    own = settings.applied(
        Settings(), "g", change(group__max_size="1000", group__metadata_bytes_max="6000")
    )
    smaller = change(
        log__entry_bytes_max="5000000", group__max_size="5000", group__assignment_bytes_max="256"
    )
    assert refused(smaller) == ""
    assert "for group 'g'" in refused(smaller, of=own)


def test_a_groups_value_wins_over_the_clusters_and_that_over_the_default() -> None:
    of = settings.applied(Settings(), "", change(group__initial_rebalance_delay_ms="7"))
    of = settings.applied(of, "g", change(group__initial_rebalance_delay_ms="8"))
    state = State(settings=of)
    assert settings.of(state, "g").initial_rebalance_delay_ms == 8
    assert settings.of(state, "h").initial_rebalance_delay_ms == 7
    assert settings.of(State(), "g").initial_rebalance_delay_ms == 3_000
    name = "group.initial_rebalance_delay_ms"
    assert settings.in_force(of, "g", name)[1:] == (8, "group")
    assert settings.in_force(of, "h", name)[1:] == (7, "cluster")
    assert settings.in_force(Settings(), "h", name)[1:] == (3_000, "default")


def test_none_goes_back_to_the_inherited_value_and_leaves_nothing_behind() -> None:
    of = settings.applied(Settings(), "g", change(group__max_size="5"))
    assert settings.applied(of, "g", change(group__max_size=None)) == Settings()


def test_views_follow_the_state_that_is_asked_about() -> None:
    """The latest views are kept; an older state must still see its own values."""
    old = State()
    new = State(settings=settings.applied(Settings(), "", change(group__max_size="5")))
    assert [settings.of(state, "g").max_size for state in (old, new, old)] == [10_000, 5, 10_000]


def test_an_unknown_name_suggests_the_near_one() -> None:
    assert "did you mean group.max_size?" in refused(change(group__max_sise="5"))
    assert "did you mean group.max_size?" in refused((SettingChange("group.max.size", "5"),))
    assert refused((SettingChange("zzz", "5"),)) == "zzz: there is no such setting"


@pytest.mark.parametrize("text", ["", "five", "1.5", "1e3", " 5", "٥", "0x10", "9" * 300])
def test_a_value_is_a_whole_number(text: str) -> None:
    assert "is not a whole number" in refused(change(group__max_size=text))


@pytest.mark.parametrize("text", ["0", "-1", "1000001", "9" * 30])
def test_a_value_is_within_its_bounds(text: str) -> None:
    assert "1 to 1000000 members are allowed" in refused(change(group__max_size=text))


def test_the_shortest_session_may_not_exceed_the_longest() -> None:
    assert "would exceed the longest 1800000" in refused(
        change(group__min_session_timeout_ms="1800001")
    )


def test_what_holds_for_the_cluster_cannot_be_set_for_a_group() -> None:
    assert "cannot be set for one group" in refused(change(dedupe__window_ms="5000"), "g")


def test_one_bad_value_refuses_the_call_and_only_it_is_named() -> None:
    results = settings.check(
        Settings(), "", change(group__max_size="5", group__metadata_bytes_max="-3")
    )
    assert results[0] is None
    assert isinstance(results[1], InvalidConfig)

"""What a member of either protocol can be asked for, and what would be without effect there."""

from __future__ import annotations

import re
from typing import Any

import pytest

from holdfast.client import CooperativeAssignor, Member, sync
from holdfast.client._session.session_io import Settings, Subscription
from holdfast.client._translate.member_settings import (
    DEFAULT_ASSIGNORS,
    REGEX_LENGTH_MAX,
    UNSET,
    settings_of,
    subscription_of,
)

GIVEN: dict[str, Any] = {"group": "g", "topics": ["t"]}
NOWHERE = "127.0.0.1:1"


def consumer(**given: object) -> Settings:
    return settings_of("consumer", "m-1", GIVEN | given)


def test_the_classic_protocol_is_the_default_with_kafkas_timeouts() -> None:
    member = Member(NOWHERE, group="g", topics=["t"])
    settings = member.settings
    assert settings.group_protocol == "classic"
    assert settings.assignors == DEFAULT_ASSIGNORS
    assert (settings.session_timeout_ms, settings.heartbeat_interval_ms) == (45_000, 3_000)
    assert (settings.topics_refresh_ms, settings.weight, settings.member_id) == (5_000, 1, "")


def test_a_member_of_the_heartbeat_protocol_makes_its_id_and_each_another_one() -> None:
    """KIP-1082."""
    ids = {
        Member(NOWHERE, protocol="consumer", **GIVEN).settings.member_id,
        Member(NOWHERE, protocol="consumer", **GIVEN).settings.member_id,
    }
    assert len(ids) == 2
    assert all(re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", one) for one in ids)


def test_all_that_the_heartbeat_protocol_knows_arrives() -> None:
    settings = consumer(
        topic_regex="docs-.*", rack_id="r 1", server_assignor="uniform", work_timeout_ms=1_000
    )
    assert settings.topics == ("t",)
    assert (settings.topic_regex, settings.rack_id) == ("docs-.*", "r 1")
    assert (settings.server_assignor, settings.work_timeout_ms) == ("uniform", 1_000)
    assert (settings.member_id, settings.group_protocol) == ("m-1", "consumer")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("session_timeout_ms", 45_000), ("heartbeat_interval_ms", 3_000)),
        *(("assignors", [CooperativeAssignor()]), ("weight", 2), ("topics_refresh_ms", 5_000)),
    ],
)
def test_what_is_the_groups_in_the_heartbeat_protocol_is_refused_there(
    name: str,
    value: Any,  # noqa: ANN401 - as wrong as can be
) -> None:
    """Also at its default: whoever writes it believes that it counts."""
    with pytest.raises(ValueError, match=rf'^{name} is not for protocol="consumer"'):
        Member(NOWHERE, protocol="consumer", **GIVEN, **{name: value})
    with pytest.raises(ValueError, match=name):
        sync.Member(NOWHERE, protocol="consumer", **GIVEN, **{name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("topic_regex", "t.*"), ("rack_id", "r"), ("server_assignor", "range")),
        ("work_timeout_ms", 1_000),
        *(("absence_ms", 1_000), ("client_assignors", ())),
    ],
)
def test_what_the_classic_protocol_does_not_know_is_refused_there(
    name: str,
    value: Any,  # noqa: ANN401 - as wrong as can be
) -> None:
    with pytest.raises(ValueError, match=rf'^{name} .* protocol="consumer"'):
        Member(NOWHERE, **GIVEN, **{name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("topic_regex", value) for value in ("", 7, "x" * (REGEX_LENGTH_MAX + 1))),
        *(("rack_id", value) for value in ("", 7, "x" * 250)),
        *(("server_assignor", value) for value in ("", 7, "a b")),
        *(("work_timeout_ms", value) for value in (0, -1, "1", True)),
        *(("absence_ms", value) for value in (0, -1, "1", True)),
        *(("instance_id", "a b"), ("takeover", "Now"), ("rebalance_timeout_ms", 0)),
        ("topics", "documents"),
    ],
)
def test_a_wrong_argument_is_refused_with_its_name(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=name):
        consumer(**{name: value})


@pytest.mark.parametrize("protocol", ["Consumer", "", None, 7, ["classic"]])
def test_there_are_two_protocols(protocol: object) -> None:
    with pytest.raises(ValueError, match='protocol is "classic" or "consumer"'):
        settings_of(protocol, "m-1", GIVEN)


def test_something_must_be_wanted() -> None:
    with pytest.raises(ValueError, match="want nothing"):
        settings_of("consumer", "m-1", {"group": "g"})
    with pytest.raises(TypeError, match="topics is missing"):
        settings_of("classic", "", {"group": "g", "topics": UNSET})
    with pytest.raises(TypeError, match="topic_regex"):
        subscription_of(["t"], None)


def test_topics_are_wanted_by_name_by_pattern_or_both() -> None:
    assert subscription_of(["b", "a", "b"], UNSET) == Subscription(("a", "b"))
    assert subscription_of(UNSET, "t.*") == Subscription((), "t.*")
    assert subscription_of(["a"], "t.*") == Subscription(("a",), "t.*")


def test_positions_is_a_function() -> None:
    with pytest.raises(TypeError, match="positions"):
        Member(NOWHERE, **GIVEN, positions=3)  # type: ignore[arg-type]  # that is the question

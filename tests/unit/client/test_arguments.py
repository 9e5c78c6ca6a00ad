"""A wrong argument is refused where it is given, in one sentence; never guessed at."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast.client import Connection, Member, Members, sync

INT32_MAX = 2**31 - 1
RIGHT: dict[str, Any] = {"group": "g", "topics": ["t"]}

WRONG: list[tuple[str, Any]] = [
    *(("takeover", value) for value in ("Wait", "later", "", None, ["now"])),
    *(
        (name, value)
        for name in (
            "session_timeout_ms",
            "rebalance_timeout_ms",
            "heartbeat_interval_ms",
            "topics_refresh_ms",
        )
        for value in (0, -1, INT32_MAX + 1, 1.5, "10", None, True)
    ),
    ("heartbeat_interval_ms", 45_000),  # as long as the session
    *(("topics", value) for value in ("documents", b"t", [], [""], [1], ["t", None])),
    *(("weight", value) for value in (0, -1, float("nan"), 0.5, "2", True)),
    *(
        ("instance_id", value)
        for value in ("", ".", "..", "a b", "a/b", "ä", "x" * 250, "a\n", 7, b"i")
    ),
    *(("group", value) for value in ("", None, 7, "a\0b", "g" * 513)),
    ("assignors", []),
]


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_a_wrong_argument_is_refused_with_its_name(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=name) as refused:
        Member("127.0.0.1:1", **(RIGHT | {name: value}))
    assert "\n" not in str(refused.value)
    with pytest.raises(ValueError, match=name):
        sync.Member("127.0.0.1:1", **(RIGHT | {name: value}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("takeover", "wait"),
        ("session_timeout_ms", INT32_MAX),
        ("heartbeat_interval_ms", 44_999),
        ("weight", 1),
        ("instance_id", "x" * 249),
        ("instance_id", "a.B_9-z"),
        ("instance_id", "..."),
        ("group", "a group/ä"),
        ("topics", {"b", "a"}),
        ("topics", (name for name in "ab")),
    ],
)
def test_what_the_service_takes_is_taken(name: str, value: object) -> None:
    async def scenario() -> None:
        async with Connection("127.0.0.1:1") as connection:
            Member(connection, **(RIGHT | {name: value}))

    asyncio.run(scenario())


@pytest.mark.parametrize("several", [Members, sync.Members])
@pytest.mark.parametrize(
    ("name", "value"), [("topics", "documents"), ("instance_id", "a b"), ("takeover", "Now")]
)
def test_several_members_are_refused_alike(several: Any, name: str, value: object) -> None:  # noqa: ANN401 - two classes
    with pytest.raises(ValueError, match=name):
        several("127.0.0.1:1", count=2, **(RIGHT | {name: value}))


def test_a_refused_instance_id_of_a_process_is_named_as_it_was_given() -> None:
    """Not one that was derived from it."""
    with pytest.raises(ValueError, match="instance_id 7 "):
        Members("127.0.0.1:1", count=2, **(RIGHT | {"instance_id": 7}))

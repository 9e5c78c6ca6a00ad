"""A wrong argument is refused where it is given, in one sentence; never guessed at."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast.client import (
    Admin,
    Connection,
    CooperativeAssignor,
    Member,
    Members,
    RangeAssignor,
    sync,
)
from holdfast.client._translate.arguments import topic_names
from holdfast.server.rpc.callers import CLIENT_ID_MAX
from unit.client.fake_cluster import fake_cluster
from unit.server.nodes import served

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
    *(("topics", ["t", name]) for name in ("a b", "a/b", "ä", "t\n", ".", "..", "x" * 250)),
    *(("weight", value) for value in (0, -1, float("nan"), 0.5, "2", True)),
    *(
        ("instance_id", value)
        for value in ("", ".", "..", "a b", "a/b", "ä", "x" * 250, "a\n", 7, b"i")
    ),
    *(("group", value) for value in ("", None, 7, "a\0b", "g" * 513)),
    ("assignors", []),
    *(("client_id", value) for value in ("c" * 256, "c" * 100_000, "ä", "a\n", "a\0", 7, b"c")),
]
WRONG_KIND: list[tuple[str, Any]] = [
    *(("topics", value) for value in (None, 5)),
    *(("assignors", value) for value in ([3], 3, None, "range", RangeAssignor(), [RangeAssignor])),
    *((name, 3) for name in ("on_assigned", "on_revoked", "on_lost", "on_acknowledged")),
]


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_a_wrong_argument_is_refused_with_its_name(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=name) as refused:
        Member("127.0.0.1:1", **(RIGHT | {name: value}))
    assert "\n" not in str(refused.value)
    with pytest.raises(ValueError, match=name):
        sync.Member("127.0.0.1:1", **(RIGHT | {name: value}))


@pytest.mark.parametrize("make", [Member, sync.Member])
@pytest.mark.parametrize(("name", "value"), WRONG_KIND)
def test_what_is_of_another_kind_is_refused_with_its_name(
    make: Any,  # noqa: ANN401 - two classes
    name: str,
    value: object,
) -> None:
    """A callback that cannot be called must not be found out by the first assignment."""
    with pytest.raises(TypeError, match=f"^{name} "):
        make("127.0.0.1:1", **(RIGHT | {name: value}))


@pytest.mark.parametrize("make", [Admin, sync.Admin, Connection, sync.Connection])
@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("client_id", "c" * 256, ValueError),
        ("client_id", "ä", ValueError),
        ("on_acknowledged", 3, TypeError),
    ],
)
def test_what_describes_a_connection_is_refused_alike(
    make: Any,  # noqa: ANN401 - four classes
    name: str,
    value: object,
    kind: type[Exception],
) -> None:
    with pytest.raises(kind, match=name):
        make("127.0.0.1:1", **{name: value})


@pytest.mark.parametrize("name", ["takeover", "topics", "instance_id", "client_id", "group"])
def test_a_long_value_is_not_told_whole(name: str) -> None:
    """What was meant can be seen from how it begins; a log line is no place for the rest."""
    value: object = "x" * 100_000
    with pytest.raises(ValueError, match=f"{name}.*x{{40}}.*100000") as refused:
        Member("127.0.0.1:1", **(RIGHT | {name: [value] if name == "topics" else value}))
    assert len(str(refused.value)) < 300


def test_a_name_of_a_length_that_may_be_is_told_whole() -> None:
    """Its flaw may be its last character."""
    with pytest.raises(ValueError, match=r"x{200}!"):
        Member("127.0.0.1:1", **(RIGHT | {"instance_id": "x" * 200 + "!"}))


def test_the_service_creates_exactly_the_topics_that_a_member_may_ask_for() -> None:
    """The rule stands twice (cluster/topics.py is its source): a client has no server's code."""
    names = ["a b", "a/b", "ä", "t\n", ".", "..", "x" * 250, "", "x" * 249, "...", "a.B_9-z", "-"]

    async def creatable() -> list[str]:
        async with served() as node, Admin(node.address) as admin:
            results = await admin.create_topics(dict.fromkeys(names, 1))
            return [name for name in names if results[name] is None]

    assert [name for name in names if _is_taken(name)] == asyncio.run(creatable())


def _is_taken(topic: str) -> bool:
    try:
        return topic_names([topic]) == (topic,)
    except ValueError:
        return False


def test_a_client_id_has_the_service_s_length_and_every_character_arrives() -> None:
    printable = "".join(chr(code) for code in range(0x20, 0x7F))
    longest = ("<" + printable + printable + printable)[: CLIENT_ID_MAX - 1] + ">"

    async def story() -> None:
        async with fake_cluster() as (group, (node,)):
            async with Admin(node.address, client_id=longest) as admin:
                await admin.list_topics()
            assert group.client_ids == {longest}
        with pytest.raises(ValueError, match=f"client_id .* {CLIENT_ID_MAX} "):
            Admin(node.address, client_id=longest + "x")

    asyncio.run(story())


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
        ("topics", ["a.B_9-z", "...", "x" * 249]),
        ("assignors", (RangeAssignor(), CooperativeAssignor())),
        ("on_assigned", print),
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

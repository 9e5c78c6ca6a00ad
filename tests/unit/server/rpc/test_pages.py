"""Lists in pages: every name once and in order, whatever comes, goes, or takes over in between."""

from __future__ import annotations

import asyncio
import base64
import random
from typing import TYPE_CHECKING

import grpc
import pytest

from holdfast.coordinator.kernel.group_types import new_group
from holdfast.coordinator.model.access import DENY, GROUP, READER, TOPIC, Acl
from holdfast.coordinator.model.events import TopicSize
from holdfast.coordinator.structures.pmap import PMap
from holdfast.server.config.node_config import ANONYMOUS
from holdfast.server.guard import answer_size
from holdfast.server.rpc import pages
from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import extras_pb2 as x
from unit.server.nodes import served

if TYPE_CHECKING:
    from collections.abc import Iterable

    from unit.server.nodes import Served

NAMES = [f"g-{n:02}" for n in range(10)]


def fill(node: Served, names: Iterable[str]) -> None:
    """The cluster has groups and topics of these names; every second group is Stable."""
    groups = {
        name: new_group(name)._replace(state="Stable" if number % 2 else "Empty")
        for number, name in enumerate(names)
    }
    topics = {name: TopicSize(name, 1) for name in names}
    node.replica.state = node.replica.state._replace(groups=PMap(groups), topics=PMap(topics))


async def page(
    node: Served, size: int | None, token: str = "", states: Iterable[str] = ()
) -> tuple[list[str], str]:
    """Names of a page of groups, and the token of the next one."""
    extras = x.RequestExtras(page_size=size, page_token=token)
    request = a.ListGroupsRequest(states_filter=states, holdfast=extras)
    answer = await node.admin.ListGroups(request)
    return [group.group_id for group in answer.groups], answer.holdfast.next_page_token


async def topics(
    node: Served, size: int | None, token: str = "", names: Iterable[str] = ()
) -> tuple[list[str], str]:
    """The same of topics."""
    extras = x.RequestExtras(page_size=size, page_token=token)
    answer = await node.admin.ListTopics(a.ListTopicsRequest(names=names, holdfast=extras))
    return [topic.name for topic in answer.topics], answer.holdfast.next_page_token


async def rest(node: Served, size: int, token: str = "") -> list[list[str]]:
    """All pages from a token on."""
    found, token = await page(node, size, token)
    return [found, *(await rest(node, size, token) if token else [])]


def test_pages_are_the_list_in_order() -> None:
    """The last page has no token, also when it is full."""

    async def story() -> None:
        async with served() as node:
            fill(node, reversed(NAMES))
            assert await rest(node, 4) == [NAMES[:4], NAMES[4:8], NAMES[8:]]
            assert await rest(node, 5) == [NAMES[:5], NAMES[5:]]
            assert await rest(node, 1_000_000_000) == [NAMES]
            assert await page(node, None) == (NAMES, "")
            fill(node, [])
            assert await rest(node, 3) == [[]]

    asyncio.run(story())


def test_filters_hold_for_every_page() -> None:
    async def story() -> None:
        async with served() as node:
            fill(node, NAMES)
            first, token = await page(node, 3, states=["stable"])
            second, end = await page(node, 3, token, states=["stable"])
            none, no_token = await page(node, 3, states=["Dead"])

        assert (first, second, end) == (NAMES[1:7:2], NAMES[7::2], "")
        assert (none, no_token) == ([], "")

    asyncio.run(story())


def test_topics_have_pages_too_named_or_not() -> None:
    async def story() -> None:
        async with served() as node:
            fill(node, NAMES)
            first, token = await topics(node, 6)
            second, end = await topics(node, 6, token)
            named, more = await topics(node, 2, names=["g-07", "g-01", "nosuch", "g-03", "g-01"])
            last, none = await topics(node, 2, more, names=["g-07", "g-01", "nosuch", "g-03"])

        assert (first, second, end) == (NAMES[:6], NAMES[6:], "")
        assert (named, last, none) == (["g-01", "g-03"], ["g-07"], "")

    asyncio.run(story())


def test_a_token_holds_after_deletions_and_at_another_node() -> None:
    """It names no state: what is there from beginning to end comes once, in order."""

    async def story() -> None:
        async with served() as node, served() as successor:
            fill(node, NAMES)
            first, token = await page(node, 4)
            fill(successor, [*NAMES[:2], "g-035", *NAMES[6:], "a", "z"])
            others = await rest(successor, 4, token)

        assert first == NAMES[:4]
        assert others == [["g-035", *NAMES[6:9]], [NAMES[9], "z"]]

    asyncio.run(story())


@pytest.mark.parametrize(
    ("size", "token", "field"),
    [
        (0, "", "page_size"),
        (None, pages.token("groups", "g"), "page_token"),
        (1, "g-01", "page_token"),
        (1, "ä", "page_token"),
        (1, "AAAAAGc=", "page_token"),
        (1, "____", "page_token"),
        (1, pages.token("topics", "g"), "page_token"),
    ],
    ids=["size 0", "no size", "a name", "no ASCII", "wrong check", "no text", "another list's"],
)
def test_what_is_no_page_is_malformed(size: int | None, token: str, field: str) -> None:
    async def story() -> None:
        async with served() as node:
            with pytest.raises(grpc.aio.AioRpcError) as failed:
                await page(node, size, token)
            trailing = dict(failed.value.trailing_metadata() or ())

        assert failed.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert (failed.value.details() or "").startswith(f"holdfast.{field}: ")
        assert trailing["holdfast-outcome"] == "not-applied"

    asyncio.run(story())


def test_a_page_ends_where_an_answer_has_no_more_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page may be shorter than asked for; only an empty token is the end."""
    names = [f"{n}-{'x' * 400}" for n in range(10)]

    async def story() -> None:
        async with served() as node:
            fill(node, names)
            monkeypatch.setattr(answer_size, "ANSWER_BYTES_MAX", 34_000)
            found = await rest(node, 100)
            monkeypatch.setattr(answer_size, "ANSWER_BYTES_MAX", 3_000)
            with pytest.raises(grpc.aio.AioRpcError, match="page_size") as failed:
                await page(node, None)

        assert [name for some in found for name in some] == names
        assert 1 < len(found) < 10
        assert failed.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED

    asyncio.run(story())


def test_names_are_kept_in_order_through_any_changes() -> None:
    """A random walk against `sorted`; few changes and many. The seed is printed."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)

    async def story() -> None:
        names, now = pages.Names(), PMap[str, float]()
        for _ in range(200):
            for _ in range(chance.choice((0, 1, 3, pages.CHANGES_MAX // 10))):
                name = str(chance.randrange(1_000))
                now = now.remove(name) if chance.random() < 0.4 else now.set(name, chance.random())
            assert list(await names.of(now)) == sorted(now)
        many = now.update_all((f"m-{n}", n) for n in range(2 * pages.CHANGES_MAX))
        assert list(await names.of(many)) == sorted(many)
        assert list(await names.of(now)) == sorted(now)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "CHANGES_MAX", 40)
        asyncio.run(story())


def test_names_that_were_given_out_stay_as_they_were() -> None:
    """A list goes on with them while the next one is made of newer ones."""

    async def story() -> None:
        names, before = pages.Names(), PMap({"a": 1, "c": 1})
        given = await names.of(before)
        assert await names.of(before.set("a", 2)) is given
        assert await names.of(before.set("b", 1).remove("a")) == ["b", "c"]
        assert given == ["a", "c"]

    asyncio.run(story())


def test_the_token_of_a_page_names_nothing_that_the_caller_may_not_read() -> None:
    """ADR 30: a list leaves out. A token can be read by whoever gets it."""
    seen = NAMES[::2]

    async def scenario() -> None:
        async with served() as node:
            fill(node, NAMES)
            acls = [Acl(ANONYMOUS, READER, kind, name) for kind in (GROUP, TOPIC) for name in seen]
            node.replica.state = node.replica.state._replace(
                access_mode=DENY, acls=PMap((acl, acl) for acl in acls)
            )
            for ask in (page, topics):
                got, token = await ask(node, 2)
                assert got == seen[:2]
                assert base64.urlsafe_b64decode(token).endswith(seen[1].encode())
                assert await ask(node, 9, token) == (seen[2:], "")

    asyncio.run(scenario())

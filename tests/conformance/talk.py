"""A few clients of one consumer group talk to a service, and a test reads what they are told.

For rules that no recorded transcript shows: a test says the calls, and the answers that the rule
asks for. It runs against the core and against the second coordinator, which was written from the
rules alone. Partitions stand as `"t0 t1 u0"`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from conformance.replayer import Completion, Session

Json = Any
NONE: frozenset[int] = frozenset()
JOIN, LEAVE, AWAY = 0, -1, -2


class Told(NamedTuple):
    """The answer to a heartbeat: an error, or the epoch and perhaps what to own."""

    epoch: int = 0
    owned: str | None = None
    error: str = "NONE"


class Shown(NamedTuple):
    """A group as it is described."""

    state: str
    epoch: int
    target_epoch: int
    assignor: str = "range"


class Member(NamedTuple):
    """A member as it is described."""

    epoch: int
    owned: str
    target: str


def refused(error: str) -> Told:
    return Told(error=error)


class Talk:
    """All calls are about the group `g`; each takes the time of a step."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._steps = 0

    def call(self, client: str, api: str, request: Json) -> Json:
        """Call, and return the answer; raises LookupError if the call is parked."""
        return next(
            each.response for each in self.all_of(client, api, request) if each.of == self.at
        )

    def all_of(self, client: str, api: str, request: Json) -> list[Completion]:
        """Call, and return all that is answered then."""
        self._steps += 1

        async def run() -> list[Completion]:
            await self.session.call(self._steps, client, api, request)
            return await self.session.settle(NONE)

        return asyncio.run(run())

    @property
    def at(self) -> int:
        return self._steps

    # --- heartbeats ---

    def beat(self, name: str, epoch: int, owns: str | None = None, **fields: Json) -> Told:
        """`owns`: the list of owned partitions; None: no list."""
        request = {"group_id": "g", "member_id": name, "member_epoch": epoch}
        if owns is not None:
            request["topic_partitions"] = spread(owns)
        answer = self.call(name, "ConsumerGroupHeartbeat", {**request, **fields})
        assignment = answer["assignment"]
        owned = None if assignment is None else joined(assignment)
        return Told(answer["member_epoch"], owned, answer["error_code"])

    def join(self, name: str, topics: str | None = "t", **fields: Json) -> Told:
        """A join with all fields, of the assignor `range` unless another is named."""
        return self.beat(name, JOIN, "", **{**self.whole(topics), **fields})

    @staticmethod
    def whole(topics: str | None = "t") -> Json:
        """All fields of a full heartbeat but the list of partitions."""
        return {
            "instance_id": None,
            "rack_id": None,
            "rebalance_timeout_ms": 300_000,
            "subscribed_topic_names": None if topics is None else topics.split(),
            "subscribed_topic_regex": None,
            "server_assignor": "range",
        }

    def leave(self, name: str, instance: str | None = None) -> Told:
        return self.beat(name, LEAVE, instance_id=instance)

    def go_away(self, name: str, instance: str | None) -> Told:
        return self.beat(name, AWAY, instance_id=instance)

    # --- what others see ---

    def described(self) -> Json:
        (group,) = self.call("op", "ConsumerGroupDescribe", {"group_ids": ["g"]})["groups"]
        return group

    def group(self) -> Shown:
        shown = self.described()
        epochs = shown["group_epoch"], shown["assignment_epoch"]
        return Shown(shown["group_state"], *epochs, shown["assignor_name"])

    def members(self) -> dict[str, Member]:
        return {
            each["member_id"]: Member(
                each["member_epoch"],
                joined(each["assignment"]),
                joined(each["target_assignment"]),
            )
            for each in self.described()["members"]
        }

    # --- offsets ---

    def commit(self, name: str, epoch: int, places: str) -> list[str]:
        """The codes, one a partition, in the order of the places."""
        topics = [
            {
                "name": each["topic"],
                "partitions": [
                    {
                        "partition_index": number,
                        "committed_offset": 7,
                        "committed_metadata": "",
                    }
                    for number in each["partitions"]
                ],
            }
            for each in spread(places)
        ]
        request = {
            "group_id": "g",
            "generation_id_or_member_epoch": epoch,
            "member_id": name,
            "group_instance_id": None,
            "topics": topics,
        }
        answer = self.call(name or "op", "OffsetCommit", request)
        return [line["error_code"] for topic in answer["topics"] for line in topic["partitions"]]

    def fetch(self, name: str | None, epoch: int) -> str:
        asked = {"group_id": "g", "member_id": name, "member_epoch": epoch, "topics": None}
        request = {"groups": [asked], "require_stable": False}
        (group,) = self.call("op", "OffsetFetch", request)["groups"]
        return str(group["error_code"])

    def remove(self, *entries: tuple[str, str | None]) -> list[str]:
        """What an operator is told of each member id and instance id that is to leave."""
        members = [{"member_id": id_, "group_instance_id": instance} for id_, instance in entries]
        answer = self.call("op", "LeaveGroup", {"group_id": "g", "members": members})
        return [each["error_code"] for each in answer["members"]]

    # --- the world ---

    def admin(self, **action: Json) -> None:
        async def run() -> None:
            await self.session.admin(action)
            await self.session.settle(NONE)

        asyncio.run(run())

    def wait(self, ms: int) -> None:
        asyncio.run(self.session.wait(ms))


def spread(partitions: str) -> Json:
    """`"t0 t1 u0"` as a request has it; a topic's name has no digits."""
    by_topic: dict[str, list[int]] = {}
    for place in partitions.split():
        topic = place.rstrip("0123456789")
        by_topic.setdefault(topic, []).append(int(place.removeprefix(topic)))
    return [{"topic": topic, "partitions": numbers} for topic, numbers in by_topic.items()]


def joined(assignment: Json) -> str:
    places = [
        f"{each['topic']}{number}"
        for each in sorted(assignment["topic_partitions"], key=lambda each: str(each["topic"]))
        for number in sorted(each["partitions"])
    ]
    return " ".join(places)

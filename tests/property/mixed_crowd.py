"""Clients of both protocols in one group of the core: who works on what, as each of them sees it.

No model: a crowd that follows the protocols must never have two clients at work on one partition,
and when nobody comes or goes any more, every partition must be somebody's. Classic members are
eager: they let go of everything before they rejoin. Members of the heartbeat protocol take what
they are told, and say so with their next beat.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from typing import TYPE_CHECKING, Any

from conformance.talk import JOIN, LEAVE, Talk, spread

if TYPE_CHECKING:
    from conformance.in_process import InProcess
    from conformance.replayer import Completion

Json = Any
Place = tuple[str, int]
OVER = {"FENCED_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID", "GROUP_ID_NOT_FOUND"}
AGAIN = {"UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS", "ILLEGAL_GENERATION", "NOT_COORDINATOR"}
CLIENTS_MAX, PARTITIONS_MAX, ROUNDS = 5, 9, 30


class Beating:
    """A member of the heartbeat protocol."""

    def __init__(self, crowd: Crowd, name: str) -> None:
        self.crowd, self.name = crowd, name
        self.epoch, self.works = JOIN, set[Place]()

    def act(self) -> None:
        """Beat, with all that it works on."""
        owned = " ".join(f"{topic}{number}" for topic, number in sorted(self.works))
        request = {"group_id": "g", "member_id": self.name, "member_epoch": self.epoch}
        if self.epoch == JOIN:
            request |= Talk.whole("t")
        self.crowd.call(
            self, "ConsumerGroupHeartbeat", {**request, "topic_partitions": spread(owned)}
        )

    def hear(self, _api: str, answer: Json) -> None:
        if answer["error_code"] in OVER:
            self.epoch, self.works = JOIN, set()
            return
        assert answer["error_code"] == "NONE", answer
        self.epoch = answer["member_epoch"]
        if answer["assignment"] is not None:
            self.works = _places(answer["assignment"]["topic_partitions"])

    def leave(self) -> None:
        request = {"group_id": "g", "member_id": self.name, "member_epoch": LEAVE}
        self.works = set()
        self.crowd.call(Deaf(self.crowd, self.name), "ConsumerGroupHeartbeat", request)


class Classic:
    """A member of the classic protocol, of type `consumer`.

    `parked`: a call of it has no answer. `dealt`: how many partitions it dealt out as the leader.
    """

    def __init__(self, crowd: Crowd, name: str) -> None:
        self.crowd, self.name = crowd, name
        self.id, self.generation, self.parked = "", -1, False
        self.works, self.joined, self.dealt = set[Place](), False, 0

    def act(self) -> None:
        """Beat, or join; a client that waits for an answer does nothing."""
        if self.parked:
            return
        if self.joined and self.dealt in (0, self.crowd.partitions):
            self.crowd.call(self, "Heartbeat", self._said())
        else:
            self._join()

    def _join(self) -> None:
        self.works, self.parked = set(), True
        self.crowd.call(
            self,
            "JoinGroup",
            {
                "group_id": "g",
                "session_timeout_ms": 600_000,
                "rebalance_timeout_ms": 600_000,
                "member_id": self.id,
                "group_instance_id": None,
                "protocol_type": "consumer",
                "protocols": [{"name": "range", "metadata": {"topics": ["t"], "version": 1}}],
            },
        )

    def hear(self, api: str, answer: Json) -> None:
        error = answer["error_code"]
        if error == "MEMBER_ID_REQUIRED":
            self.id, self.parked = answer["member_id"], False
            self._join()
        elif error != "NONE":
            self.works, self.joined, self.parked = set(), False, False
            self.id = "" if error == "UNKNOWN_MEMBER_ID" else self.id
            assert error in AGAIN, answer
        elif api == "JoinGroup":
            self.id, self.generation = answer["member_id"], answer["generation_id"]
            self._sync([each["member_id"] for each in answer["members"]])
        elif api == "SyncGroup":
            given = answer["assignment"]
            self.works = _places(given["assigned_partitions"]) if given else set()
            self.joined, self.parked = True, False

    def _sync(self, members: list[str]) -> None:
        """A leader deals the partitions out in turn."""
        self.dealt = self.crowd.partitions if members else 0
        numbers = range(self.crowd.partitions)
        work = [
            {
                "member_id": member,
                "assignment": {
                    "assigned_partitions": [
                        {"topic": "t", "partitions": list(numbers[at :: len(members)])}
                    ]
                },
            }
            for at, member in enumerate(members)
        ]
        said = {"protocol_type": "consumer", "protocol_name": "range", "assignments": work}
        self.crowd.call(self, "SyncGroup", {**self._said(), **said})

    def _said(self) -> Json:
        return {
            "group_id": "g",
            "generation_id": self.generation,
            "member_id": self.id,
            "group_instance_id": None,
        }

    def leave(self) -> None:
        self.works = set()
        entry = {"member_id": self.id, "group_instance_id": None}
        request = {"group_id": "g", "members": [entry]}
        self.crowd.call(Deaf(self.crowd, self.name), "LeaveGroup", request)


class Deaf:
    """Whoever does not listen to the answer."""

    def __init__(self, crowd: Crowd, name: str) -> None:
        self.crowd, self.name = crowd, name

    def hear(self, api: str, answer: Json) -> None:
        """Drop it."""


class Crowd:
    """All clients of the group, of topic `t`, and one core."""

    def __init__(self, seed: int, session: InProcess, partitions: int) -> None:
        self.rng, self.session, self.partitions = random.Random(seed), session, partitions
        self.clients: list[Beating | Classic] = []
        self._outbox: deque[tuple[Beating | Classic | Deaf, str, Json]] = deque()
        self._waiting: dict[int, Beating | Classic | Deaf] = {}
        self._steps, self._named = 0, 0
        self.beating = self.rng.choice([0.0, 0.3, 0.5, 1.0])

    def call(self, client: Beating | Classic | Deaf, api: str, request: Json) -> None:
        """Send a call as soon as those before it are on their way."""
        self._outbox.append((client, api, request))

    def flush(self) -> None:
        """Send what is to be sent, and what follows from the answers."""
        while self._outbox:
            self._steps += 1
            client, api, request = self._outbox.popleft()
            self._waiting[self._steps] = client
            for each in asyncio.run(self._answers(client.name, api, request)):
                self._waiting.pop(each.of).hear(each.api, each.response)
            self.check_owners()

    async def _answers(self, name: str, api: str, request: Json) -> list[Completion]:
        await self.session.call(self._steps, name, api, request)
        return await self.session.settle(frozenset())

    def check_owners(self) -> None:
        """No two clients work on one partition."""
        at_work = [place for client in self.clients for place in client.works]
        assert len(at_work) == len(set(at_work)), {c.name: sorted(c.works) for c in self.clients}

    # --- what happens ---

    def step(self) -> None:
        deeds = [
            (60, self._act),
            (6 if len(self.clients) < CLIENTS_MAX else 0, self._come),
            (4, self._go),
            (2, self._grow),
            (2, self._fail_over),
        ]
        self.rng.choices([deed for _, deed in deeds], [weight for weight, _ in deeds])[0]()
        self.flush()

    def calm_down(self) -> None:
        """Let everybody act in turn, for as long as it may take."""
        for _ in range(ROUNDS):
            for client in self.clients:
                client.act()
                self.flush()

    def _act(self) -> None:
        if self.clients:
            self.rng.choice(self.clients).act()

    def _come(self) -> None:
        self._named += 1
        beats = self.rng.random() < self.beating
        comes = Beating(self, f"b{self._named}") if beats else Classic(self, f"c{self._named}")
        self.clients.append(comes)
        comes.act()

    def _go(self) -> None:
        here = [each for each in self.clients if isinstance(each, Beating) or each.joined]
        if here:
            client = self.rng.choice(here)
            self.clients.remove(client)
            client.leave()

    def _grow(self) -> None:
        if self.partitions < PARTITIONS_MAX:
            self.partitions += 1
            change = {"add_partitions": "t", "partitions": self.partitions}
            asyncio.run(self.session.admin(change))

    def _fail_over(self) -> None:
        asyncio.run(self.session.admin({"restart": True}))
        for each in asyncio.run(self.session.settle(frozenset())):
            self._waiting.pop(each.of).hear(each.api, each.response)


def _places(topics: Json) -> set[Place]:
    return {(each["topic"], number) for each in topics for number in each["partitions"]}

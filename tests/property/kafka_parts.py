"""What the second coordinator is made of: groups, members, a table of timers, and answers.

The rules are in `kafka_model` and `kafka_reads`. Knows none of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Json = Any
STEP_MS = 150
EMPTY, PREPARING, COMPLETING, STABLE = (
    "Empty",
    "PreparingRebalance",
    "CompletingRebalance",
    "Stable",
)


@dataclass
class Member:
    """`join` and `sync`: the step whose call is parked."""

    member_id: str
    instance: str | None
    client: str
    session: int
    rebalance: int
    protocols: list[Json]
    assignment: Json = ""
    join: int | None = None
    sync: int | None = None
    new: bool = True

    def metadata(self, name: str | None) -> Json:
        return next((p["metadata"] for p in self.protocols if p["name"] == name), "")

    def topics(self, name: str | None) -> set[str] | None:
        metadata = self.metadata(name)
        return set(metadata["topics"]) if isinstance(metadata, dict) else None


@dataclass
class Group:
    """One group; `members` in the order of joining.

    `owed`: who owes a sync; `answered`: who was told the present generation; `timeout`: how long
    the open join phase may last.
    """

    state: str = EMPTY
    initial: bool = False
    generation: int = 0
    type: str | None = None
    protocol: str | None = None
    leader: str | None = None
    members: dict[str, Member] = field(default_factory=dict)
    instances: dict[str, str] = field(default_factory=dict)
    pending: set[str] = field(default_factory=set)
    owed: set[str] = field(default_factory=set)
    answered: set[str] = field(default_factory=set)
    timeout: int = 0
    added: bool = False
    subscribed: set[str] | None = None
    offsets: dict[tuple[str, int], Json] = field(default_factory=dict)

    @property
    def joining(self) -> list[Member]:
        return [m for m in self.members.values() if m.join is not None]

    @property
    def longest(self) -> int:
        return max((m.rebalance for m in self.members.values()), default=0)


class Table:
    """All groups, one clock. `done` collects `(step, client, api, response)`."""

    def __init__(self, config: Mapping[str, str], topics: Mapping[str, int], *, ours: bool) -> None:
        self.ours = ours
        self.delay = int(config.get("group.initial.rebalance.delay.ms", 0))
        self.max_size = int(config.get("group.max.size", 2**31 - 1))
        self.topics = dict(topics)
        self.groups: dict[str, Group] = {}
        self.done: list[tuple[int, str, str, Json]] = []
        self.sent: dict[int, tuple[str, str]] = {}
        self.now = 0
        self._timers: dict[tuple[str, str, str], tuple[int, int, Callable[[], None]]] = {}
        self._armed = 0
        self._ids: Counter[str] = Counter()

    # --- time ---

    def arm(self, name: str, kind: str, member_id: str, ms: int, then: Callable[[], None]) -> None:
        self._armed += 1
        self._timers[name, kind, member_id] = (self.now + ms, self._armed, then)

    def cancel(self, name: str, kind: str, member_id: str = "") -> None:
        self._timers.pop((name, kind, member_id), None)

    def advance(self, ms: int) -> None:
        end = self.now + ms
        while self._timers:
            key = min(self._timers, key=lambda each: self._timers[each][:2])
            at, _, then = self._timers[key]
            if at > end:
                break
            self.now = at
            del self._timers[key]
            then()
        self.now = end

    # --- answers ---

    def answer(self, of: int | None, response: Json) -> None:
        if of is not None:
            client, api = self.sent.pop(of)
            self.done.append((of, client, api, response))

    def refuse_join(self, of: int | None, error: str, member_id: str = "") -> None:
        response = {
            "error_code": error,
            "generation_id": -1,
            "protocol_type": None,
            "protocol_name": None,
            "leader": "",
            "skip_assignment": False,
            "member_id": member_id,
            "members": [],
        }
        self.answer(of, response)

    def accept_join(
        self, of: int | None, group: Group, member: Member, *, listed: bool, skip: bool = False
    ) -> None:
        members = [
            {
                "member_id": m.member_id,
                "group_instance_id": m.instance,
                "metadata": m.metadata(group.protocol),
            }
            for m in group.members.values()
        ]
        response = {
            "error_code": "NONE",
            "generation_id": group.generation,
            "protocol_type": group.type,
            "protocol_name": group.protocol,
            "leader": group.leader or "",
            "skip_assignment": skip,
            "member_id": member.member_id,
            "members": members if listed else [],
        }
        self.answer(of, response)

    def answer_sync(self, of: int | None, error: str, group: Group, assignment: Json = "") -> None:
        fine = error == "NONE"
        response = {
            "error_code": error,
            "protocol_type": group.type if fine else None,
            "protocol_name": group.protocol if fine else None,
            "assignment": assignment,
        }
        self.answer(of, response)

    @staticmethod
    def stranger(group: Group | None, member_id: str, instance: str | None) -> str | None:
        """K-C1 to K-C7, K-A12, K-F1: who may speak."""
        if group is None:
            return "UNKNOWN_MEMBER_ID"
        if instance is not None:
            if instance not in group.instances:
                return "UNKNOWN_MEMBER_ID"
            if group.instances[instance] != member_id:
                return "FENCED_INSTANCE_ID"
        return None if member_id in group.members else "UNKNOWN_MEMBER_ID"

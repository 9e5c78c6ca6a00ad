"""Random transcripts: what a crowd of careless clients calls, and what the rules say to it.

The model of `kafka_reads` answers each call, so a walk has the form of a recorded transcript and is
replayed like one. Dynamic and static members share a group; ids, generations, protocols and
instances are wrong now and then; sessions end; operators remove in batches; leaders fail over.
"""

from __future__ import annotations

import random
from typing import Any

from property.kafka_parts import COMPLETING, PREPARING, STEP_MS, Group, Member
from property.kafka_reads import Coordinator

Json = Any
CLIENTS = ("a", "b", "c", "d", "e")
TOPICS = {"t": 2, "u": 1}
OPAQUE: list[Json] = ["m", "m", "m", "n"]
READABLE: list[Json] = [
    {"topics": ["t"], "version": 0},
    {"topics": ["t", "u"], "version": 0},
]
LISTS = [("p",), ("p",), ("p", "q"), ("p", "q"), ("q", "p"), ("q",)]


class Walk:
    """One seed's transcript. `kind`: the protocol type that most members have.

    `timeless`: no deadline ever fires, nobody fails over, and no setting differs.
    """

    def __init__(self, seed: int, *, timeless: bool = False) -> None:
        self.rng = random.Random(seed)
        self.kind = self.rng.choice(["app", "consumer"])
        delay = self.rng.choice(["0", "0", "2000"])
        size = self.rng.choice(["100", "100", "100", "3"])
        self.config = {"group.initial.rebalance.delay.ms": delay, "group.max.size": size}
        self.short = self.rng.random() < 0.5 and not timeless
        self.fails = self.rng.random() < 0.3 and not timeless
        if timeless:
            self.config = {}
        self.model = Coordinator(self.config, TOPICS, ours=True)
        self.steps: list[Json] = []

    def transcript(self, steps: int) -> Json:
        for _ in range(steps):
            self._step()
        return {"config": self.config, "topics": TOPICS, "steps": self.steps}

    # --- what is sent ---

    def _step(self) -> None:
        deeds = [
            (45, self._go_on),
            (15, self._join),
            (10, self._restart),
            (14, self._sync),
            (12, self._heartbeat),
            (6, self._leave),
            (6, self._commit),
            (4, self._describe),
            (1, self._list),
            (1, self._delete_group),
            (2, self._delete_offsets),
            (2, self._fetch),
            (8 if self.short else 0, self._wait),
            (3 if self.fails else 0, self._fail_over),
        ]
        self.rng.choices([deed for _, deed in deeds], [weight for weight, _ in deeds])[0]()

    def _send(self, client: str, api: str, request: Json) -> None:
        step = {"do": {"client": client, "api": api, "request": request}}
        self.model.call(len(self.steps), client, api, request)
        self._settle(step)

    def _settle(self, step: Json) -> None:
        self.model.advance(STEP_MS)
        done, self.model.done = self.model.done, []
        step["completions"] = [
            {"of": of, "client": client, "api": api, "response": response}
            for of, client, api, response in done
        ]
        self.steps.append(step)

    @property
    def group(self) -> Group:
        return self.model.groups.get("g", Group())

    def _someone(self) -> tuple[str, str | None]:
        """A member id and an instance id that go together more often than not."""
        group, rng = self.group, self.rng
        ids: list[tuple[str, str | None]] = [
            (m.member_id, m.instance) for m in group.members.values() if self._told(m.member_id)
        ] * 6
        ids += [(each, None) for each in sorted(group.pending)] * 2
        ids += [("ghost", None), ("", None), ("", "i-a")]
        member_id, instance = rng.choice(ids)
        return member_id, rng.choice([instance] * 16 + [None, "i-a", "i-b", "i-none"])

    def _told(self, member_id: str) -> bool:
        """Whether an answer has named this id, so that a replay can know it."""
        return any(member_id in str(each.get("completions")) for each in self.steps)

    def _go_on(self) -> None:
        """What a careful client would do next, so that groups get somewhere."""
        group, rng = self.group, self.rng
        members = [m for m in group.members.values() if self._told(m.member_id)]
        if group.state == COMPLETING and members:
            silent = [m for m in members if m.sync is None]
            member = rng.choice(silent or members)
            self._send(member.client, "SyncGroup", self._sync_of(member, group))
            return
        waiting = [m for m in members if m.join is None] if group.state == PREPARING else []
        if waiting:
            self._join_as(rng.choice(waiting))
        elif group.pending and rng.random() < 0.7:
            member_id = rng.choice(sorted(group.pending))
            client = rng.choice(CLIENTS)
            self._send(client, "JoinGroup", self._joining(member_id, None, self._protocols()))
        elif not members or rng.random() < 0.4:
            client = rng.choice(CLIENTS)
            instance = rng.choice([None, f"i-{client}"])
            self._send(client, "JoinGroup", self._joining("", instance, self._protocols()))
        else:
            self._heartbeat_of(rng.choice(members))

    def _join_as(self, member: Member) -> None:
        request = self._joining(member.member_id, member.instance, member.protocols)
        self._send(member.client, "JoinGroup", request)

    def _restart(self) -> None:
        """Another process of a static member, that may have changed."""
        static = [each for each in self.group.members.values() if each.instance is not None]
        if static:
            member = self.rng.choice(static)
            protocols = self.rng.choice([member.protocols, member.protocols, self._protocols()])
            request = self._joining("", member.instance, protocols)
            self._send(self.rng.choice(CLIENTS), "JoinGroup", request)

    def _joining(self, member_id: str, instance: str | None, protocols: list[Json]) -> Json:
        brief = 6_000 + len(self.steps)  # no two end in one moment
        session = self.rng.choice([600_000, 600_000, brief]) if self.short else 600_000
        return {
            "group_id": "g",
            "session_timeout_ms": session,
            "rebalance_timeout_ms": self.rng.choice([8_000, 600_000]) if self.short else 600_000,
            "member_id": member_id,
            "group_instance_id": instance,
            "protocol_type": self.kind,
            "protocols": protocols,
        }

    def _sync_of(self, member: Member, group: Group) -> Json:
        given = [each for each in group.members if self.rng.random() < 0.9 and self._told(each)]
        work = [{"member_id": each, "assignment": f"w{len(self.steps)}"} for each in given]
        leads = group.leader == member.member_id
        return {
            "group_id": "g",
            "generation_id": group.generation,
            "member_id": member.member_id,
            "group_instance_id": member.instance,
            "protocol_type": group.type,
            "protocol_name": group.protocol,
            "assignments": work if leads else [],
        }

    def _heartbeat_of(self, member: Member) -> None:
        request = {
            "group_id": "g",
            "generation_id": self.group.generation,
            "member_id": member.member_id,
            "group_instance_id": member.instance,
        }
        self._send(member.client, "Heartbeat", request)

    def _protocols(self) -> list[Json]:
        metadata = READABLE if self.kind == "consumer" else OPAQUE
        names = self.rng.choice(LISTS)
        return [{"name": name, "metadata": self.rng.choice(metadata)} for name in names]

    def _join(self) -> None:
        rng, client = self.rng, self.rng.choice(CLIENTS)
        member_id, instance = self._someone() if rng.random() < 0.6 else ("", None)
        member = self.group.members.get(member_id)
        if not member_id:
            instance = rng.choice([None, None, f"i-{client}", f"i-{rng.choice(CLIENTS)}"])
        protocols = self._protocols()
        if member is not None and rng.random() < 0.6:
            protocols = member.protocols
        request = self._joining(member_id, instance, rng.choice([protocols] * 30 + [[]]))
        request["protocol_type"] = rng.choice([self.kind] * 30 + ["other", ""])
        if rng.random() < 0.03:
            request["session_timeout_ms"] = 1
        if request["protocol_type"] == "other":
            request["protocols"] = [{"name": "p", "metadata": "m"}]
        self._send(client, "JoinGroup", request)

    def _sync(self) -> None:
        rng, group = self.rng, self.group
        member_id, instance = self._someone()
        leader = group.members.get(group.leader or "")
        if leader is not None and self._told(leader.member_id) and rng.random() < 0.4:
            member_id, instance = leader.member_id, leader.instance
        assignments = [
            {"member_id": each, "assignment": f"w{len(self.steps)}"}
            for each in [*group.members, "ghost"]
            if rng.random() < 0.8 and (each == "ghost" or self._told(each))
        ]
        request = {
            "group_id": "g",
            "generation_id": self._generation(),
            "member_id": member_id,
            "group_instance_id": instance,
            "protocol_type": rng.choice([group.type or self.kind] * 20 + ["other", None]),
            "protocol_name": rng.choice([group.protocol or "p"] * 20 + ["z", None]),
            "assignments": assignments,
        }
        self._send(rng.choice(CLIENTS), "SyncGroup", request)

    def _generation(self) -> int:
        now = self.group.generation
        return self.rng.choice([now] * 12 + [now - 1, now + 1, -1])

    def _heartbeat(self) -> None:
        member_id, instance = self._someone()
        request = {
            "group_id": "g",
            "generation_id": self._generation(),
            "member_id": member_id,
            "group_instance_id": instance,
        }
        self._send(self.rng.choice(CLIENTS), "Heartbeat", request)

    def _leave(self) -> None:
        entries = []
        for _ in range(self.rng.choice([0, 1, 1, 1, 2, 3])):
            member_id, instance = self._someone()
            if instance is not None and self.rng.random() < 0.3:
                member_id = ""
            entries.append({"member_id": member_id, "group_instance_id": instance})
        self._send("op", "LeaveGroup", {"group_id": "g", "members": entries})

    # --- offsets and groups ---

    def _places(self) -> list[Json]:
        return [
            {"name": name, "partitions": [{"partition_index": self.rng.choice([0, 0, 1, 7])}]}
            for name in self.rng.choice([["t"], ["t", "u"], ["none"], ["u", "none"]])
        ]

    def _commit(self) -> None:
        member_id, instance = self._someone()
        topics = self._places()
        for topic in topics:
            for line in topic["partitions"]:
                line["committed_offset"] = self.rng.randint(0, 99)
                line["committed_metadata"] = "x" * self.rng.choice([0, 1, 4096, 4097])
        request = {
            "group_id": "g",
            "generation_id_or_member_epoch": self._generation(),
            "member_id": member_id,
            "group_instance_id": instance,
            "topics": topics,
        }
        self._send(self.rng.choice(CLIENTS), "OffsetCommit", request)

    def _fetch(self) -> None:
        asked = {
            "group_id": self.rng.choice(["g", "g", "h"]),
            "member_id": None,
            "member_epoch": -1,
        }
        topics = [{"name": "t", "partition_indexes": [0, 1]}]
        request = {"groups": [{**asked, "topics": self.rng.choice([None, topics])}]}
        self._send("op", "OffsetFetch", {**request, "require_stable": False})

    def _delete_offsets(self) -> None:
        self._send("op", "OffsetDelete", {"group_id": "g", "topics": self._places()})

    def _describe(self) -> None:
        if all(self._told(each) for each in self.group.members):
            self._send("op", "DescribeGroups", {"groups": ["g"]})

    def _list(self) -> None:
        states = self.rng.choice([[], ["Stable"], ["empty", "PREPARINGREBALANCE"], ["nonsense"]])
        types = self.rng.choice([[], ["Classic"], ["consumer"]])
        self._send("op", "ListGroups", {"states_filter": states, "types_filter": types})

    def _delete_group(self) -> None:
        self._send("op", "DeleteGroups", {"groups_names": ["g", "h"]})

    # --- time and failovers ---

    def _wait(self) -> None:
        wait_ms = self.rng.choice([1_000, 2_500, 6_500, 8_500] * 5 + [301_000])
        self.model.advance(wait_ms)
        self._settle({"wait_ms": wait_ms})

    def _fail_over(self) -> None:
        self.model.admin({"restart": True})
        self._settle({"admin": {"restart": True}})

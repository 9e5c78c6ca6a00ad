"""Random transcripts of the heartbeat protocol: what a crowd of careless clients says.

The model of `kafka_consumer_reads` answers each call, so a walk has the form of a recorded
transcript and is replayed like one. Most beats are those of a client that follows the protocol, for
else no partition would ever move; answers are lost, epochs and lists of owned partitions are wrong
now and then, instances come and go, subscriptions and topics change, and leaders fail over.
"""

from __future__ import annotations

from typing import Any

from property.consumer_clients import (
    BAD_REGEX,
    CLIENTS,
    LATER,
    NAMES,
    REGEXES,
    TOPICS,
    Clients,
    as_sent,
)
from property.kafka_consumer_parts import AWAY, JOINING, LEAVING, Member, Partition, listed

Json = Any
_CLASSIC_JOIN: Json = {
    "group_id": "g",
    "session_timeout_ms": 600_000,
    "rebalance_timeout_ms": 600_000,
    "member_id": "",
    "group_instance_id": None,
    "protocol_type": "app",
    "protocols": [{"name": "p", "metadata": "m"}],
}


class ConsumerWalk(Clients):
    """One seed's transcript. `timeless`: no deadline fires, nobody fails over, base profile."""

    def transcript(self, steps: int) -> Json:
        while len(self.steps) < steps:
            self._step()
        return {"config": self.config, "topics": TOPICS, "steps": self.steps}

    # --- what happens ---

    def _step(self) -> None:
        deeds = [
            (50, self._go_on),
            (8, self._join),
            (4, self._join_again),
            (7, self._wrong_beat),
            (5, self._restart),
            (3, self._leave),
            (2, self._wrong_leave),
            (2, self._batch),
            (5, self._subscribe),
            (2, self._other_news),
            (3, self._malformed),
            (4, self._commit),
            (2, self._fetch),
            (1, self._delete_offsets),
            (5, self._describe),
            (1, self._list),
            (1, self._delete_group),
            (1, self._classic),
            (30 if "g" in self.model.groups else 6, self._visit),
            (3, self._topics),
            (0 if self.timeless else 5 if self.short else 1, self._wait),
            (2 if self.fails else 0, self._fail_over),
        ]
        self.rng.choices([deed for _, deed in deeds], [weight for weight, _ in deeds])[0]()

    # --- news ---

    def _subscribe(self) -> None:
        """K-M16, K-M17, K-P1 to K-P6."""
        if not self.processes:
            return
        rng, process = self.rng, self.rng.choice(self.processes)
        if rng.random() < 0.7 or not self.by_regex:
            self._beat(process, {"subscribed_topic_names": rng.choice(NAMES)})
        else:
            regex = rng.choice([*REGEXES, "", "", BAD_REGEX, BAD_REGEX])
            self._beat(process, {"subscribed_topic_regex": regex})

    def _other_news(self) -> None:
        """K-M14, K-M18, K-M19: what another target may follow from, or not."""
        if not self.processes:
            return
        process = self.rng.choice(self.processes)
        member = self.group.members.get(process.member_id)
        news: list[Json] = [{"rack_id": "r1"}, {"rebalance_timeout_ms": 5_000}]
        news.append({"server_assignor": self.rng.choice(self.assignors)})
        if member is not None and member.names:
            full = {"subscribed_topic_names": sorted(member.names), "rebalance_timeout_ms": 7_000}
            news.append({**full, "topic_partitions": as_sent(process.works_on)})
        self._beat(process, self.rng.choice(news))

    def _topics(self) -> None:
        """K-M27, K-P8."""
        there, rng = self.model.topics, self.rng
        absent = [each for each in LATER if each not in there]
        actions: list[Json] = [
            {"create_topic": name, "partitions": rng.randint(1, 3)} for name in absent
        ]
        name = rng.choice(sorted(there))
        actions.append({"add_partitions": name, "partitions": there[name] + 1})
        if name in LATER and not self.model.pause_ms:
            actions.append({"delete_topic": name})
        action = rng.choice(actions)
        self.model.admin(action)
        self._settle({"admin": action})

    # --- what a client should not say ---

    def _someone(self) -> Member | None:
        members = list(self.group.members.values())
        return self.rng.choice(members) if members else None

    def _wrong_beat(self) -> None:
        """K-M7, K-M10 to K-M12, K-N10, K-N14, K-N15: epochs, lists and ids that do not fit."""
        rng, member = self.rng, self._someone()
        if member is None or rng.random() < 0.15:
            request = {"member_id": "ghost", "member_epoch": rng.choice([1, 3])}
            self._speak(request | rng.choice([{}, {"instance_id": "i-none"}]))
            return
        epoch = rng.choice([member.previous, member.epoch, member.epoch - 1, member.epoch + 1])
        request = {"member_id": member.member_id, "member_epoch": max(epoch, 1)}
        ids = [member.instance] * 4 + ["i-none", "i-a", "i-b"]
        if rng.random() < 0.4:
            request["instance_id"] = rng.choice(ids)
        owned = self._some_list(member)
        if owned is not None:
            request["topic_partitions"] = as_sent(owned)
        self._speak(request)

    def _some_list(self, member: Member) -> set[Partition] | None:
        held = sorted(member.holds)
        some = {each for each in held if self.rng.random() < 0.7}
        lists = [None, set(), set(held), set(member.owned), some, {*held, ("t", 5)}]
        return self.rng.choice(lists)

    def _speak(self, request: Json) -> None:
        client = self.rng.choice(CLIENTS)
        self._send(client, "ConsumerGroupHeartbeat", {"group_id": "g"} | request)

    def _wrong_leave(self) -> None:
        """K-M22, K-M23, K-N16, K-M32."""
        rng, member = self.rng, self._someone()
        ids: list[Json] = [
            {"member_id": "ghost", "member_epoch": LEAVING},
            {"member_id": "ghost", "member_epoch": AWAY, "instance_id": "i-none"},
            {"member_id": "ghost", "member_epoch": AWAY, "instance_id": "i-a"},
            {"member_id": "ghost", "member_epoch": LEAVING, "instance_id": "i-b"},
        ]
        if member is not None:
            mine = {"member_id": member.member_id, "instance_id": member.instance}
            ids += [{**mine, "member_epoch": LEAVING}]
            ids += [{**mine, "member_epoch": AWAY}] * (member.instance is not None)
            ids += [{"member_id": member.member_id, "member_epoch": AWAY, "instance_id": "i-none"}]
        self._speak(rng.choice(ids))

    def _malformed(self) -> None:
        """K-M1 to K-M3, K-H4; K-H5: a member joins again without its instance id."""
        join = {"member_id": "m-new", "member_epoch": JOINING, "topic_partitions": []}
        join |= self._joining()
        wrong: list[Json] = [
            {**join, "member_id": ""},
            {**join, "instance_id": ""},
            {**join, "rack_id": ""},
            {**join, "rebalance_timeout_ms": None},
            {**join, "subscribed_topic_names": None, "subscribed_topic_regex": None},
            {**join, "topic_partitions": listed([("t", 0)])["topic_partitions"]},
            {**join, "server_assignor": "sticky"},
            {**join, "group_id": ""},
            {"member_id": "m", "member_epoch": -3},
            {"member_id": "m", "member_epoch": AWAY},
        ]
        member = self._someone()
        if member is not None:
            wrong += [{**join, "member_id": member.member_id, "instance_id": "i-new"}] * 4
        if member is not None and member.epoch != AWAY:
            wrong += [{**join, "member_id": member.member_id, "instance_id": None}]
        self._speak(self.rng.choice(wrong))

    def _batch(self) -> None:
        """K-G27, K-G28: each member once, for who is named twice is Kafka's matter."""
        entries: list[Json] = [{"member_id": "ghost", "group_instance_id": None}]
        for member in self.group.members.values():
            whole = {"member_id": member.member_id, "group_instance_id": member.instance}
            by_instance = {"member_id": "", "group_instance_id": member.instance}
            by_id = {"member_id": member.member_id, "group_instance_id": None}
            fenced = {"member_id": "ghost", "group_instance_id": member.instance}
            forms = [by_id, whole] + [by_instance, fenced] * (member.instance is not None)
            entries.append(self.rng.choice(forms))
        chosen = self.rng.sample(entries, min(len(entries), self.rng.choice([0, 1, 1, 2])))
        self._send("op", "LeaveGroup", {"group_id": "g", "members": chosen})

    def _classic(self) -> None:
        """K-Q6, K-Q11: calls of the classic protocol by who is no classic member."""
        member = self._someone()
        if member is None:
            return
        said = {"group_id": "g", "member_id": member.member_id, "generation_id": member.epoch}
        kind = {"protocol_type": "app", "protocol_name": "p", "assignments": []}
        calls = [("Heartbeat", said), ("SyncGroup", said | kind), ("JoinGroup", _CLASSIC_JOIN)]
        self._send("x", *self.rng.choice(calls))

    def _visit(self) -> None:
        """K-Q1, K-Q14: a classic member comes to a group that is empty, and goes."""
        instance = {"group_instance_id": "i-x"}
        if "g" in self.model.groups:
            members = [{"member_id": "", **instance}]
            self._send("op", "LeaveGroup", {"group_id": "g", "members": members})
        elif "g" in self.model.consumers and not self.group.members:
            self._send("x", "JoinGroup", _CLASSIC_JOIN | instance)

    # --- offsets and groups ---

    def _commit(self) -> None:
        """K-J35 to K-J41."""
        rng, member = self.rng, self._someone()
        held = sorted(member.holds) if member else []
        places = [rng.choice(held or [("t", 0)]), rng.choice([("t", 0), ("u", 1), ("none", 0)])]
        topics = [
            {
                "name": topic,
                "partitions": [
                    {
                        "partition_index": number,
                        "committed_offset": rng.randint(0, 99),
                        "committed_metadata": "x" * rng.choice([0, 1, 1, 4097]),
                    }
                ],
            }
            for topic, number in places[: rng.choice([1, 1, 1, 2])]
            if topic in self.model.topics or topic == "none"
        ]
        epoch = member.epoch if member else -1
        request = {
            "group_id": "g",
            "generation_id_or_member_epoch": epoch - rng.choice([0, 0, 0, 1, 1, 2, -1]),
            "member_id": rng.choice([member.member_id] * 9 + ["ghost", ""]) if member else "",
            "group_instance_id": None,
            "topics": topics,
        }
        if topics and "g" in self.model.consumers and _different(topics):
            self._send(rng.choice(CLIENTS), "OffsetCommit", request)

    def _fetch(self) -> None:
        """K-J42."""
        member = self._someone()
        who: list[Json] = [{"member_id": None, "member_epoch": -1}]
        if member is not None:
            who += [{"member_id": member.member_id, "member_epoch": member.epoch}]
            who += [{"member_id": member.member_id, "member_epoch": member.epoch + 1}]
            who += [{"member_id": "ghost", "member_epoch": member.epoch}]
        topics = self.rng.choice([None, [{"name": "t", "partition_indexes": [0, 1]}]])
        asked = {"group_id": "g", "topics": topics} | self.rng.choice(who)
        self._send("op", "OffsetFetch", {"groups": [asked], "require_stable": False})

    def _delete_offsets(self) -> None:
        """K-J24."""
        if "g" in self.model.consumers:
            topics = [
                {"name": name, "partitions": [{"partition_index": 0}]}
                for name in self.rng.choice([["t"], ["u"], ["t", "u"]])
            ]
            self._send("op", "OffsetDelete", {"group_id": "g", "topics": topics})

    def _describe(self) -> None:
        self._send("op", "ConsumerGroupDescribe", {"group_ids": ["g"]})
        if self.rng.random() < 0.1:
            self._send("op", "DescribeGroups", {"groups": ["g"]})

    def _list(self) -> None:
        states = self.rng.choice([[], ["stable"], ["Empty", "ASSIGNING"], ["Reconciling"]])
        types = self.rng.choice([[], ["classic"], ["Consumer"]])
        self._send("op", "ListGroups", {"states_filter": states, "types_filter": types})

    def _delete_group(self) -> None:
        self._send("op", "DeleteGroups", {"groups_names": ["g", "h"]})

    # --- time and failovers ---

    def _wait(self) -> None:
        wait_ms = self.rng.choice([1_000, 2_500, 6_500, 8_500, 11_000])
        self.model.advance(wait_ms)
        self._settle({"wait_ms": wait_ms})

    def _fail_over(self) -> None:
        self.model.admin({"restart": True})
        self._settle({"admin": {"restart": True}})


def _different(topics: list[Json]) -> bool:
    """Whether each topic is named once."""
    names = [each["name"] for each in topics]
    return len(names) == len(set(names))

"""The rest of the second coordinator: offsets, topics, describing, listing, deleting, failover.

Belongs to `kafka_model`, from which it is kept apart only for its length.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from property.kafka_model import Model
from property.kafka_parts import COMPLETING, EMPTY, PREPARING, STABLE, Group

Json = Any
METADATA_MAX = 4096


class Coordinator(Model):
    """The whole model: every call that a transcript has."""

    def call(self, of: int, client: str, api: str, request: Json) -> None:
        read = {
            "OffsetCommit": self.commit,
            "OffsetFetch": self.fetch,
            "OffsetDelete": self.delete_offsets,
            "DescribeGroups": self.describe,
            "ListGroups": self.list_groups,
            "DeleteGroups": self.delete_groups,
        }.get(api)
        if read is None:
            super().call(of, client, api, request)
        else:
            self.done.append((of, client, api, read(request)))

    def admin(self, action: Mapping[str, Json]) -> None:
        match dict(action):
            case {"create_topic": name, "partitions": count} | {
                "add_partitions": name,
                "partitions": count,
            }:
                self.topics[name] = count
            case {"delete_topic": name}:
                del self.topics[name]
                for group in self.groups.values():
                    for place in [each for each in group.offsets if each[0] == name]:
                        del group.offsets[place]
            case {"restart": True}:
                self.fail_over()

    # --- offsets ---

    def _unknown(self, topic: str, partition: int) -> bool:
        return not 0 <= partition < self.topics.get(topic, 0)

    def commit(self, request: Json) -> Json:
        name = request["group_id"]
        refusal = self._commit_error(self.groups.get(name), request)
        topics = []
        for topic in request["topics"]:
            lines = []
            for each in topic["partitions"]:
                index, text = each["partition_index"], each.get("committed_metadata") or ""
                error = refusal or "NONE"
                if self._unknown(topic["name"], index):
                    error = "UNKNOWN_TOPIC_OR_PARTITION"
                elif refusal is None and len(text) > METADATA_MAX:
                    error = "OFFSET_METADATA_TOO_LARGE"
                if error == "NONE":
                    place = (topic["name"], index)
                    epoch = each.get("committed_leader_epoch", -1)
                    group = self.groups.setdefault(name, Group())
                    group.offsets[place] = (each["committed_offset"], epoch, text)
                lines.append({"partition_index": index, "error_code": error})
            topics.append({"name": topic["name"], "partitions": lines})
        self._commit_is_heard(request, refusal)
        return {"topics": topics}

    def _commit_is_heard(self, request: Json, refusal: str | None) -> None:
        """K-F12."""
        group = self.groups.get(request["group_id"])
        member = group.members.get(request.get("member_id", "")) if group else None
        known = any(
            not self._unknown(topic["name"], each["partition_index"])
            for topic in request["topics"]
            for each in topic["partitions"]
        )
        if member is not None and refusal is None and known:
            self.heard(request["group_id"], member)

    def _commit_error(self, group: Group | None, request: Json) -> str | None:
        """K-J1 to K-J13, K-C8 to K-C11."""
        generation = request.get("generation_id_or_member_epoch", -1)
        if group is None:
            return "GROUP_ID_NOT_FOUND" if generation >= 0 else None
        if generation < 0 and group.state == EMPTY:
            return None
        asked, instance = request.get("member_id", ""), request.get("group_instance_id")
        if generation < 0 and not asked and instance is None:
            return "UNKNOWN_MEMBER_ID"
        error = self.stranger(group, asked, instance)
        if error is None and generation != group.generation:
            error = "ILLEGAL_GENERATION"
        if error is None and group.state == COMPLETING:
            error = "REBALANCE_IN_PROGRESS"
        return error

    def fetch(self, request: Json) -> Json:
        groups = []
        for asked in request["groups"]:
            group = self.groups.get(asked["group_id"], Group())
            places = [
                (topic["name"], index)
                for topic in asked["topics"] or []
                for index in topic["partition_indexes"]
            ]
            topics: dict[str, list[Json]] = {}
            for topic, index in places if asked["topics"] else sorted(group.offsets):
                offset, epoch, text = group.offsets.get((topic, index), (-1, -1, ""))
                line = {
                    "partition_index": index,
                    "committed_offset": offset,
                    "committed_leader_epoch": epoch,
                    "metadata": text,
                    "error_code": "NONE",
                }
                topics.setdefault(topic, []).append(line)
            listed = [{"name": name, "partitions": lines} for name, lines in topics.items()]
            groups.append({"group_id": asked["group_id"], "topics": listed, "error_code": "NONE"})
        return {"groups": groups}

    def delete_offsets(self, request: Json) -> Json:
        """K-J22 to K-J25."""
        group = self.groups.get(request["group_id"])
        if not request["group_id"]:
            return {"error_code": "INVALID_GROUP_ID", "topics": []}
        if group is None:
            return {"error_code": "GROUP_ID_NOT_FOUND", "topics": []}
        if group.state != EMPTY and group.type != "consumer":
            return {"error_code": "NON_EMPTY_GROUP", "topics": []}
        topics = []
        for topic in request["topics"]:
            lines = []
            for each in topic["partitions"]:
                error = self._delete_offset(group, topic["name"], each["partition_index"])
                lines.append({"partition_index": each["partition_index"], "error_code": error})
            topics.append({"name": topic["name"], "partitions": lines})
        return {"error_code": "NONE", "topics": topics}

    def _delete_offset(self, group: Group, topic: str, partition: int) -> str:
        if self._unknown(topic, partition):
            return "UNKNOWN_TOPIC_OR_PARTITION"
        subscribed = self.subscribed(group) if self.ours else group.subscribed  # now, not then
        unknown = subscribed is None and group.type == "consumer"
        if unknown or topic in (subscribed or set()):
            return "GROUP_SUBSCRIBED_TO_TOPIC"
        group.offsets.pop((topic, partition), None)
        return "NONE"

    # --- groups ---

    def describe(self, request: Json) -> Json:
        return {"groups": [self._described(name) for name in request["groups"]]}

    def _described(self, name: str) -> Json:
        group = self.groups.get(name)
        if group is None:
            return {
                "error_code": "GROUP_ID_NOT_FOUND",
                "group_id": name,
                "group_state": "Dead",
                "protocol_type": "",
                "protocol_data": "",
                "members": [],
            }
        stable = group.state == STABLE
        members = [
            {
                "member_id": m.member_id,
                "group_instance_id": m.instance,
                "client_id": m.client,
                "member_metadata": m.metadata(group.protocol) if stable else "",
                "member_assignment": m.assignment,
            }
            for m in group.members.values()
        ]
        return {
            "error_code": "NONE",
            "group_id": name,
            "group_state": group.state,
            "protocol_type": group.type or "",
            "members": members,
            "protocol_data": (group.protocol or "") if stable else "",
        }

    def list_groups(self, request: Json) -> Json:
        """K-K8."""
        states = {each.lower() for each in request.get("states_filter") or []}
        types = {each.lower() for each in request.get("types_filter") or []}
        groups = [
            {
                "group_id": name,
                "protocol_type": group.type or "",
                "group_state": group.state,
                "group_type": "classic",
            }
            for name, group in self.groups.items()
            if (not states or group.state.lower() in states) and (not types or "classic" in types)
        ]
        return {"error_code": "NONE", "groups": groups}

    def delete_groups(self, request: Json) -> Json:
        results = []
        for name in request["groups_names"]:
            group = self.groups.get(name)
            error = "NONE"
            if group is None:
                error = "GROUP_ID_NOT_FOUND"
            elif group.state != EMPTY:
                error = "NON_EMPTY_GROUP"
            else:
                for pending in group.pending:
                    self.cancel(name, "pending", pending)
                del self.groups[name]
            results.append({"group_id": name, "error_code": error})
        return {"results": results}

    # --- failover (K-L3 to K-L6, K-L16, S16) ---

    def fail_over(self) -> None:
        """Another leader: what was parked ends, what is on our log goes on, timers start in full.

        Only as Holdfast has it: Kafka would go back to the last record of each group.
        """
        for name, group in self.groups.items():
            for pending in group.pending:
                self.cancel(name, "pending", pending)
            group.pending.clear()
            self.cancel(name, "owed")
            group.owed.clear()  # who has not synced a stored assignment is known to the old leader
            group.initial = False
            for member in group.members.values():
                self.refuse_join(member.join, "NOT_COORDINATOR", member.member_id)
                self.answer_sync(member.sync, "NOT_COORDINATOR", group)
                member.join = member.sync = None
                member.new = False
                self.cancel(name, "session", member.member_id)
                self.renew(name, member)
            if group.state == PREPARING:
                self.arm(name, "round", "", group.timeout, partial(self.close, name, group))
            elif group.state == COMPLETING:
                group.owed = group.answered & set(group.members)
                self.arm(name, "owed", "", group.longest, partial(self.overdue, name, group))
            if group.state in {COMPLETING, STABLE} and len(group.members) > self.max_size:  # K-I13
                self.arm(name, "size", "", 0, partial(self.rebalance, name, group))

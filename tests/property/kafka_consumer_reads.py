"""The rest of the second coordinator's consumer groups: classic calls, offsets, reads, topics.

Belongs to `kafka_consumer_model`, from which it is kept apart only for its length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from property.kafka_consumer_model import ConsumerModel
from property.kafka_consumer_parts import (
    AWAY,
    UNREVOKED,
    ConsumerGroup,
    Member,
    Partition,
    Refused,
    listed,
)
from property.kafka_parts import Group
from property.kafka_reads import METADATA_MAX

Json = Any


class ConsumerCoordinator(ConsumerModel):
    """The whole model: every call that a transcript has, of groups of either protocol."""

    def call(self, of: int, client: str, api: str, request: Json) -> None:
        group = self.consumers.get(request.get("group_id", ""))
        ours: dict[str, Callable[[Json], Json]] = {
            "ConsumerGroupHeartbeat": partial(self.beat, client),
            "ConsumerGroupDescribe": self.describe_consumers,
        }
        if group is not None:
            ours |= {
                "JoinGroup": partial(self._classic_join, group),
                "SyncGroup": self._classic_sync,
                "Heartbeat": lambda _: {"error_code": "UNKNOWN_MEMBER_ID"},  # K-Q11
                "LeaveGroup": partial(self._batch, group),
                "OffsetCommit": partial(self._commit, group),
                "OffsetDelete": partial(self._delete, group),
            }
        answered = ours[api](request) if api in ours else None
        if answered is None:
            super().call(of, client, api, request)
        else:
            self.done.append((of, client, api, answered))

    # --- classic calls that reach a consumer group ---

    def _classic_join(self, group: ConsumerGroup, request: Json) -> Json:
        """K-M8, K-Q6; K-Q14: an empty group becomes a classic one, and None is answered.

        Its generations go on where the epochs have ended (S13).
        """
        name = request["group_id"]
        if not group.members:
            del self.consumers[name]
            self.groups[name] = Group(generation=group.epoch, offsets=dict(group.offsets))
            return None
        known = request["member_id"] in group.members
        full = not known and len(group.members) >= self.consumers_max
        return {
            "error_code": "GROUP_MAX_SIZE_REACHED" if full else "INCONSISTENT_GROUP_PROTOCOL",
            "generation_id": -1,
            "protocol_type": None,
            "protocol_name": None,
            "leader": "",
            "skip_assignment": False,
            "member_id": request["member_id"],
            "members": [],
        }

    @staticmethod
    def _classic_sync(request: Json) -> Json:
        said = request.get("protocol_type"), request.get("protocol_name")
        error = "INCONSISTENT_GROUP_PROTOCOL" if None in said else "UNKNOWN_MEMBER_ID"
        return {
            "error_code": error,
            "protocol_type": None,
            "protocol_name": None,
            "assignment": "",
        }

    def _batch(self, group: ConsumerGroup, request: Json) -> Json:
        """K-G27, K-G28: an operator removes members."""
        leaving: list[str] = []
        results = []
        for entry in request["members"]:
            asked, instance = entry.get("member_id", ""), entry.get("group_instance_id")
            error = "NONE"
            try:
                member = self._named(group, asked, instance)
                leaving.append(member.member_id)
            except Refused as refused:
                error = str(refused)
            results.append({"member_id": asked, "group_instance_id": instance, "error_code": error})
        if leaving:
            self.remove(request["group_id"], group, list(dict.fromkeys(leaving)))
        return {"error_code": "NONE", "members": results}

    def _named(self, group: ConsumerGroup, asked: str, instance: str | None) -> Member:
        holder = group.holder(instance)
        return self._known(group, asked or (holder.member_id if holder else ""), instance)

    # --- offsets ---

    def _commit(self, group: ConsumerGroup, request: Json) -> Json:
        refusal = self._may_commit(group, request)
        topics = []
        for topic in request["topics"]:
            lines = []
            for each in topic["partitions"]:
                place, text = (topic["name"], each["partition_index"]), each["committed_metadata"]
                error = refusal or "NONE"
                if self._unknown(*place):
                    error = "UNKNOWN_TOPIC_OR_PARTITION"
                elif refusal is None and len(text or "") > METADATA_MAX:
                    error = "OFFSET_METADATA_TOO_LARGE"
                if error == "NONE":
                    epoch = each.get("committed_leader_epoch", -1)
                    group.offsets[place] = (each["committed_offset"], epoch, text or "")
                lines.append({"partition_index": place[1], "error_code": error})
            topics.append({"name": topic["name"], "partitions": lines})
        return {"topics": topics}

    def _may_commit(self, group: ConsumerGroup, request: Json) -> str | None:
        """K-J35 to K-J41; partitions that do not exist are not judged."""
        epoch = request.get("generation_id_or_member_epoch", -1)
        if epoch < 0 and not group.members:
            return None
        member = group.members.get(request.get("member_id", ""))
        if member is None:
            return "UNKNOWN_MEMBER_ID"
        if epoch == member.epoch:
            return None
        places = (
            (topic["name"], each["partition_index"])
            for topic in request["topics"]
            for each in topic["partitions"]
        )
        given = (
            member.holds.get(place, epoch + 1) for place in places if not self._unknown(*place)
        )
        older = epoch < member.epoch and all(since <= epoch for since in given)
        return None if older else "STALE_MEMBER_EPOCH"

    def fetch(self, request: Json) -> Json:
        return {"groups": [self._fetched(asked) for asked in request["groups"]]}

    def _fetched(self, asked: Json) -> Json:
        group = self.consumers.get(asked["group_id"])
        if group is None:
            (only,) = super().fetch({"groups": [asked]})["groups"]
            return only
        error = self._may_fetch(group, asked.get("member_id"), asked.get("member_epoch", -1))
        if error is not None:
            return {"group_id": asked["group_id"], "topics": [], "error_code": error}
        shown = Group(offsets=group.offsets)
        self.groups[asked["group_id"]] = shown
        (only,) = super().fetch({"groups": [asked]})["groups"]
        del self.groups[asked["group_id"]]
        return only

    @staticmethod
    def _may_fetch(group: ConsumerGroup, member_id: str | None, epoch: int) -> str | None:
        """K-J42."""
        if member_id is None and epoch < 0:
            return None
        member = group.members.get(member_id or "")
        if member is None:
            return "UNKNOWN_MEMBER_ID"
        return None if epoch == member.epoch else "STALE_MEMBER_EPOCH"

    def _delete(self, group: ConsumerGroup, request: Json) -> Json:
        """K-J24."""
        topics = []
        for topic in request["topics"]:
            lines = []
            for each in topic["partitions"]:
                error, place = "NONE", (topic["name"], each["partition_index"])
                if self._unknown(*place):
                    error = "UNKNOWN_TOPIC_OR_PARTITION"
                elif topic["name"] in group.wanted():
                    error = "GROUP_SUBSCRIBED_TO_TOPIC"
                else:
                    group.offsets.pop(place, None)
                lines.append({"partition_index": place[1], "error_code": error})
            topics.append({"name": topic["name"], "partitions": lines})
        return {"error_code": "NONE", "topics": topics}

    # --- groups ---

    def describe_consumers(self, request: Json) -> Json:
        return {"groups": [self._consumers(name) for name in dict.fromkeys(request["group_ids"])]}

    def _consumers(self, name: str) -> Json:
        group = self.consumers.get(name)
        return {
            "error_code": "GROUP_ID_NOT_FOUND" if group is None else "NONE",
            "group_id": name,
            "group_state": group.state if group else "",
            "group_epoch": group.epoch if group else 0,
            "assignment_epoch": group.target_epoch if group else 0,
            "assignor_name": group.assignor if group else "",
            "members": [self._shown(group, each) for each in group.members.values()]
            if group
            else [],
        }

    def _shown(self, group: ConsumerGroup, member: Member) -> Json:
        return {
            "member_id": member.member_id,
            "instance_id": member.instance,
            "rack_id": member.rack,
            "member_epoch": member.epoch,
            "client_id": member.client,
            "subscribed_topic_names": sorted(member.names),
            "subscribed_topic_regex": member.regex,
            "assignment": self._existing(member.holds),
            "target_assignment": self._existing(group.target.get(member.member_id, ())),
            "member_type": 1,
        }

    def _existing(self, partitions: Iterable[Partition]) -> Json:
        """Without those of deleted topics, whose names nobody knows any more."""
        return listed(each for each in partitions if each[0] in self.topics)

    def list_groups(self, request: Json) -> Json:
        states = {each.lower() for each in request.get("states_filter") or []}
        types = {each.lower() for each in request.get("types_filter") or []}
        answer = super().list_groups(request)
        answer["groups"] += [
            {
                "group_id": name,
                "protocol_type": "consumer",
                "group_state": group.state,
                "group_type": "consumer",
            }
            for name, group in self.consumers.items()
            if (not states or group.state.lower() in states) and (not types or "consumer" in types)
        ]
        return answer

    def delete_groups(self, request: Json) -> Json:
        """K-K10, K-K12, K-K15."""
        results = []
        for name in request["groups_names"]:
            group = self.consumers.get(name)
            if group is None:
                results += super().delete_groups({"groups_names": [name]})["results"]
                continue
            if not group.members:
                del self.consumers[name]
            error = "NON_EMPTY_GROUP" if group.members else "NONE"
            results.append({"group_id": name, "error_code": error})
        return {"results": results}

    # --- topics, failover ---

    def admin(self, action: Mapping[str, Json]) -> None:
        touched = [
            topic for key, topic in action.items() if key.endswith(("_topic", "_partitions"))
        ]
        for group in self.consumers.values():
            group.stale |= self.ours or not group.wanted().isdisjoint(touched)
        super().admin(action)
        match dict(action):
            case {"create_topic": name}:
                self.made[name] = self.topics_made
                self.topics_made += 1
            case {"delete_topic": name}:
                del self.made[name]
                for group in self.consumers.values():
                    for place in [each for each in group.offsets if each[0] == name]:
                        del group.offsets[place]

    def fail_over(self) -> None:
        """K-L7 to K-L10: all is as it was, and timers start in full."""
        super().fail_over()
        for name, group in self.consumers.items():
            group.stale = True
            self.cancel(name, "regexes")
            self.cancel(name, "target")
            group.computing, group.tries = False, 0
            for member in group.members.values():
                member.knows = False
                self._renew_session(name, member)
                if member.state == UNREVOKED and member.epoch != AWAY:
                    self._watch_revocation(name, member)

"""The core behind the interface of the replayer, on a virtual clock: waiting takes no time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conformance.replayer import Completion
from harness import consumer_json, kafka_json
from harness.core import Core
from holdfast.coordinator.groups.group_type import Fetcher
from holdfast.coordinator.kernel import queries
from holdfast.coordinator.model.commands import (
    Caller,
    CreatePartitions,
    CreateTopics,
    DeleteGroup,
    DeleteTopics,
    FormCluster,
)
from holdfast.coordinator.model.events import SettingChange, TopicSize
from holdfast.coordinator.model.ids import TopicPartition
from holdfast.coordinator.model.levels import LEVEL_MAX
from holdfast.coordinator.model.rejections import Superseded
from holdfast.coordinator.model.replies import (
    ConsumerHeartbeatReply,
    JoinReply,
    NamedReply,
    OffsetsReply,
    Reply,
    SyncReply,
)

Json = Any

BASE_PROFILE = {
    "group.min.session.timeout.ms": "200",
    "group.max.session.timeout.ms": "1800000",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.min.session.timeout.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.assignors": "uniform,range",
    "group.consumer.min.assignment.interval.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
}
STEP_MS = 150
"""What a step took when the transcripts were recorded: 0.1 to 0.25 s."""


def setting(kafka_name: str, value: str) -> SettingChange:
    """A Kafka setting by our name: the first dot stays, the others become underscores."""
    table, _, rest = kafka_name.partition(".")
    return SettingChange(f"{table}.{rest.replace('.', '_')}", value)


def profile(config: Mapping[str, str]) -> list[SettingChange]:
    """A transcript's configuration over the base profile, in our names."""
    return [setting(*each) for each in {**BASE_PROFILE, **config}.items()]


class InProcess:
    """One transcript on a fresh core."""

    def __init__(self, config: Mapping[str, str], topics: Mapping[str, int]) -> None:
        self.core = Core()
        self._sent: dict[int, tuple[int, str, str]] = {}
        self._done: list[Completion] = []
        self._calls = 0
        self.core.submit(FormCluster("c", tuple(profile(config)), LEVEL_MAX))
        sizes = tuple(TopicSize(name, count) for name, count in topics.items())
        if sizes:
            self.core.submit(CreateTopics(self._caller("admin"), sizes))

    def _caller(self, client: str) -> Caller:
        self._calls += 1
        return Caller(self._calls, principal="anonymous", client_id=client)

    async def call(self, of: int, client: str, api: str, request: Json) -> None:
        """Send one request to the core, or ask its state."""
        answer = getattr(self, f"_{api.lower()}", None)
        if answer is not None:
            response = answer(client, request)
            self._done.append(Completion(of, client, api, response))
            return
        caller = self._caller(client)
        self._sent[caller.call] = (of, client, api)
        match api:
            case "JoinGroup":
                fresh = f"{request.get('group_instance_id') or client}-{caller.call:08}"
                self.core.submit(kafka_json.join(request, caller, fresh))
            case "SyncGroup":
                self.core.submit(kafka_json.sync(request, caller))
            case "Heartbeat":
                self.core.submit(kafka_json.heartbeat(request, caller))
            case "LeaveGroup":
                self.core.submit(kafka_json.leave(request, caller))
            case "ConsumerGroupHeartbeat":
                self.core.submit(consumer_json.heartbeat(request, caller))
            case _:
                raise NotImplementedError(api)

    async def settle(self, wanted: frozenset[int]) -> list[Completion]:
        """Let a step's time pass, and collect the answers."""
        del wanted
        self.core.advance(STEP_MS)
        for call in [call for call in self._sent if call in self.core.answers]:
            reply = self.core.answers.pop(call)
            if isinstance(reply, JoinReply | SyncReply) and isinstance(reply.error, Superseded):
                continue  # ends with ABORTED: such a call counts as never answered
            self._done.append(Completion(*self._sent.pop(call), _told(reply)))
        done, self._done = self._done, []
        return done

    @property
    def unanswered(self) -> set[int]:
        """The steps whose call has no answer yet; one that was superseded never gets any."""
        return {of for of, _, _ in self._sent.values()}

    async def wait(self, ms: int) -> None:
        """Let the virtual clock run."""
        self.core.advance(ms)

    async def admin(self, action: Mapping[str, Json]) -> None:
        """Topics, and the change of leader."""
        caller = self._caller("admin")
        match dict(action):
            case {"create_topic": name, "partitions": count}:
                self.core.submit(CreateTopics(caller, (TopicSize(name, count),)))
            case {"add_partitions": name, "partitions": count}:
                self.core.submit(CreatePartitions(caller, (TopicSize(name, count),)))
            case {"delete_topic": name}:
                self.core.submit(DeleteTopics(caller, (name,), force=True))  # Kafka never asks
            case {"restart": True}:
                self.core.fail_over()
            case other:
                raise NotImplementedError(other)

    # --- calls that are answered at once ---

    def _offsetcommit(self, client: str, request: Json) -> Json:
        caller = self._caller(client)
        self.core.submit(kafka_json.commit(request, caller))
        given = self.core.answers.pop(caller.call)
        assert isinstance(given, OffsetsReply)
        if given.error is not None:  # no code of its own: each partition has it (K-J9)
            return {"topics": kafka_json.refused_partitions(request, given.error)}
        return {"topics": kafka_json.partitions(given)}

    def _offsetdelete(self, client: str, request: Json) -> Json:
        caller = self._caller(client)
        self.core.submit(kafka_json.delete_offsets(request, caller))
        given = self.core.answers.pop(caller.call)
        assert isinstance(given, OffsetsReply)
        return {
            "error_code": kafka_json.error_name(given.error),
            "topics": kafka_json.partitions(given),
        }

    def _offsetfetch(self, _client: str, request: Json) -> Json:
        return {"groups": [self._fetched(asked) for asked in request["groups"]]}

    def _fetched(self, asked: Json) -> Json:
        wanted = tuple(
            TopicPartition(topic["name"], index)
            for topic in asked["topics"] or []
            for index in topic["partition_indexes"]
        )
        fetcher = Fetcher(asked["member_id"], asked["member_epoch"])
        refusal = queries.fetch_refusal(self.core.state, asked["group_id"], fetcher)
        if refusal is not None:
            error = kafka_json.error_name(refusal)
            return {"group_id": asked["group_id"], "topics": [], "error_code": error}
        topics: dict[str, list[Json]] = {}
        for each in queries.fetch_offsets(self.core.state, asked["group_id"], wanted):
            line = {
                "partition_index": each.partition.partition,
                "committed_offset": each.offset,
                "committed_leader_epoch": each.leader_epoch,
                "metadata": each.metadata,
                "error_code": "NONE",
            }
            topics.setdefault(each.partition.topic, []).append(line)
        listed = [{"name": name, "partitions": lines} for name, lines in topics.items()]
        return {"group_id": asked["group_id"], "topics": listed, "error_code": "NONE"}

    def _deletegroups(self, client: str, request: Json) -> Json:
        results = []
        for name in request["groups_names"]:
            caller = self._caller(client)
            self.core.submit(DeleteGroup(caller, name))
            given = self.core.answers.pop(caller.call)
            assert isinstance(given, NamedReply)
            error = kafka_json.error_name(given.results[0].error)
            results.append({"group_id": name, "error_code": error})
        return {"results": results}

    def _listgroups(self, _client: str, request: Json) -> Json:
        listed = queries.list_groups(
            self.core.state, request.get("states_filter", []), request.get("types_filter", [])
        )
        groups = [
            {
                "group_id": each.group_id,
                "protocol_type": each.protocol_type,
                "group_state": each.state,
                "group_type": each.group_type,
            }
            for each in listed
        ]
        return {"error_code": "NONE", "groups": groups}

    def _consumergroupdescribe(self, _client: str, request: Json) -> Json:
        found = (
            queries.describe_consumer_group(self.core.state, name)
            for name in dict.fromkeys(request["group_ids"])
        )
        return {"groups": [consumer_json.described(each) for each in found]}

    def _describegroups(self, _client: str, request: Json) -> Json:
        return {"groups": [self._described(name) for name in request["groups"]]}

    def _described(self, name: str) -> Json:
        found = queries.describe_group(self.core.state, name)
        members = [
            {
                "member_id": each.member_id,
                "group_instance_id": each.instance_id,
                "client_id": each.profile.client_id,
                "member_metadata": kafka_json.to_json(each.metadata),
                "member_assignment": kafka_json.to_json(each.assignment),
            }
            for each in found.members
        ]
        return {
            "error_code": kafka_json.error_name(found.error),
            "group_id": name,
            "group_state": found.state,
            "protocol_type": found.protocol_type,
            "protocol_data": found.protocol_data,
            "members": members,
        }


def _told(reply: Reply) -> Json:
    if isinstance(reply, ConsumerHeartbeatReply):
        return consumer_json.reply(reply)
    return kafka_json.reply(reply)

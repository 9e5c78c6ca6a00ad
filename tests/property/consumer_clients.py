"""Clients that follow the heartbeat protocol, more or less: they lose answers, restart, and leave.

The half of a random walk (`consumer_walk`) that gets a group somewhere. What a client is told comes
from the model, and so does what the transcript says.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import Any

from property.kafka_consumer_parts import (
    AWAY,
    JOINING,
    LEAVING,
    ConsumerGroup,
    Partition,
    listed,
    read,
)
from property.kafka_consumer_reads import ConsumerCoordinator
from property.kafka_parts import STEP_MS

Json = Any
CLIENTS = ("a", "b", "c", "d", "e")
TOPICS = {"t": 6, "u": 2}
LATER = ("foo-1", "foo-2", "bar")
"""Topics that are made on the way."""
NAMES = [["t"], ["t"], ["t"], ["t", "u"], ["u"], ["u", "t", "foo-1"], ["bar"]]
REGEXES = ["foo-.*", "t|u", "none", "[a-z]"]
BAD_REGEX = "foo-("


@dataclass
class Process:
    """A client as it sees itself: the epoch that it was told, and what it works on."""

    client: str
    member_id: str
    instance: str | None
    epoch: int = JOINING
    works_on: set[Partition] = field(default_factory=set)
    told: set[Partition] | None = None
    """What it was told to own and has not taken over yet."""
    reported: bool = True
    """Whether the service was told what it works on."""


class Clients:
    """A crowd of clients, and the transcript of what they say.

    `timeless`: no deadline fires, nobody fails over, and no setting differs. `late`: targets are
    computed beside the groups' work.
    """

    def __init__(self, seed: int, *, timeless: bool = False, late: bool = False) -> None:
        self.rng = random.Random(seed)
        rng = self.rng
        self.most = rng.choice([2, 3, 4, 6])
        self.static = rng.choice([0.0, 0.3, 0.9])
        self.assignors: list[str | None] = rng.choice(
            [["range", None], ["uniform"], ["range", "uniform", None]]
        )
        self.by_regex = 0.0 if timeless else rng.choice([0.0, 0.0, 0.4])
        self.timeless = timeless
        self.short = rng.random() < 0.4 and not timeless
        self.fails = rng.random() < 0.4 and not timeless
        self.config = {} if timeless else self._config()
        if late:
            self.config["group.consumer.inline.work"] = "0"
        self.model = ConsumerCoordinator(self.config, TOPICS, ours=True)
        self.processes: list[Process] = []
        self.steps: list[Json] = []
        self._named = 0

    def _config(self) -> dict[str, str]:
        config = {
            "group.consumer.max.size": self.rng.choice(["100", "100", "100", "3"]),
            "group.consumer.assignment.interval.ms": self.rng.choice(["0", "0", "0", "3010"]),
        }
        if self.short:
            config["group.consumer.session.timeout.ms"] = "8000"
        return config

    def _send(self, client: str, api: str, request: Json) -> Json:
        step: Json = {"do": {"client": client, "api": api, "request": request}}
        at = len(self.steps)
        self.model.call(at, client, api, request)
        self._settle(step)
        return next((each["response"] for each in step["completions"] if each["of"] == at), None)

    def _settle(self, step: Json) -> None:
        self.model.advance(STEP_MS)
        done, self.model.done = self.model.done, []
        step["completions"] = [
            {"of": of, "client": client, "api": api, "response": response}
            for of, client, api, response in done
        ]
        self.steps.append(step)
        self._check_owners()

    def _check_owners(self) -> None:
        """The model itself never gives a partition to two members."""
        held = [place for member in self.group.members.values() for place in member.holds]
        assert len(held) == len(set(held)), sorted(held)

    @property
    def group(self) -> ConsumerGroup:
        return self.model.consumers.get("g", ConsumerGroup())

    # --- clients that follow the protocol ---

    def _beat(self, process: Process, extra: Json | None = None) -> None:
        """Send what is due; the answer is heard more often than not."""
        request = {"group_id": "g", "member_id": process.member_id, "member_epoch": process.epoch}
        if process.instance is not None and self.rng.random() < 0.8:
            request["instance_id"] = process.instance
        if not process.reported or self.rng.random() < 0.3:
            request["topic_partitions"] = as_sent(process.works_on)
        request |= extra or {}
        if process.epoch == JOINING:
            request |= self._joining() | (extra or {})
            request |= {"topic_partitions": [], "instance_id": process.instance}
        answer = self._send(process.client, "ConsumerGroupHeartbeat", request)
        process.reported |= "topic_partitions" in request
        if self.rng.random() < 0.9:
            self._hear(process, answer)

    def _hear(self, process: Process, answer: Json) -> None:
        error = answer["error_code"]
        if error in ("FENCED_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID", "GROUP_ID_NOT_FOUND"):
            process.epoch, process.works_on, process.told = JOINING, set(), None
        elif error in ("FENCED_INSTANCE_ID", "UNRELEASED_INSTANCE_ID", "GROUP_MAX_SIZE_REACHED"):
            self.processes.remove(process)
        elif error == "NONE":
            process.epoch = answer["member_epoch"]
            if answer["assignment"] is not None:
                process.told = read(answer["assignment"]["topic_partitions"])

    def _go_on(self) -> None:
        """Let a client take over what it was told, and beat."""
        if not self.processes or (len(self.processes) < 3 and self.rng.random() < 0.3):
            return self._join()
        process = self.rng.choice(self.processes)
        if process.told is not None and self.rng.random() < 0.7:
            process.works_on, process.told, process.reported = process.told, None, False
        return self._beat(process)

    def _joining(self) -> Json:
        rng = self.rng
        regex = rng.choice(REGEXES) if rng.random() < self.by_regex else None
        names = rng.choice(NAMES) if regex is None or rng.random() < 0.3 else None
        return {
            "rack_id": None,
            "rebalance_timeout_ms": rng.choice([3_000, 6_000]) if self.short else 300_000,
            "subscribed_topic_names": names,
            "subscribed_topic_regex": regex,
            "server_assignor": rng.choice(self.assignors),
        }

    def _join(self) -> None:
        if len(self.processes) >= self.most:
            return
        client = self.rng.choice(CLIENTS)
        instance = f"i-{client}" if self.rng.random() < self.static else None
        self._start(client, instance)

    def _start(self, client: str, instance: str | None) -> None:
        self._named += 1
        process = Process(client, f"m-{client}-{self._named}", instance)
        self.processes.append(process)
        self._beat(process)

    def _join_again(self) -> None:
        """K-M9, K-N12: a client lost an answer, or was fenced, and keeps its id."""
        if self.processes:
            process = self.rng.choice(self.processes)
            process.epoch, process.works_on, process.told = JOINING, set(), None
            self._beat(process)

    def _restart(self) -> None:
        """K-N2, K-N6 to K-N9: a static process stops for a while; its next one may come at once."""
        static = [each for each in self.processes if each.instance is not None]
        if not static:
            return
        process = self.rng.choice(static)
        self._say_goodbye(process, AWAY)
        self.processes.remove(process)
        if self.rng.random() < 0.6:
            if self.rng.random() < 0.3:
                again = replace(process, epoch=JOINING, works_on=set(), told=None)
                self.processes.append(again)
                self._beat(again)
            else:
                self._start(process.client, process.instance)

    def _leave(self) -> None:
        """K-M21, K-N17."""
        if self.processes:
            process = self.rng.choice(self.processes)
            self._say_goodbye(process, LEAVING)
            self.processes.remove(process)

    def _say_goodbye(self, process: Process, epoch: int) -> None:
        request = {"group_id": "g", "member_id": process.member_id, "member_epoch": epoch}
        if epoch == AWAY or (process.instance is not None and self.rng.random() < 0.7):
            request["instance_id"] = process.instance
        self._send(process.client, "ConsumerGroupHeartbeat", request)


def as_sent(partitions: set[Partition]) -> Json:
    return listed(partitions)["topic_partitions"]

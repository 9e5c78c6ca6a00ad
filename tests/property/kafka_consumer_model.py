"""The second coordinator's heartbeat protocol (KIP-848), written from the rules alone.

Like `kafka_model`, to which it belongs: slow, mutable and plain, and without any code of
`holdfast.coordinator` but its assignors, which have tests of their own. A heartbeat works on a copy
of its group, which takes the group's place unless the heartbeat is refused.
`ConsumerModel(ours=False)` is Kafka 4.3; `ours=True` adds the decisions by which we differ. A group
with members of both protocols is not here.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

from harness import regexes
from property.kafka_consumer_parts import (
    AWAY,
    JOINING,
    LEAVING,
    STABLE,
    UNREVOKED,
    Assignor,
    ConsumerGroup,
    Member,
    Partition,
    Refused,
    Resolved,
    by_range,
    by_uniform,
    listed,
    read,
)
from property.kafka_consumer_steps import reconcile
from property.kafka_parts import EMPTY
from property.kafka_reads import Coordinator

Json = Any
ASSIGNORS: dict[str, Assignor] = {"uniform": by_uniform, "range": by_range}
REFRESH_MIN_MS, REFRESH_MAX_MS = 10_000, 600_000
"""Regular expressions of a group are looked up again not sooner (K-P5), and not later (K-P8)."""
LATE_MS, TRIES = 217, 3
"""How long a target takes that is computed beside the work, which must fall together with nothing
else; and how many in a row may be overtaken before one is computed at once."""


class ConsumerModel(Coordinator):
    """The rules of heartbeats; groups of the classic protocol are as before."""

    def __init__(self, config: Mapping[str, str], topics: Mapping[str, int], *, ours: bool) -> None:
        super().__init__(config, topics, ours=ours)
        self.session_ms = int(config.get("group.consumer.session.timeout.ms", 45_000))
        self.interval_ms = int(config.get("group.consumer.heartbeat.interval.ms", 5_000))
        self.late = config.get("group.consumer.inline.work") == "0"
        """Targets are computed beside the groups' work: each is there `LATE_MS` later."""
        self.pause_ms = int(config.get("group.consumer.assignment.interval.ms", 0))
        self.consumers_max = int(config.get("group.consumer.max.size", 2**31 - 1))
        self.consumers: dict[str, ConsumerGroup] = {}
        self.made = dict.fromkeys(topics, 0)
        """How many topics had been made before each: a topic that is made again is another one."""
        self.topics_made = 1

    # --- a heartbeat ---

    def beat(self, client: str, request: Json) -> Json:
        try:
            self._check_form(request)
            if request["member_epoch"] < JOINING:
                return self._leave_by_beat(request)
            return self._beat(client, request)
        except Refused as refused:
            return {
                "error_code": str(refused),
                "member_id": None,
                "member_epoch": 0,
                "heartbeat_interval_ms": 0,
                "assignment": None,
            }

    def _beat(self, client: str, request: Json) -> Json:
        name, owned = request["group_id"], read(request.get("topic_partitions"))
        group = self._group(name, request["member_epoch"])
        self._check_room(group, request)
        found = self._speaker(group, request, owned)
        before, member = replace(found), found
        changed = self._take_over(name, group, member, request, client)
        self._retarget(name, group)
        moved = reconcile(group, member, owned, self.topics, changed=changed)
        self._keep(name, group)
        if moved:
            self._watch_revocation(name, member)
        self._renew_session(name, member)
        told = self._is_full(request) or member.owned != before.owned
        return {
            "error_code": "NONE",
            "member_id": member.member_id,
            "member_epoch": member.epoch,
            "heartbeat_interval_ms": self.interval_ms,
            "assignment": listed(member.owned) if told else None,
        }

    @staticmethod
    def _is_full(request: Json) -> bool:
        """K-M14: a join, or a heartbeat with all that a join has."""
        topics = request.get("subscribed_topic_names"), request.get("subscribed_topic_regex")
        return request["member_epoch"] == JOINING or (
            _is_set(request.get("rebalance_timeout_ms"))
            and topics != (None, None)
            and request.get("topic_partitions") is not None
        )

    # --- is it allowed ---

    @staticmethod
    def _check_form(request: Json) -> None:
        """K-M1 to K-M3."""
        epoch, instance = request["member_epoch"], request.get("instance_id")
        empty = "" in (request["group_id"], request["member_id"], instance, request.get("rack_id"))
        if empty or epoch < AWAY or (epoch == AWAY and instance is None):
            raise Refused("INVALID_REQUEST")
        topics = request.get("subscribed_topic_names"), request.get("subscribed_topic_regex")
        lacks = not _is_set(request.get("rebalance_timeout_ms")) or topics == (None, None)
        if epoch == JOINING and (lacks or request.get("topic_partitions") != []):
            raise Refused("INVALID_REQUEST")
        if (request.get("server_assignor") or "range") not in ASSIGNORS:
            raise Refused("UNSUPPORTED_ASSIGNOR")

    def _group(self, name: str, epoch: int) -> ConsumerGroup:
        """A copy of the group; a join makes it, in the place of an empty classic one (K-Q1).

        Its epochs go on where the generations have ended, in which nobody was (S13).
        """
        if name in self.consumers:
            return deepcopy(self.consumers[name])
        classic = self.groups.get(name)
        if epoch != JOINING or (classic is not None and classic.state != EMPTY):
            raise Refused("GROUP_ID_NOT_FOUND")
        if classic is None:
            return ConsumerGroup()
        epoch = max(classic.generation - 1, 1)
        return ConsumerGroup(epoch=epoch, target_epoch=epoch, offsets=dict(classic.offsets))

    def _keep(self, name: str, group: ConsumerGroup) -> None:
        self.consumers[name] = group
        self.groups.pop(name, None)

    def _check_room(self, group: ConsumerGroup, request: Json) -> None:
        """K-M8, K-N22; K-N20 and K-N21 as we have them: a known instance is no new member.

        Kafka looks at this first whatever the epoch is; with us an epoch of nobody is that (K-M7).
        """
        known = request["member_id"] in group.members
        if self.ours:
            known |= group.holder(request.get("instance_id")) is not None
            known |= request["member_epoch"] != JOINING
        if not known and len(group.members) >= self.consumers_max:
            raise Refused("GROUP_MAX_SIZE_REACHED")

    def _speaker(self, group: ConsumerGroup, request: Json, owned: set[Partition] | None) -> Member:
        """The member that a heartbeat is from; a join may make it, or put it in another's place."""
        asked, instance = request["member_id"], request.get("instance_id")
        if request["member_epoch"] == JOINING:
            return self._joiner(group, asked, instance)
        member = self._known(group, asked, instance)
        self._check_epoch(member, request["member_epoch"], owned)
        return member

    def _joiner(self, group: ConsumerGroup, asked: str, instance: str | None) -> Member:
        known, holder = group.members.get(asked), group.holder(instance)
        if known is not None and instance not in (None, known.instance):  # K-H4 as we have it
            raise Refused("INVALID_REQUEST")
        if holder is None:  # K-M9, K-M20, K-N1
            return known or group.members.setdefault(asked, Member(asked, instance))
        if holder.epoch != AWAY:  # K-N11, K-N12
            raise Refused("UNRELEASED_INSTANCE_ID")
        return self._swap(group, holder, asked)

    @staticmethod
    def _known(group: ConsumerGroup, asked: str, instance: str | None) -> Member:
        """K-M7, K-N14 to K-N16, K-M22, K-M23, K-H5."""
        holder = group.holder(instance)
        if instance is not None and holder is not None and holder.member_id != asked:
            raise Refused("FENCED_INSTANCE_ID")
        if asked not in group.members or (instance is not None and holder is None):
            raise Refused("UNKNOWN_MEMBER_ID")
        return group.members[asked]

    @staticmethod
    def _check_epoch(member: Member, epoch: int, owned: set[Partition] | None) -> None:
        """K-M10 to K-M12, K-N10, K-N18."""
        if epoch == member.epoch:
            return
        lost = epoch == member.previous and not member.knows
        fits = owned is not None and owned <= member.owned.keys()
        if epoch > member.epoch or not (lost and fits):
            raise Refused("FENCED_MEMBER_EPOCH")

    @staticmethod
    def _swap(group: ConsumerGroup, old: Member, asked: str) -> Member:
        """K-N6, K-N7: another process has the instance's place, with all that it held."""
        del group.members[old.member_id]
        target = group.target.pop(old.member_id, set())
        new = replace(old, member_id=asked, epoch=JOINING, previous=JOINING)
        group.members[asked], group.target[asked] = new, target
        return new

    # --- what it asks for ---

    def _take_over(
        self, name: str, group: ConsumerGroup, member: Member, request: Json, client: str
    ) -> bool:
        """Take over what the member says of itself; whether its subscription is another one."""
        before, preferred = replace(member), self._assignor_without_news(group, member)
        member.client = client
        for field, key in (
            ("rack", "rack_id"),
            ("regex", "subscribed_topic_regex"),
            ("assignor", "server_assignor"),
        ):
            if request.get(key) is not None:
                setattr(member, field, request[key])
        if _is_set(request.get("rebalance_timeout_ms")):
            member.rebalance = request["rebalance_timeout_ms"]
        if request.get("subscribed_topic_names") is not None:
            member.names = frozenset(request["subscribed_topic_names"])
        raised = member.names != before.names  # K-M16, K-M17, K-M20
        raised |= preferred is not None and preferred != group.assignor  # K-M19
        last = max((each.at for each in group.resolved.values()), default=None)
        raised |= self._new_regex(group, before.regex, member)
        self._look_up_later(name, group, last)
        digest = self._digest(group)
        if raised or (group.stale and digest != group.digest):  # K-M27
            group.epoch += 1
            group.digest = digest
        group.stale = False
        return member.names != before.names or member.regex != before.regex

    @staticmethod
    def _assignor_without_news(group: ConsumerGroup, member: Member) -> str | None:
        """The assignor in force; None if the member is alone, and new."""
        others = [each for each in group.members.values() if each is not member]
        return group.assignor if others or member.names or member.regex else None

    def _new_regex(self, group: ConsumerGroup, old: str, member: Member) -> bool:
        """Whether another regular expression raises the epoch (K-P1, K-P2, K-P6, K-P7)."""
        if member.regex == old:
            return False
        if member.regex and member.regex not in group.resolved and regexes.problem(member.regex):
            raise Refused("INVALID_REGULAR_EXPRESSION")
        self._drop_unused(group)
        return not member.regex or member.regex in group.resolved

    @staticmethod
    def _drop_unused(group: ConsumerGroup) -> None:
        used = group.regexes()
        group.resolved = {each: found for each, found in group.resolved.items() if each in used}

    def _digest(self, group: ConsumerGroup) -> list[tuple[str, int, int]]:
        """K-M27: what the wanted topics look like."""
        wanted = sorted(group.wanted() & self.topics.keys())
        return [(topic, self.made[topic], self.topics[topic]) for topic in wanted]

    # --- regular expressions, looked up in the background ---

    def _look_up_later(self, name: str, group: ConsumerGroup, last: int | None) -> None:
        """K-P1, K-P5, K-P8: find out what matches, unless that was done a moment ago (`last`)."""
        used = group.regexes()
        if not used or (last is not None and self.now <= last + REFRESH_MIN_MS):
            return
        due = (
            used != group.resolved.keys()
            or any(each.made < self.topics_made for each in group.resolved.values())
            or (last is not None and self.now > last + REFRESH_MAX_MS)
        )
        if due:
            asked = sorted(used)
            self.arm(name, "regexes", "", 0, lambda: self._looked_up(name, asked))

    def _looked_up(self, name: str, asked: list[str]) -> None:
        group = self.consumers.get(name)
        if group is None:
            return
        raised = False
        for regex in set(asked) & group.regexes():  # K-P3
            topics = frozenset(regexes.matched(regex, self.topics))
            before = group.resolved.get(regex)
            raised |= topics != (before.topics if before else frozenset())  # K-P4
            group.resolved[regex] = Resolved(topics, self.now, self.topics_made)
            raised |= before is None and group.aims_beyond(regex)
        if raised:
            group.epoch += 1
            group.digest = self._digest(group)

    # --- the target, and the way to it ---

    def _retarget(self, name: str, group: ConsumerGroup, *, overtaken: bool = False) -> None:
        """K-P15 to K-P17; of targets that come late one is computed at a time."""
        waits = group.target_at is not None and self.now - group.target_at < self.pause_ms
        if group.epoch <= group.target_epoch or waits or group.computing:
            return
        target, epoch = ASSIGNORS[group.assignor](group, self.topics), group.epoch
        if not self.late or (overtaken and group.tries >= TRIES):
            self._aim(group, target)
            return
        group.computing, group.tries = True, group.tries + 1
        self.arm(name, "target", "", LATE_MS, lambda: self._computed(name, epoch, target))

    def _aim(self, group: ConsumerGroup, target: dict[str, set[Partition]]) -> None:
        group.target, group.tries = target, 0
        group.target_epoch, group.target_at = group.epoch, self.now

    def _computed(self, name: str, epoch: int, target: dict[str, set[Partition]]) -> None:
        """A target that came late counts if it is still one for this group."""
        group = self.consumers.get(name)
        if group is None or not group.computing:
            return
        group.computing = False
        if not group.members:
            return
        digest = self._digest(group)
        if group.stale and digest != group.digest:  # K-M27
            group.epoch, group.digest = group.epoch + 1, digest
        group.stale = False
        if group.epoch == epoch and group.may_have(target):
            self._aim(group, target)
        else:
            self._retarget(name, group, overtaken=True)

    # --- leaving ---

    def _leave_by_beat(self, request: Json) -> Json:
        name = request["group_id"]
        group = self._group(name, LEAVING)
        member = self._known(group, request["member_id"], request.get("instance_id"))
        if request["member_epoch"] == AWAY:  # K-N2
            member.epoch, member.state, member.revoking = AWAY, STABLE, {}
            member.owned = dict.fromkeys(member.owned, 0)  # K-J41
            self._keep(name, group)
        else:
            self.remove(name, group, [member.member_id])
        return {
            "error_code": "NONE",
            "member_id": member.member_id,
            "member_epoch": request["member_epoch"],
            "heartbeat_interval_ms": 0,
            "assignment": None,
        }

    def remove(self, name: str, group: ConsumerGroup, members: list[str]) -> None:
        """K-M21, K-M24, K-N17, K-G27: the epoch rises once, and no target is computed."""
        for member_id in members:
            del group.members[member_id]
            group.target.pop(member_id, None)
            self.cancel(name, "consumer", member_id)
            self.cancel(name, "revocation", member_id)
        self._drop_unused(group)
        group.epoch += 1
        group.digest = self._digest(group)
        if self.ours and not group.members:  # K-P17 as we have it
            group.target_at = None
        self._keep(name, group)

    # --- timers ---

    def _renew_session(self, name: str, member: Member) -> None:
        """K-M24; K-N3: a goodbye does not come here."""
        member_id = member.member_id
        self.arm(
            *(name, "consumer", member_id, self.session_ms),
            lambda: self._overdue(name, member_id, None),
        )

    def _watch_revocation(self, name: str, member: Member) -> None:
        """K-M25, K-M26."""
        member_id, epoch = member.member_id, member.epoch
        self.cancel(name, "revocation", member_id)
        if member.state == UNREVOKED:
            self.arm(
                *(name, "revocation", member_id, member.rebalance),
                lambda: self._overdue(name, member_id, epoch),
            )

    def _overdue(self, name: str, member_id: str, epoch: int | None) -> None:
        """The session is over, or the revocation takes too long, unless the epoch moved since."""
        group = self.consumers.get(name)
        member = group.members.get(member_id) if group else None
        if group is not None and member is not None and epoch in (None, member.epoch):
            self.remove(name, group, [member_id])


def _is_set(timeout: int | None) -> bool:
    return timeout not in (None, -1)

"""The commands of the stories about groups of the heartbeat protocol, and how these are told.

    topics t=4 u=2             these topics are made
    grow t=6    drop t [force=yes]
    join a [topics=t,u] [regex=fo+] [instance=i1] [assignor=range] [timeout=60s]
    beat a [owned=t0,t1] [epoch=3] [topics=…] [regex=…] [assignor=…] [rack=…] [timeout=1s]
    … [no=4] [life=2]          of join, beat, leave, stop: the fourth heartbeat of the second life
    leave a    stop a [for=10m]   for good (-1), or so that its place is kept (-2), so long
    … [client=own[:1-3[:2[:meta[:reason]]]]]    of join and beat: the assignors that it can run
    prepare a [epoch=2]        asks for what its assignor needs
    install a group=3 a=t0,t1 b=t2[:meta[@2]] [epoch=2] [request=r]    hands a target in
    fail a [group=3] why=text      says that it makes no target; without `group`, got no picture
    commit a t0=7 [epoch=2]
    remove …    advance …    fail-over    set …    sweep     as in the other stories
    show                       the group, its members, and the owner of each partition

`a` is a process and its member id. `t0` is partition 0 of topic `t`. Without `owned`, a beat does
not say what it owns; `owned=` says that it owns nothing. Without `epoch`, it has the last one that
it was told. `own:1-3:2:meta:4` is the assignor `own` of which versions 1 to 3 are understood, with
metadata of version 2 and reason 4; `own` alone has version 0 alone, and says nothing. An answer
that says `computes` says should_compute.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from harness.kafka_json import ERROR_NAMES
from holdfast.coordinator.kernel import queries
from holdfast.coordinator.model.commands import (
    CommitOffsets,
    ConsumerGroupHeartbeat,
    CreatePartitions,
    CreateTopics,
    DeleteTopics,
    InstallAssignment,
)
from holdfast.coordinator.model.consumer_events import MemberTarget
from holdfast.coordinator.model.described import PreparedAssignment, PreparedMember
from holdfast.coordinator.model.events import (
    Event,
    LevelRaised,
    OffsetCommitted,
    PartitionsAdded,
    TopicsCreated,
    TopicsDeleted,
    TopicSize,
)
from holdfast.coordinator.model.ids import TopicPartitions
from holdfast.coordinator.model.member_profile import ClientAssignor
from holdfast.coordinator.model.replies import ConsumerHeartbeatReply, DoneReply, OffsetsReply
from stories.language import GROUP, Teller, milliseconds, tell_reply, words

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.coordinator.model.replies import Reply

UNTOLD = {"profile", "digest", "newest_index", "request_id", "reason"}
UNTOLD |= {"life", "session_timeout_ms"}
_QUIET = (LevelRaised, TopicsCreated, PartitionsAdded, TopicsDeleted)


class HeartbeatTeller(Teller):
    """One story: a core at the newest level, who calls it, and what each caller knows."""

    level = 2

    def __init__(self) -> None:
        super().__init__()
        self._epochs: dict[str, int] = {}

    # --- commands ---

    def _topics(self, options: dict[str, str]) -> list[str]:
        self.core.submit(CreateTopics(self._caller("operator", "topics"), _sizes(options)))
        return self._hush()

    def _grow(self, options: dict[str, str]) -> list[str]:
        self.core.submit(CreatePartitions(self._caller("operator", "grow"), _sizes(options)))
        return self._hush()

    def _drop(self, *arguments: str | dict[str, str]) -> list[str]:
        *names, options = arguments
        caller, force = self._caller("operator", "drop"), "force" in options
        self.core.submit(DeleteTopics(caller, tuple(map(str, names)), force=force))
        return self._hush()

    def _hush(self) -> list[str]:
        self._told |= self.core.answers.keys()
        return []

    def _join(self, name: str, options: dict[str, str]) -> list[str]:
        if "instance" in options:
            self._instances[name] = options["instance"]
        joining = {"epoch": "0", "owned": "", "timeout": "60s", **options}
        return self._beat(name, joining, "join")

    def _beat(self, name: str, options: dict[str, str], api: str = "beat") -> list[str]:
        timeout = options.get("timeout")
        command = ConsumerGroupHeartbeat(
            caller=self._caller(name, api),
            group_id=GROUP,
            member_id=options.get("id", name),
            member_epoch=int(options.get("epoch", self._epochs.get(name, 0))),
            instance_id=self._instance(name, options),
            rack_id=options.get("rack"),
            rebalance_timeout_ms=None if timeout is None else milliseconds(timeout),
            topics=words(options["topics"]) if "topics" in options else None,
            regex=options.get("regex"),
            server_assignor=options.get("assignor"),
            client_assignors=_assignors(options["client"]) if "client" in options else None,
            owned=_places(words(options["owned"])) if "owned" in options else None,
            life=f"life-{options.get('life', '1')}" if "no" in options else "",
            beat=int(options.get("no", 0)),
            absence_ms=milliseconds(options["for"]) if "for" in options else 0,
        )
        return self._tell(self.core.submit(command))

    def _leave(
        self, *arguments: str | dict[str, str], operator: bool = False, everyone: bool = False
    ) -> list[str]:
        if operator or len(arguments) == 1:
            return super()._leave(*arguments, operator=operator, everyone=everyone)
        name, options = arguments
        assert isinstance(options, dict)
        return self._beat(str(name), {"epoch": "-1", **options}, "leave")

    def _stop(self, name: str, options: dict[str, str]) -> list[str]:
        return self._beat(name, {"epoch": "-2", **options}, "stop")

    def _prepare(self, name: str, options: dict[str, str]) -> list[str]:
        epoch = int(options.get("epoch", self._epochs.get(name, 0)))
        found = queries.prepare_assignment(self.core.state, GROUP, name, epoch, "")
        if not isinstance(found, PreparedAssignment):
            return [f"{name} prepare: {ERROR_NAMES[type(found)]}"]
        topics = ",".join(f"{topic}:{size}" for topic, size in found.topics)
        head = f"group={found.group_epoch} {found.assignor} version={found.version} topics={topics}"
        return [f"{name} prepare: NONE {head}", *map(_tell_prepared, found.members)]

    def _install(self, name: str, options: dict[str, str]) -> list[str]:
        epoch = int(options.pop("epoch", self._epochs.get(name, 0)))
        group, request = int(options.pop("group")), options.pop("request", "")
        targets = tuple(_target(*each) for each in options.items())
        caller = self._caller(name, "install", request)
        return self._tell(
            self.core.submit(InstallAssignment(caller, GROUP, name, epoch, group, targets))
        )

    def _fail(self, name: str, options: dict[str, str]) -> list[str]:
        epoch = int(options.get("epoch", self._epochs.get(name, 0)))
        group, caller = int(options.get("group", 0)), self._caller(name, "fail")
        return self._tell(
            self.core.submit(
                InstallAssignment(caller, GROUP, name, epoch, group, (), options["why"])
            )
        )

    def _commit(self, name: str, options: dict[str, str]) -> list[str]:
        epoch = int(options.pop("epoch", self._epochs.get(name, -1)))
        offsets = tuple(
            OffsetCommitted(*_place(place), int(offset), -1, "")
            for place, offset in options.items()
        )
        caller = self._caller(name, "commit")
        member_id = name if name in self._epochs else ""
        command = CommitOffsets(caller, GROUP, epoch, member_id, None, offsets)
        return self._tell(self.core.submit(command))

    def _show(self, _options: dict[str, str]) -> list[str]:
        group = queries.describe_consumer_group(self.core.state, GROUP)
        if group.error is not None:
            return ["no group"]
        head = f"{group.state} epoch={group.group_epoch} target={group.assignment_epoch}"
        lines = []
        for each in group.members:
            owns = _listed(TopicPartitions(p.topic, (p.partition,)) for p in each.owned)
            line = f"  {each.member_id} epoch={each.member_epoch} {each.state} owns {owns}"
            if each.revoking:
                line += f", gives up {_listed(each.revoking)}"
            if each.target != each.assignment:
                line += f", is to own {_listed(each.target)}"
            lines.append(line)
        return [head, *lines]

    # --- telling ---

    def _tell(self, events: tuple[Event, ...]) -> list[str]:
        told = [_tell_event(each) for each in events if not isinstance(each, _QUIET)]
        for call in sorted(self.core.answers.keys() - self._told):
            self._told.add(call)
            name, api = self._calls[call]
            reply = self.core.answers[call]
            self._learn(name, reply)
            told.append(f"{name} {api}: {_tell_reply(reply)}")
        return told

    def _learn(self, name: str, reply: Reply) -> None:
        super()._learn(name, reply)
        if isinstance(reply, ConsumerHeartbeatReply) and reply.error is None:
            self._epochs[name] = max(reply.member_epoch, 0)
            self._member_ids[name] = name


def _sizes(options: dict[str, str]) -> tuple[TopicSize, ...]:
    return tuple(TopicSize(name, int(size)) for name, size in options.items())


def _place(text: str) -> tuple[str, int]:
    """`t0` is partition 0 of topic `t`."""
    topic = text.rstrip("0123456789")
    return topic, int(text.removeprefix(topic))


def _places(texts: Iterable[str]) -> tuple[TopicPartitions, ...]:
    found: dict[str, list[int]] = {}
    for topic, number in sorted(map(_place, texts)):
        found.setdefault(topic, []).append(number)
    return tuple(TopicPartitions(topic, tuple(numbers)) for topic, numbers in found.items())


def _assignors(text: str) -> tuple[ClientAssignor, ...]:
    return tuple(_assignor(*each.split(":")) for each in words(text))


def _assignor(
    name: str, versions: str = "0-0", version: str = "", metadata: str = "", reason: str = "0"
) -> ClientAssignor:
    least, most = map(int, versions.split("-"))
    said = metadata.encode()
    return ClientAssignor(name, least, most, int(reason), int(version or least), said)


def _target(member_id: str, text: str) -> MemberTarget:
    """`t0,t1:meta@2` are two partitions, and what is said beside them, in version 2; else in 1."""
    places, _, said = text.partition(":")
    metadata, _, version = said.partition("@")
    number = int(version or "1") if metadata else 0
    return MemberTarget(member_id, _places(words(places)), number, metadata.encode())


def _tell_prepared(member: PreparedMember) -> str:
    said = member.assignor
    told = f"  {member.member_id} epoch={member.member_epoch} wants {','.join(member.topics)}"
    if said.metadata:
        told += f", says {said.metadata.decode()} in version {said.version}"
    return f"{told}, had {_listed(member.target)}"


def _listed(given: Iterable[TopicPartitions]) -> str:
    return ",".join(f"{t}{number}" for t, numbers in given for number in numbers) or "nothing"


def _targets(targets: tuple[MemberTarget, ...]) -> str:
    return "; ".join(
        f"{each.member_id}: {_listed(each.partitions)}"
        + (f" {each.metadata.decode()}" if each.metadata else "")
        for each in targets
    )


def _tell_event(event: Event) -> str:
    """An event by its name and what it adds to the command."""
    fields = []
    for field in dataclasses.fields(event):
        value = getattr(event, field.name)
        if field.name in UNTOLD or value in (None, "", (), False, 0):
            continue
        fields.append(f"{field.name}={_tell_value(event, field.name, value)}")
    return " ".join([f"* {type(event).__name__}", *fields])


def _tell_value(event: Event, name: str, value: object) -> str:
    match value:
        case (TopicPartitions(), *_):
            return _listed(getattr(event, name))
        case (MemberTarget(), *_):
            return f"[{_targets(getattr(event, name))}]"
        case (OffsetCommitted(), *_):
            return ",".join(f"{o.topic}{o.partition}={o.offset}" for o in getattr(event, name))
        case (str(), *_):
            return ",".join(getattr(event, name))
        case _:
            return str(value)


def _tell_reply(reply: Reply) -> str:
    """An answer in short: the code, and what the caller has to know."""
    if isinstance(reply, OffsetsReply):
        return " ".join(ERROR_NAMES[type(each.error)] for each in reply.partitions)
    if isinstance(reply, DoneReply):
        return ERROR_NAMES[type(reply.error)]
    if not isinstance(reply, ConsumerHeartbeatReply):
        return tell_reply(reply)
    if reply.error is not None:
        return ERROR_NAMES[type(reply.error)]
    told = f"NONE epoch={reply.member_epoch}"
    if reply.assignment is not None:
        owned = [TopicPartitions(p.topic, (p.partition,)) for p in reply.assignment]
        tokens = ",".join(dict.fromkeys(str(p.fencing_token) for p in reply.assignment))
        told += f" owns {_listed(owned)}" + (f" tokens={tokens}" if tokens else "")
    wait_ms = reply.grant.predecessor_ms
    told += f" predecessor={wait_ms}ms" if wait_ms else ""
    if reply.assigned is not None:
        heard = f"{reply.assigned.metadata.decode() or 'nothing'} of"
        told += f" hears {heard} {reply.assigned.assignor or 'no member'}"
    return told + (" computes" if reply.should_compute else "")

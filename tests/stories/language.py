"""The commands of the stories about groups, and how events and answers are told.

    join a [instance=i1] [id=a-1] [session=10s] [rebalance=15s] [protocols=p,q] [topics=t,u]
           [request=r1]
    rejoin a …                 joins with the member id that `a` was told last
    sync a [assign=a-1:x,…] [generation=1]    heartbeat a [generation=1]    release a
    … a instance=              without the instance id that `a` has
    leave a    leave ids=a-1,… instances=i1,…
    remove instances=i1,…    remove prefix=i    remove all
    break a                    the connection of `a`'s parked call breaks
    advance 5s    fail-over    show    set group.max_size=2
    sweep                      the retention check looks at the group

`a` is a process; a service is made of processes that come and go, each with a name of its own.
Member ids are the instance id or the process's name with a number. All is about one group, `g`.
"""

from __future__ import annotations

import dataclasses

from harness.core import Core
from harness.kafka_json import ERROR_NAMES
from holdfast.coordinator.model.commands import (
    AlterSettings,
    CallBroken,
    Caller,
    ExpireOffsets,
    FormCluster,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    LeavingMember,
    SyncGroup,
)
from holdfast.coordinator.model.events import Assigned, Event, Rejoin, SettingChange
from holdfast.coordinator.model.member_profile import Protocol
from holdfast.coordinator.model.rejections import Superseded
from holdfast.coordinator.model.replies import (
    HeartbeatReply,
    JoinReply,
    LeaveReply,
    Reply,
    SyncReply,
)

GROUP = "g"
UNTOLD = {"profile", "protocol_type", "request_id", "reason"}
"""Fields of events that would only repeat the command."""


def milliseconds(text: str) -> int:
    """`15s`, `200ms` or `30min`."""
    for unit, factor in (("ms", 1), ("min", 60_000), ("s", 1000)):
        if text.endswith(unit):
            return round(float(text.removesuffix(unit)) * factor)
    raise ValueError(f"{text!r} is no duration")


def words(text: str) -> tuple[str, ...]:
    return tuple(text.split(",")) if text else ()


class Teller:
    """One story: a core, who calls it, and what each caller knows."""

    level = 1

    def __init__(self) -> None:
        self.core = Core()
        first = (SettingChange("group.initial_rebalance_delay_ms", "0"),)
        self.core.submit(FormCluster("story", first, level=self.level))
        self._told: set[int] = set()
        self._calls: dict[int, tuple[str, str]] = {}
        self._member_ids: dict[str, str] = {}
        self._instances: dict[str, str] = {}
        self._generations: dict[str, int] = {}
        self._numbers: dict[str, int] = {}

    def interpret(self, line: str) -> list[str]:
        """Carry out one line of a story; give the events and answers that it brings about."""
        verb, *rest = line.split()
        options = dict(word.split("=", 1) for word in rest if "=" in word)
        names = [word for word in rest if "=" not in word]
        act = getattr(self, f"_{verb.replace('-', '_')}", None)
        if act is None:
            raise ValueError(f"no such command: {line}")
        told: list[str] = act(*names, options)
        return told

    # --- commands ---

    def _join(self, name: str, options: dict[str, str]) -> list[str]:
        instance_id = options.get("instance") or None
        stem = instance_id or name
        fresh = f"{stem}-{self._numbers.get(stem, 0) + 1}"
        topics = words(options["topics"]) if "topics" in options else None
        names = words(options.get("protocols", "p"))
        protocols = tuple(Protocol(each, f"{each} of {name}".encode(), topics) for each in names)
        if topics is not None:
            protocols = tuple(p._replace(metadata=",".join(topics).encode()) for p in protocols)
        command = JoinGroup(
            caller=self._caller(name, "join", options.get("request", "")),
            group_id=GROUP,
            member_id=options.get("id", ""),
            instance_id=instance_id,
            session_timeout_ms=milliseconds(options.get("session", "10s")),
            rebalance_timeout_ms=milliseconds(options.get("rebalance", "15s")),
            protocol_type="app" if topics is None else "consumer",
            protocols=protocols,
            fresh_member_id=fresh,
        )
        if instance_id is not None:
            self._instances[name] = instance_id
        told = self._tell(self.core.submit(command))
        if any(fresh in line for line in told):
            self._numbers[stem] = self._numbers.get(stem, 0) + 1
        return told

    def _rejoin(self, name: str, options: dict[str, str]) -> list[str]:
        known = {"id": self._member_ids[name]}
        if name in self._instances:
            known["instance"] = self._instances[name]
        return self._join(name, {**known, **options})

    def _sync(self, name: str, options: dict[str, str]) -> list[str]:
        pairs = [each.split(":", 1) for each in words(options.get("assign", ""))]
        command = SyncGroup(
            caller=self._caller(name, "sync"),
            group_id=GROUP,
            generation=self._generation(name, options),
            member_id=self._member_ids[name],
            instance_id=self._instance(name, options),
            protocol_type=options.get("type", "app"),
            protocol_name=options.get("protocol", "p"),
            assignments=tuple(Assigned(member_id, work.encode()) for member_id, work in pairs),
        )
        return self._tell(self.core.submit(command))

    def _heartbeat(self, name: str, options: dict[str, str], *, release: bool = False) -> list[str]:
        command = Heartbeat(
            caller=self._caller(name, "release" if release else "heartbeat"),
            group_id=GROUP,
            generation=self._generation(name, options),
            member_id=self._member_ids[name],
            instance_id=self._instance(name, options),
            release=release,
        )
        return self._tell(self.core.submit(command))

    def _release(self, name: str, options: dict[str, str]) -> list[str]:
        return self._heartbeat(name, options, release=True)

    def _leave(
        self, *arguments: str | dict[str, str], operator: bool = False, everyone: bool = False
    ) -> list[str]:
        *names, options = arguments
        assert isinstance(options, dict)
        own = [(self._member_ids[str(n)], self._instances.get(str(n))) for n in names]
        own += [(member_id, None) for member_id in words(options.get("ids", ""))]
        own += [("", instance_id) for instance_id in words(options.get("instances", ""))]
        who = "operator" if operator else " ".join(map(str, names)) or "somebody"
        command = LeaveGroup(
            caller=self._caller(who, "leave"),
            group_id=GROUP,
            members=tuple(LeavingMember(*each) for each in own),
            operator=operator,
            everyone=everyone,
            prefix=options.get("prefix", ""),
        )
        return self._tell(self.core.submit(command))

    def _remove(self, *arguments: str | dict[str, str]) -> list[str]:
        *names, options = arguments
        return self._leave(options, operator=True, everyone=names == ["all"])

    def _break(self, name: str, _options: dict[str, str]) -> list[str]:
        call = next(c for c in self.core.parked if self._calls[c][0] == name)
        told = self._tell(self.core.submit(CallBroken(GROUP, call)))
        self.core.parked.discard(call)
        return told

    def _advance(self, duration: str, _options: dict[str, str]) -> list[str]:
        return self._tell(self.core.advance(milliseconds(duration)))

    def _fail_over(self, _options: dict[str, str]) -> list[str]:
        self.core.fail_over()
        return self._tell(())

    def _sweep(self, _options: dict[str, str]) -> list[str]:
        return self._tell(self.core.submit(ExpireOffsets(GROUP, self.core.now_ms)))

    def _set(self, options: dict[str, str]) -> list[str]:
        changes = tuple(SettingChange(*each) for each in options.items())
        self.core.submit(AlterSettings(self._caller("operator", "set"), "", changes))
        self._told |= self.core.answers.keys()
        return []

    def _show(self, _options: dict[str, str]) -> list[str]:
        group = self.core.state.groups.get(GROUP)
        if group is None:
            return ["no group"]
        head = f"{group.state} generation={group.generation} leader={group.body.leader or 'nobody'}"
        lines = [
            f"  {m.member_id} holds {m.assignment.decode() or 'nothing'}"
            + (f" predecessor={m.predecessor_ms}ms" if m.predecessor_ms else "")
            + (" released" if m.released else "")
            for m in sorted(group.body.members.values(), key=lambda member: member.joined_seq)
        ]
        return [head, *lines]

    # --- what a caller knows ---

    def _generation(self, name: str, options: dict[str, str]) -> int:
        return int(options.get("generation", self._generations.get(name, -1)))

    def _instance(self, name: str, options: dict[str, str]) -> str | None:
        return options.get("instance", self._instances.get(name)) or None

    # --- telling ---

    def _caller(self, name: str, api: str, request_id: str = "") -> Caller:
        call = len(self._calls) + 1
        self._calls[call] = (name, api)
        return Caller(call, principal="story", client_id=name, request_id=request_id)

    def _tell(self, events: tuple[Event, ...]) -> list[str]:
        told = [tell_event(event) for event in events]
        for call in sorted(self.core.answers.keys() - self._told):
            self._told.add(call)
            name, api = self._calls[call]
            reply = self.core.answers[call]
            self._learn(name, reply)
            told.append(f"{name} {api}: {tell_reply(reply)}")
        return told

    def _learn(self, name: str, reply: Reply) -> None:
        if isinstance(reply, JoinReply) and reply.member_id:
            self._member_ids[name] = reply.member_id
            if reply.error is None:
                self._generations[name] = reply.generation


def tell_event(event: Event) -> str:
    """An event by its name and what it adds to the command."""
    fields = []
    for field in dataclasses.fields(event):
        value = getattr(event, field.name)
        if field.name in UNTOLD or value in (None, "", (), False):
            continue
        fields.append(f"{field.name}={_tell_value(value)}")
    return " ".join([f"* {type(event).__name__}", *fields])


def _tell_value(value: object) -> str:
    match value:
        case Rejoin(member_id=member_id):
            return member_id
        case Assigned(member_id=member_id, assignment=work):
            return f"{member_id}:{work.decode()}"
        case tuple():
            return "[" + ",".join(sorted(map(_tell_value, value))) + "]"
        case _:
            return str(value)


def tell_reply(reply: Reply) -> str:
    """An answer in short: the code, and what the caller has to know."""
    if isinstance(reply, LeaveReply):
        codes = [ERROR_NAMES[type(each.error)] for each in reply.members]
        return " ".join([ERROR_NAMES[type(reply.error)], *codes])
    assert isinstance(reply, JoinReply | SyncReply | HeartbeatReply)
    if isinstance(reply.error, Superseded):
        return "superseded"
    code = ERROR_NAMES[type(reply.error)]
    if isinstance(reply, JoinReply):
        if reply.error is not None:
            return f"{code} id={reply.member_id}" if reply.member_id else code
        members = ",".join(each.member_id for each in reply.members)
        skip = " skip-assignment" if reply.skip_assignment else ""
        given = f" members=[{members}]" if members else ""
        grown = f"{code} generation={reply.generation} id={reply.member_id} leader={reply.leader}"
        return f"{grown}{given}{skip}"
    if isinstance(reply, SyncReply) and reply.error is None:
        grant = reply.grant
        wait = f" predecessor={grant.predecessor_ms}ms" if grant.predecessor_ms else ""
        return f"{code} {reply.assignment.decode() or 'nothing'} token={grant.fencing_token}{wait}"
    return code

"""A group type that does nothing: it answers one call, and says of its groups what a test wants.

It has a body and members of classes of its own, and is all that a new type takes: a package, and a
line in the table, which a test adds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from holdfast.coordinator.groups.group_type import GroupType
from holdfast.coordinator.model.commands import Caller
from holdfast.coordinator.model.described import DescribedBody
from holdfast.coordinator.model.replies import HeartbeatReply
from holdfast.coordinator.model.subscriptions import Subscribed
from holdfast.coordinator.model.volatile import SESSION, DeadlineKey
from holdfast.coordinator.structures.pmap import PMap

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.coordinator.groups.draft import Draft

BUSY, IDLE = "Assigning", "Idle"
"""States that no classic group has."""


class ProbeMember(NamedTuple):
    """A member of the type, unlike any other type's."""

    name: str


class ProbeBody(NamedTuple):
    """What a group of the type has beside its head."""

    note: str = ""
    probes: PMap[str, ProbeMember] = PMap()


@dataclass(frozen=True, slots=True)
class Probe:
    """The type's only call."""

    caller: Caller
    group_id: str


def _answer(draft: Draft, command: Probe) -> None:
    draft.answer(command.caller.call, HeartbeatReply(None))


def _never(*_: object) -> NoReturn:
    raise AssertionError("nobody asked for this")


def probe(**answers: Callable[..., object]) -> GroupType[Draft]:
    """A type that answers as little as it may; `answers` replace what it says."""
    silent: GroupType[Draft] = GroupType(
        name="probe",
        body=ProbeBody,
        member=ProbeMember,
        restore=lambda body, members: body._replace(
            probes=PMap((each.name, each) for each in members)
        ),
        heartbeats=(),
        calls=(Probe,),
        one_shots=(),
        call=_answer,
        refused=lambda _command, error: HeartbeatReply(error),
        one_shot=_never,
        fired=_never,
        call_broken=_never,
        on_leading=lambda draft: draft.arm(DeadlineKey(SESSION, "m"), 1_000),
        follow=lambda volatile, _before, _event: volatile,
        target=lambda state, _event: state,
        evolve=lambda group, _event, _record: group,
        own=lambda group, _member_id, _principal: group,
        check=lambda _group: (),
        check_touched=lambda _before, _group, _member_ids: (),
        members=lambda group: group.body.probes,
        holder=lambda _group, _instance_id: None,
        had_members=lambda _group: False,
        heard=lambda _draft, _command: None,
        session_ms=_never,
        weigh_member=lambda _member: 100,
        growth=_never,
        is_empty=lambda group: group.state == IDLE,
        may_commit=lambda _state, _group, _command: None,
        may_fetch=lambda _group, _fetcher: None,
        expiry_rule=lambda _group: "",
        tells_topics=lambda _group: True,
        subscribed=lambda _group: Subscribed(frozenset({"t"})),
        names=lambda _group, topics: frozenset({"t"}) if "t" in topics else frozenset(),
        describe=lambda _group: DescribedBody(),
        describe_member=_never,
        seniority=_never,
        identify=_never,
        held=_never,
    )
    return replace(silent, **answers)  # type: ignore[arg-type]  # each fits its field

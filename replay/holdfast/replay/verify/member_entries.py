"""What members say of themselves, and what groups are as a whole, as keys and values.

For comparison with `sql.members` and `sql.heads`; what says nothing is not told. Runs in Spark's
workers, and imports no Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from holdfast.coordinator.classic.state import ClassicBody
from holdfast.coordinator.classic.state import Member as ClassicMember
from holdfast.coordinator.classic.transitions import COMPLETING, PREPARING
from holdfast.coordinator.consumer.state import CONSUMER, ConsumerBody
from holdfast.coordinator.consumer.state import Member as ConsumerMember
from holdfast.coordinator.model.member_profile import ClientAssignor, Protocol
from holdfast.coordinator.model.state import Group
from holdfast.replay.read.log_rows import Entry


def entries_of(group: Group[Any]) -> Iterator[Entry]:
    """Yield what the group is, and what its members say, without what they own."""
    yield Entry("version", "", f"{group.version}:{group.seq}")
    beats = group.group_type == CONSUMER
    head = _consumer_head(group.body) if beats else _classic_head(group)
    yield from _said("", {**head, "predecessors": _number(group.body.predecessors_until_ms)})
    for member in group.body.members.values():
        own = _consumer(member) if beats else _classic(member)
        yield from _said(member.member_id, {**_of_any(member), **own})


def _said(key: str, told: dict[str, str]) -> Iterator[Entry]:
    return (Entry(kind, key, value) for kind, value in told.items() if value)


def _number(value: int) -> str:
    return str(value) if value else ""


def _unless(value: str, nothing: str) -> str:
    return "" if value == nothing else value


def _classic_head(group: Group[ClassicBody]) -> dict[str, str]:
    body, phase = group.body, group.state in {PREPARING, COMPLETING}
    opened = f"{str(body.initial).lower()}:{body.round_timeout_ms}"
    return {
        "head": group.state,
        "since": str(group.state_since_ms) if phase else "",
        "protocol type": body.protocol_type or "",
        "chosen": body.protocol_name or "",
        "leader": body.leader or "",
        "rejoined": ",".join(body.rejoined),
        "join phase": _unless(opened, "false:0"),
    }


def _consumer_head(body: ConsumerBody) -> dict[str, str]:
    found = f"{body.regexes_ms}:{body.regexes_index}"
    return {
        "target time": _unless(str(body.target_ms), "-1"),
        "digest": body.digest.hex(),
        "expressions": _unless(found, "-1:0"),
    }


def _of_any(member: ClassicMember | ConsumerMember) -> dict[str, str]:
    profile = member.profile
    replaced = f"{','.join(member.replaced_requests)}|{member.replaced_life}"
    return {
        "client": f"{profile.client_id}|{profile.client_host}",
        "joined": f"{member.joined_seq}:{member.since_ms}",
        "principal": member.principal,
        "predecessor": _number(member.predecessor_ms),
        "replaced": _unless(replaced, "|"),
    }


def _classic(member: ClassicMember) -> dict[str, str]:
    profile = member.profile
    return {
        "timeouts": f"{profile.session_timeout_ms}:{profile.rebalance_timeout_ms}",
        "protocols": _protocols(profile.protocols),
        "request id": member.request_id,
        "released": "released" if member.released else "",
        "abandoned": member.abandoned.hex(),
    }


def _consumer(member: ConsumerMember) -> dict[str, str]:
    profile, classic = member.profile, member.classic
    session_ms = classic.session_timeout_ms if classic else 0
    times = (member.session_timeout_ms, member.unhurried_until_ms, member.absence_ms)
    return {
        "timeouts": f"{session_ms}:{profile.rebalance_timeout_ms}",
        "protocols": _protocols(classic.protocols if classic else ()),
        "request id": classic.request_id if classic else "",
        "place": _unless(f"{profile.rack_id or ''}|{profile.server_assignor}", "|"),
        "client assignors": _assignors(profile.client_assignors),
        "beat": _unless(f"{member.life}:{member.beat}", ":0"),
        "session": _unless(":".join(map(str, times)), "0:0:0"),
    }


def _protocols(several: Iterable[Protocol]) -> str:
    return ";".join(
        f"{each.name}:{each.metadata.hex()}:{','.join(each.topics or ())}" for each in several
    )


def _assignors(several: Iterable[ClientAssignor]) -> str:
    return ";".join(
        ":".join((each.name, *map(str, each[1:-1]), each.metadata.hex())) for each in several
    )

"""The program of the child process that computes a target, and the lines in which it is spoken to.

As a program: reads a group from its standard input, and writes the target to its standard output.
A line for each member, so that the node can write and read them in slices of its loop; JSON, since
member ids may be any text. Members that want the same topics share a list. It imports little: a
child of low priority may take a second for each import. Knows the assignors.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from holdfast.coordinator.consumer.assignors import ASSIGNORS
from holdfast.coordinator.model.ids import TopicPartitions
from holdfast.coordinator.model.member_profile import GroupSpec, MemberSpec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holdfast.coordinator.model.effects import ComputeTarget
    from holdfast.coordinator.model.ids import MemberId, TopicName

    Owned = tuple[TopicPartitions, ...]


def question(asked: ComputeTarget) -> Iterator[bytes]:
    """Yield the lines that say what a target is to be computed of: the head, then each member."""
    places: dict[int, int] = {}
    wanted: list[list[TopicName]] = []
    for member in asked.spec.members.values():
        if id(member.topics) not in places:
            places[id(member.topics)] = len(wanted)
            wanted.append(sorted(member.topics))
    yield _line([asked.assignor, asked.spec.homogeneous, dict(asked.sizes), wanted])
    for member_id, member in asked.spec.members.items():
        place = places[id(member.topics)]
        yield _line([member_id, member.instance_id, member.rack_id, place, member.current])


def answer(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines of the target that a question asks for: each member that owns something."""
    head, *rest = [json.loads(line) for line in lines]
    assignor, homogeneous, sizes, wanted = head
    sets = [frozenset(topics) for topics in wanted]
    members = {
        member_id: MemberSpec(instance_id, rack_id, sets[place], _read(current))
        for member_id, instance_id, rack_id, place, current in rest
    }
    found = ASSIGNORS[assignor](GroupSpec(members, homogeneous), sizes)
    for member_id, owned in found.items():
        if owned:
            yield _line([member_id, owned])


def read_member(line: str) -> tuple[MemberId, Owned]:
    """Read a line of a target."""
    member_id, owned = json.loads(line)
    return member_id, _read(owned)


def _line(content: object) -> bytes:
    return json.dumps(content).encode() + b"\n"


def _read(lists: Iterable[tuple[TopicName, Iterable[int]]]) -> Owned:
    return tuple([TopicPartitions(topic, tuple(numbers)) for topic, numbers in lists])


if __name__ == "__main__":
    sys.stdout.buffer.writelines(answer(sys.stdin.buffer))

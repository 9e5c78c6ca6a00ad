"""A group is a head and a body of its type, on disk as in memory: also of a type that comes later.

`state.proto` is extended here by what such a type adds to it: a message for its bodies in the oneof
of `GroupState`, and one for its members in that of `StateRecord`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool

from harness.probe_type import ProbeBody, ProbeMember, probe
from holdfast.coordinator.classic.state import ClassicBody, Member
from holdfast.coordinator.kernel.group_types import TYPES
from holdfast.coordinator.model.ids import TopicPartition
from holdfast.coordinator.model.member_profile import MemberProfile
from holdfast.coordinator.model.state import Group, Offset, State
from holdfast.coordinator.structures.pmap import PMap
from holdfast.storage.codec.event_codec import CodecError, StateItem, encode_state
from holdfast.storage.codec.state_image import changes, digest_of, restore
from holdfast.storage.codec.state_shapes import StateShapes
from holdfast.v1 import events_pb2, extras_pb2, state_pb2

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor

SHAPES = "holdfast.storage.codec.event_codec._STATE"
TEXT, MESSAGE = FieldDescriptorProto.TYPE_STRING, FieldDescriptorProto.TYPE_MESSAGE


def proto(file: FileDescriptorProto, message: str, field: str) -> None:
    """Add a message with one field, a text."""
    file.message_type.add(name=message).field.add(
        name=field, number=1, type=TEXT, label=FieldDescriptorProto.LABEL_OPTIONAL
    )


def in_oneof(file: FileDescriptorProto, holder: str, name: str, message: str) -> None:
    """Add a message to the oneof of another one."""
    (found,) = (each for each in file.message_type if each.name == holder)
    (place,) = (i for i, each in enumerate(found.oneof_decl) if each.name == "body")
    found.field.add(
        name=name,
        number=100,
        type=MESSAGE,
        label=FieldDescriptorProto.LABEL_OPTIONAL,
        type_name=f".holdfast.v1.{message}",
        oneof_index=place,
    )


def extended(*, members: bool = True) -> Descriptor:
    """StateRecord of a `state.proto` that knows the probe's bodies, and its members."""
    pool = DescriptorPool()
    for known in (extras_pb2, events_pb2):
        pool.AddSerializedFile(known.DESCRIPTOR.serialized_pb)
    file = FileDescriptorProto.FromString(state_pb2.DESCRIPTOR.serialized_pb)
    proto(file, "ProbeGroupState", "note")
    proto(file, "ProbeMemberState", "name")
    in_oneof(file, "GroupState", "probe", "ProbeGroupState")
    if members:
        in_oneof(file, "StateRecord", "probe_member", "ProbeMemberState")
    pool.AddSerializedFile(file.SerializeToString())
    return pool.FindMessageTypeByName("holdfast.v1.StateRecord")


OFFSETS = PMap[TopicPartition, Offset]({TopicPartition("t", 0): Offset(5, -1, "", 0)})
CREW = Member("m", "i", MemberProfile("c", "/h", 1, 2, ()), "", 1, 0)
CLASSIC = ClassicBody("p", "r", "m", PMap({"m": CREW}), PMap({"i": "m"}))
PROBED = ProbeBody("epoch 7", PMap({"x": ProbeMember("x"), "y": ProbeMember("y")}))
GROUPS: dict[str, Group[Any]] = {
    "old": Group("old", "classic", CLASSIC, offsets=OFFSETS),
    "new": Group("new", "probe", PROBED, state="Assigning", generation=7, offsets=OFFSETS),
}
STATE = State("c", groups=PMap(GROUPS))


@pytest.fixture
def _probed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The type's line in the table, and its messages."""
    monkeypatch.setitem(TYPES, "probe", probe())
    monkeypatch.setattr(SHAPES, StateShapes(TYPES, extended()))


def contents(before: State, after: State) -> list[bytes]:
    return [c.content for c in changes(before, after) if c.content is not None]


@pytest.mark.source("it replaces the shapes of the codec")
@pytest.mark.usefixtures("_probed")
def test_groups_of_two_types_are_stored_and_restored() -> None:
    """S18: with members of two classes, each in records of their own."""
    stored = contents(State(), STATE)

    assert restore(stored) == STATE
    assert len(stored) == 1 + (1 + 1 + 1) + (1 + 2 + 1), "the cluster; group, members, offset"
    assert digest_of(restore(stored)) == digest_of(STATE)


@pytest.mark.source("it replaces the shapes of the codec")
@pytest.mark.usefixtures("_probed")
def test_a_change_of_a_member_costs_its_record_alone() -> None:
    """S18: whatever type its group is of."""
    group = STATE.groups["new"]
    grown = group._replace(body=ProbeBody("epoch 7", group.body.probes.set("z", ProbeMember("z"))))
    after = STATE._replace(groups=STATE.groups.set("new", grown))

    assert len(contents(STATE, after)) == 3, "the cluster, the group, the member"


@pytest.mark.source("it replaces the shapes of the codec")
@pytest.mark.usefixtures("_probed")
def test_members_of_another_type_than_their_group_are_refused() -> None:
    probed = State(groups=PMap({"g": Group("g", "probe", ProbeBody())}))
    member = encode_state(StateItem(("g", "m"), CREW))

    with pytest.raises(CodecError, match="members of another type than group 'g'"):
        restore([*contents(State(), probed), member])


def test_a_type_without_messages_is_found_at_once() -> None:
    """Else a node would find out when the first group of the type is stored."""
    types = {**TYPES, "probe": probe()}
    with pytest.raises(TypeError, match=r"GroupState has no body 'probe': add it, then ./dev"):
        StateShapes(types, state_pb2.StateRecord.DESCRIPTOR)
    with pytest.raises(TypeError, match=r"StateRecord has no body 'probe_member': add it, then"):
        StateShapes(types, extended(members=False))


@pytest.mark.source("it replaces the shapes of the codec")
def test_a_group_of_a_type_that_is_not_known_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """S6: a node that does not know the type cannot serve the group, nor pass it on."""
    monkeypatch.setitem(TYPES, "probe", probe())
    with monkeypatch.context() as patch:
        patch.setattr(SHAPES, StateShapes(TYPES, extended()))
        stored = contents(State(), STATE)
    with pytest.raises(CodecError, match="a group of type 'probe', which this version does not"):
        restore(stored)

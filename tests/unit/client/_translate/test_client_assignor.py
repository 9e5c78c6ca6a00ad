"""What an assignor of a program says of itself, gets, and gives: checked before it is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from holdfast.client import ClientAssignor, GroupMember, Member, Targets, sync
from holdfast.client._session.session_io import SaidByAssignor
from holdfast.client._translate.client_assignor import (
    ASSIGNORS_MAX,
    read_picture,
    said_by,
    write_targets,
)
from holdfast.v1 import extras_pb2, group_pb2

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NOWHERE = "127.0.0.1:1"
GIVEN: dict[str, Any] = {"group": "g", "topics": ["t"]}
PICTURE = group_pb2.PrepareAssignmentResponse(
    group_epoch=4,
    assignor_name="a",
    assignor_version=3,
    members=[
        group_pb2.PrepareAssignmentResponseMember(
            member_id="m-1",
            member_epoch=2,
            instance_id="i-1",
            rack_id="r",
            topic_list=1,
            assignor=extras_pb2.ClientAssignor(
                name="a",
                minimum_version=1,
                maximum_version=3,
                version=2,
                metadata=b"x",
                reason=5,
            ),
            topic_partitions=[group_pb2.ConsumerGroupTopicPartitions(topic="t", partitions=[0, 2])],
        ),
        group_pb2.PrepareAssignmentResponseMember(member_id="m-2"),
    ],
    topics=[
        group_pb2.PrepareAssignmentResponseTopic(name="t", num_partitions=3),
        group_pb2.PrepareAssignmentResponseTopic(name="u", num_partitions=1),
    ],
    topic_lists=[
        group_pb2.PrepareAssignmentResponseTopicList(),
        group_pb2.PrepareAssignmentResponseTopicList(topics=[0, 1]),
    ],
)


class Plain(ClientAssignor):
    """One that says nothing but its name."""

    name = "a"

    def __init__(self, **said: Any) -> None:  # noqa: ANN401 - as wrong as can be
        for attribute, value in said.items():
            setattr(self, attribute, value)

    def assign(
        self, members: Sequence[GroupMember], partition_counts: Mapping[str, int]
    ) -> Targets:
        raise NotImplementedError


def test_what_it_says_by_itself_and_all_that_it_can_say() -> None:
    full = Plain(name="b", versions=(1, 3), version=2, metadata=b"x", reason=127)
    assert said_by([full, Plain()]) == (
        SaidByAssignor("b", 1, 3, 2, b"x", 127),
        SaidByAssignor("a", 0, 0, 0, b"", 0),
    )


@pytest.mark.parametrize(
    ("said", "words"),
    [
        *(({"name": name}, "name of a client assignor") for name in ("", None, 7, "ä" * 128)),
        *(
            ({"versions": versions}, "versions of client assignor 'a'")
            for versions in (None, (0,), (1, 0), (-1, 0), (0, 32_768), ("0", 1), (False, True))
        ),
        *(({"version": version}, "versions of client assignor 'a'") for version in (1, -1, "0")),
        *(({"reason": reason}, "reason of client") for reason in (-1, 128, True, None)),
    ],
)
def test_what_the_service_would_refuse_is_refused_when_the_member_is_made(
    said: dict[str, Any], words: str
) -> None:
    for shell in (Member, sync.Member):
        with pytest.raises(ValueError, match=words):
            shell(NOWHERE, protocol="consumer", client_assignors=[Plain(**said)], **GIVEN)


@pytest.mark.parametrize("given", [None, 7, [Plain], ["a"], [object()], Plain()])
def test_what_is_no_assignor_is_refused(given: Any) -> None:  # noqa: ANN401 - as wrong as can be
    """A class is none; neither is one of the classic protocol."""
    with pytest.raises(TypeError, match="client_assignors"):
        Member(NOWHERE, protocol="consumer", client_assignors=given, **GIVEN)


def test_names_are_distinct_and_there_are_no_more_than_the_service_takes() -> None:
    with pytest.raises(ValueError, match="more than one of the name 'a'"):
        said_by([Plain(), Plain()])
    many = [Plain(name=f"a-{number}") for number in range(ASSIGNORS_MAX + 1)]
    with pytest.raises(ValueError, match=f"at most {ASSIGNORS_MAX}"):
        said_by(many)
    assert len(said_by(many[1:])) == ASSIGNORS_MAX
    with pytest.raises(TypeError, match="metadata of client assignor 'a' is bytes"):
        said_by([Plain(metadata="x")])


def test_an_assignor_sees_members_with_their_targets_until_now_and_what_they_say() -> None:
    members, counts = read_picture(PICTURE)
    assert counts == {"t": 3, "u": 1}
    assert members == (
        GroupMember(
            member_id="m-1",
            topics=frozenset({"t", "u"}),
            instance_id="i-1",
            owned={"t": (0, 2)},
            generation=2,
            rack_id="r",
            metadata=b"x",
            version=2,
            versions=(1, 3),
            reason=5,
        ),
        GroupMember(member_id="m-2", topics=frozenset(), generation=0),
    )


def test_a_target_says_partitions_and_metadata_in_the_newest_version_that_all_understand() -> None:
    targets = Targets({"m-1": {"t": [2, 0], "u": []}}, {"m-1": b"x", "m-2": b"y"})
    first, second = write_targets(targets, PICTURE)
    assert [(each.topic, list(each.partitions)) for each in first.topic_partitions] == [
        ("t", [2, 0])
    ]
    assert (first.member_id, first.version, first.metadata) == ("m-1", 3, b"x")
    assert (second.member_id, list(second.topic_partitions), second.metadata) == ("m-2", [], b"y")
    (older,) = write_targets(Targets({}, {"m-1": b"x"}, version=1), PICTURE)
    assert older.version == 1

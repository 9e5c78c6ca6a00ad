"""`on_acknowledged` gets every change that was confirmed, with its position, and nothing else."""

from holdfast.client._translate.acknowledged import Acknowledged, acknowledged
from holdfast.v1 import admin_pb2, extras_pb2, group_pb2

RECORDED = extras_pb2.ResponseExtras(position=extras_pb2.Position(index=7, ordinal=2))
ID = extras_pb2.RequestExtras(request_id="id-1")


def test_a_change_of_a_group_is_known_by_its_id_and_position() -> None:
    request = group_pb2.JoinGroupRequest(group_id="g", holdfast=ID)
    response = group_pb2.JoinGroupResponse(holdfast=RECORDED)
    assert acknowledged(request, response) == Acknowledged("id-1", "g", "JoinGroup", 7, 2)


def test_a_change_of_no_group_has_an_empty_one() -> None:
    request = admin_pb2.CreateTopicsRequest(holdfast=ID)
    response = admin_pb2.CreateTopicsResponse(holdfast=RECORDED)
    assert acknowledged(request, response) == Acknowledged("id-1", "", "CreateTopics", 7, 2)


def test_an_answer_without_a_position_confirms_nothing() -> None:
    """A refusal or a read leaves no record that could be looked for."""
    request = group_pb2.JoinGroupRequest(group_id="g", holdfast=ID)
    assert acknowledged(request, group_pb2.JoinGroupResponse()) is None


def test_a_request_without_an_id_cannot_be_found_again() -> None:
    request = group_pb2.JoinGroupRequest(group_id="g")
    assert acknowledged(request, group_pb2.JoinGroupResponse(holdfast=RECORDED)) is None

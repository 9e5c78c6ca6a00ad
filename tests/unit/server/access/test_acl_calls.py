"""What is shown of grants, however many there are."""

import pytest

from holdfast.coordinator.model.access import (
    ACLS_MAX,
    GROUP,
    NAME_LENGTH_MAX,
    READER,
    Acl,
)
from holdfast.coordinator.model.state import State
from holdfast.coordinator.structures.pmap import PMap
from holdfast.server.access.acl_calls import AclCalls
from holdfast.server.access.gate import Gate
from holdfast.server.rpc.errors import CallFailed
from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import extras_pb2 as x


def test_grants_that_no_answer_can_hold_are_refused_with_what_to_do() -> None:
    """A client takes 16 MiB; grants with the longest names that are allowed take 20 MB."""
    name = "\N{GRINNING FACE}" * (NAME_LENGTH_MAX - 4)
    acls = [Acl(f"{number:04}", READER, GROUP, name) for number in range(ACLS_MAX)]
    state = State(acls=PMap((acl, acl) for acl in acls))
    calls = AclCalls(Gate(lambda: state))

    with pytest.raises(CallFailed, match="name one principal"):
        calls.described(state, a.DescribeAclsRequest(), "root", x.ResponseExtras())
    request = a.DescribeAclsRequest(principal="0007")
    (shown,) = calls.described(state, request, "root", x.ResponseExtras()).acls
    assert shown.principal == "0007"


def test_a_call_that_is_none_is_answered_with_the_near_one_and_all_that_there_are() -> None:
    calls = AclCalls(Gate(State))
    request = a.TestAclRequest(principal="root", call="Joingroup")

    told = calls.tested(State(), request, "root", x.ResponseExtras()).holdfast.message

    assert told.startswith("there is no call 'Joingroup'. Did you mean JoinGroup? There are: ")
    assert "AddNode, " in told
    assert "Watch" in told

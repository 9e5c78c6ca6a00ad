"""Rules of groups whose members speak both protocols, that no transcript shows (K-Q, K-N13).

Against the core alone: the second coordinator has no such groups. A classic member rejoins with
nothing in its hands, as an eager one does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.talk import Shown, Told, refused

if TYPE_CHECKING:
    from conformance.conftest import Start
    from conformance.talk import Talk

Json = Any
T0_T1: Json = {"assigned_partitions": [{"topic": "t", "partitions": [0, 1]}]}
T = {"t": 2}


class Classic:
    """A member of the classic protocol, of type `consumer`, in group `g`."""

    def __init__(self, talk: Talk, client: str, instance: str | None = None) -> None:
        self.talk, self.client, self.instance = talk, client, instance
        self.id, self.generation = "", -1

    def join(
        self, *, kind: str = "consumer", protocol: str = "range", session: int = 600_000
    ) -> str:
        """Join, with a second step if the service asks for it; the error, or PARKED."""
        request = {
            "group_id": "g",
            "session_timeout_ms": session,
            "rebalance_timeout_ms": 5_000,
            "member_id": self.id,
            "group_instance_id": self.instance,
            "protocol_type": kind,
            "protocols": [{"name": protocol, "metadata": {"topics": ["t"], "version": 1}}],
        }
        answers = self.talk.all_of(self.client, "JoinGroup", request)
        mine = [each.response for each in answers if each.of == self.talk.at]
        if not mine:
            return "PARKED"
        (answer,) = mine
        if answer["error_code"] == "MEMBER_ID_REQUIRED":
            self.id = answer["member_id"]
            return self.join(kind=kind, protocol=protocol, session=session)
        if answer["error_code"] == "NONE":
            self.id, self.generation = answer["member_id"], answer["generation_id"]
        return str(answer["error_code"])

    def sync(self, given: Json = None) -> Json:
        """The assignment, or the error; `given`: what it assigns to itself as a leader."""
        work = [] if given is None else [{"member_id": self.id, "assignment": given}]
        answer = self.talk.call(
            self.client,
            "SyncGroup",
            {
                **self._said(),
                "protocol_type": "consumer",
                "protocol_name": "range",
                "assignments": work,
            },
        )
        return answer["assignment"] if answer["error_code"] == "NONE" else answer["error_code"]

    def beat(self, **other: Json) -> str:
        answer = self.talk.call(self.client, "Heartbeat", {**self._said(), **other})
        return str(answer["error_code"])

    def _said(self) -> Json:
        return {
            "group_id": "g",
            "generation_id": self.generation,
            "member_id": self.id,
            "group_instance_id": self.instance,
        }


def classic_group(talk: Talk, assignment: Json = T0_T1, instance: str | None = None) -> Classic:
    """A Stable classic group of one member that owns all of topic `t`, at generation 1."""
    member = Classic(talk, "x", instance)
    assert member.join() == "NONE"
    assert member.sync(assignment) == assignment
    return member


def owned(assignment: Json) -> list[int]:
    """The partitions of `t` in an assignment that the coordinator wrote."""
    topics = assignment["assigned_partitions"] if assignment else []
    return [number for each in topics for number in each["partitions"]]


def test_q2_q9_a_classic_group_is_converted_and_its_member_gives_half(start_core: Start) -> None:
    """The generation is its epoch; nobody gets what the classic member still works on."""
    talk = start_core(T)
    x = classic_group(talk)

    assert talk.join("~a") == Told(2, "")
    assert talk.group() == Shown("Reconciling", 2, 2)
    assert x.beat() == "REBALANCE_IN_PROGRESS"
    assert talk.beat("~a", 2) == Told(2)
    assert x.join() == "NONE"
    assert (x.generation, owned(x.sync())) == (2, [0])
    assert talk.beat("~a", 2) == Told(2, "t1")
    assert x.beat() == "NONE"


def test_q2_parked_calls_end_when_the_group_is_converted(start_core: Start) -> None:
    talk = start_core(T)
    x = classic_group(talk)
    y = Classic(talk, "y", "i-y")
    assert y.join() == "PARKED"

    answered = talk.all_of("~a", "ConsumerGroupHeartbeat", joining(talk))

    errors = {each.client: each.response["error_code"] for each in answered}
    assert errors == {"~a": "NONE", "y": "REBALANCE_IN_PROGRESS"}
    assert x.beat() == "REBALANCE_IN_PROGRESS"


def joining(talk: Talk) -> Json:
    ids = {"group_id": "g", "member_id": "~a", "member_epoch": 0, "topic_partitions": []}
    return {**ids, **talk.whole("t")}


def test_q3_a_group_whose_assignments_nobody_can_read_is_not_converted(
    start_core: Start,
) -> None:
    """Else a partition could get two owners."""
    talk = start_core(T)
    x = classic_group(talk, "some-bytes")

    assert talk.join("~a") == refused("GROUP_ID_NOT_FOUND")
    assert x.beat() == "NONE"


def test_q3_a_group_is_not_converted_where_the_settings_forbid_it(start_core: Start) -> None:
    talk = start_core(T, {"group.consumer.migration.policy": "downgrade"})
    x = classic_group(talk)

    assert talk.join("~a") == refused("GROUP_ID_NOT_FOUND")
    assert x.beat() == "NONE"


def test_q3_m30_a_group_of_another_type_is_not_converted(start_core: Start) -> None:
    talk = start_core(T)
    Classic(talk, "x", "i-x").join(kind="app")

    assert talk.join("~a") == refused("GROUP_ID_NOT_FOUND")
    assert talk.beat("~a", 2) == refused("GROUP_ID_NOT_FOUND")


def test_q4_a_static_member_takes_its_own_place_with_the_new_protocol(
    start_core: Start,
) -> None:
    talk = start_core(T)
    classic_group(talk, instance="i1")

    assert talk.join("a", instance_id="i1").owned == "t0 t1"
    assert set(talk.members()) == {"a"}


def test_q5_a_classic_member_joins_a_consumer_group(start_core: Start) -> None:
    talk = start_core(T)
    talk.join("~a")
    x = Classic(talk, "x")

    assert x.join() == "NONE"
    assert x.generation == 3
    assert owned(x.sync()) == []
    talk.beat("~a", 2)
    talk.beat("~a", 2, "t1")
    assert x.beat() == "REBALANCE_IN_PROGRESS"
    assert x.join() == "NONE"
    assert owned(x.sync()) == [0]


def test_q7_n13_instances_change_the_protocol_without_a_goodbye(start_core: Start) -> None:
    """A classic process cannot say that it stops, so neither direction waits for it."""
    talk = start_core(T)
    talk.join("a")
    talk.join("b", instance_id="i1")
    x = Classic(talk, "x", "i1")

    assert x.join() == "NONE"
    assert set(talk.members()) == {"a", x.id}
    assert talk.beat("b", 3, instance_id="i1") == refused("FENCED_INSTANCE_ID")
    assert talk.join("c", instance_id="i1").error == "NONE"
    assert set(talk.members()) == {"a", "c"}
    assert x.beat() == "FENCED_INSTANCE_ID"


def test_q10_a_classic_member_that_does_not_rejoin_in_time_is_removed(
    start_core: Start,
) -> None:
    talk = start_core(T)
    x = classic_group(talk)
    talk.join("~a")
    assert x.beat() == "REBALANCE_IN_PROGRESS"
    talk.wait(5_500)

    assert set(talk.members()) == {"~a"}
    assert talk.beat("~a", 2) == Told(3, "t0 t1")


def test_q11_classic_calls_are_judged_as_ever(start_core: Start) -> None:
    talk = start_core(T)
    talk.join("~a")
    x = Classic(talk, "x", "i1")
    x.join()

    assert x.beat(generation_id=1) == "ILLEGAL_GENERATION"
    assert x.beat(member_id="ghost") == "FENCED_INSTANCE_ID"
    assert x.beat(member_id="ghost", group_instance_id=None) == "UNKNOWN_MEMBER_ID"
    assert x.beat(member_id="~a", group_instance_id=None) == "UNKNOWN_MEMBER_ID"


def test_q12_the_last_member_of_the_heartbeat_protocol_leaves(start_core: Start) -> None:
    """The group is a classic one again, and its members rejoin."""
    talk = start_core(T)
    x = classic_group(talk)
    talk.join("~a")
    assert x.join() == "NONE"
    assert (x.generation, owned(x.sync())) == (2, [0])
    talk.leave("~a")

    assert talk.described()["error_code"] == "GROUP_ID_NOT_FOUND"
    assert x.beat() == "REBALANCE_IN_PROGRESS"
    assert x.join() == "NONE"
    assert x.sync(T0_T1) == T0_T1
    assert x.beat() == "NONE"


def test_q13_too_many_classic_members_stay_in_a_consumer_group(start_core: Start) -> None:
    talk = start_core(T, {"group.max.size": "2"})
    talk.join("~a")
    for client in ("x", "y", "z"):
        assert Classic(talk, client, f"i-{client}").join() == "NONE"

    talk.leave("~a")

    assert talk.group().state != "Empty"
    assert len(talk.members()) == 3

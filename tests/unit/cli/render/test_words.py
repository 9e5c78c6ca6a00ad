"""What the command prints: rebalances in words, times, and plain data for programs."""

from __future__ import annotations

import pytest

from holdfast.cli.commands.offset_calls import Place, lacking, select
from holdfast.cli.render import describing, explain
from holdfast.cli.render.plain import plain
from holdfast.cli.render.times import Now, ago, ago_log
from holdfast.coordinator.model.text import span
from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import extras_pb2 as x
from holdfast.v1 import log_pb2 as lg
from holdfast.v1 import offset_pb2 as o
from holdfast.v1.errors_pb2 import ErrorCode

NOW_MS = 1_700_000_060_000
BEHIND_MS = 3_600_000
NOW = Now(log_ms=NOW_MS - BEHIND_MS, wall_ms=NOW_MS)
"""After a failover: log time is an hour behind the clocks, because the cluster was idle (S8)."""


def removal() -> a.DescribedRebalance:
    return a.DescribedRebalance(
        reason="node retired",
        rule="G23",
        command="LeaveGroup",
        principal="ops",
        member_id="w-2-x",
        group_instance_id="w-2",
        client_id="worker",
        wall_time_ms=NOW_MS - 60_000,
        log_time_ms=NOW_MS - BEHIND_MS - 60_000,
        join_phase_ms=700,
        assigned_after_ms=1_200,
        from_generation_id=4,
        generation_id=5,
        members=4,
        gone=2,
        changes=[a.RebalanceChange(name=name, how="removed") for name in ("w-2", "w-3")],
        partitions_compared=True,
        moved=4,
        moves=[
            a.RebalanceMove(topic="t", partition=n, before="w-2", after="w-0") for n in (6, 7, 9)
        ]
        + [a.RebalanceMove(topic="t", partition=8, before="w-3", after="w-1")],
    )


def test_a_rebalance_is_explained() -> None:
    assert list(explain.lines(removal(), NOW)) == [
        "2023-11-14T22:13:20Z (1 min ago): generation 4 -> 5 in 1.2 s",
        "  why: w-2, w-3 removed by operator ops (rule G23): node retired",
        "  members: 4 before; removed w-2, w-3",
        "  moved: 4 partitions to another owner",
        "    w-2 -> w-0: t 6-7,9",
        "    w-3 -> w-1: t 8",
    ]


def test_a_rebalance_without_wall_time_is_told_by_its_age_alone() -> None:
    told = removal()
    told.wall_time_ms = 0
    begun = "1 min ago: "
    assert explain.headline(told, NOW).startswith(begun)


def test_what_is_not_listed_is_counted() -> None:
    told = removal()
    told.gone, told.moved = 40, 100
    text = "\n".join(explain.lines(told, NOW))

    assert "w-2, w-3 and 38 more removed" in text
    assert "38 more came or went" in text
    assert "and 96 partitions more" in text


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("B1", "w-2 (client worker, principal ops) joined the group (rule B1): node retired"),
        ("F9", "the session of w-2 (client worker, principal ops) ended"),
        ("operator", "operator ops asked for it: node retired"),
        ("Z9", "w-2 (client worker, principal ops) (rule Z9)"),
    ],
)
def test_every_cause_has_words_also_one_of_a_newer_service(rule: str, words: str) -> None:
    told = removal()
    told.rule = rule
    assert words in explain.why(told)


def test_a_rebalance_under_way_says_so() -> None:
    told = removal()
    told.ClearField("join_phase_ms")
    told.ClearField("assigned_after_ms")
    assert "members are joining" in explain.headline(told, NOW)
    assert explain.moved(told) == "nothing was assigned yet"


def test_opaque_assignments_tell_members() -> None:
    told = removal()
    told.partitions_compared, told.reassigned = False, 1
    told.reassigned_names.append("w-0")
    assert explain.moved(told) == "1 member with another assignment: w-0"


def test_a_member_that_is_not_heard_is_noted_with_the_time_left() -> None:
    """K-H1: a static binding that lingers after a downgrade."""
    extras = a.DescribedGroupMemberExtras(session_timeout_ms=45_000, session_left_ms=12_000)
    silent = a.DescribedGroupMember(member_id="m", group_instance_id="w-2", holdfast=extras)
    assert describing._note(silent, "") == "not heard for 33 s, expires in 12 s"
    silent.holdfast.session_left_ms = 40_000
    assert describing._note(silent, "m") == "group leader"


def test_a_described_group_shows_to_whom_each_member_belongs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A client's name is its own choice, and its principal is proved; of level 1 none is known."""
    known = a.DescribedGroupMember(member_id="m", client_id="indexer", client_host="/::1")
    known.holdfast.principal = "jwt:ops"
    older = a.DescribedGroupMember(member_id="n", client_id="indexer", client_host="/::1")
    describing.show(
        a.DescribeGroupsResponse(groups=[a.DescribedGroup(group_id="g", members=[known, older])])
    )

    head, *rows = (line.split() for line in capsys.readouterr().out.splitlines()[2:])
    assert [row[head.index("PRINCIPAL")] for row in rows] == ["jwt:ops", "-"]


@pytest.mark.parametrize(
    ("ms", "words"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1_200, "1.2 s"),
        (59_999, "59 s"),
        (65_000, "1 min 5 s"),
        (3_600_000, "1 h"),
        (90_000_000, "1 d 1 h"),
        (-5, "0 ms"),
    ],
)
def test_spans_are_words(ms: int, words: str) -> None:
    assert span(ms) == words


def test_a_moment_is_iso_and_age() -> None:
    assert ago(1_700_000_000_000, NOW_MS) == "2023-11-14T22:13:20Z (1 min ago)"


def test_a_moment_of_log_time_is_told_by_its_age_alone() -> None:
    """It falls behind the clocks after a failover, so nobody may take it for wall time (S8)."""
    assert ago_log(1_700_000_000_000, NOW_MS) == "1 min ago"


def test_plain_data_has_numbers_hex_and_names() -> None:
    """A program must not have to know that protobuf writes 64-bit numbers as text."""
    response = a.DescribeClusterResponse(
        term=7, applied_index=1 << 53, digest=b"\x00\xff", nodes=[a.DescribedNode(name="n")]
    )
    data = plain(response)

    assert (data["term"], data["applied_index"], data["digest"]) == (7, 1 << 53, "00ff")
    assert data["error_code"] == "NONE"
    assert data["nodes"][0] == {
        "name": "n",
        "client_address": "",
        "peer_address": "",
        "role": "",
        "version": "",
        "level_min": 0,
        "level_max": 0,
        "standing": "",
        "caught_up": False,
        "streaming": False,
        "connected": False,
    }
    assert "holdfast" not in data


def test_plain_data_has_every_field_of_every_kind() -> None:
    response = a.DescribeGroupsResponse(
        groups=[
            a.DescribedGroup(
                error_code=ErrorCode.ERROR_CODE_GROUP_ID_NOT_FOUND,
                error_message="gone",
                holdfast=a.DescribedGroupExtras(rebalances=[removal()]),
            )
        ],
        holdfast=x.ResponseExtras(log_time_ms=5),
    )
    (group,) = plain(response)["groups"]

    assert (group["error_code"], group["error_message"]) == ("GROUP_ID_NOT_FOUND", "gone")
    assert group["holdfast"]["rebalances"][0]["moves"][0]["partition"] == 6
    assert plain(lg.ReadEventsResponse(records=[]))["records"] == []


def test_a_place_is_written_as_it_is_given() -> None:
    assert str(Place("t", 3)) == "t:3"


OFFSETS = {
    Place(topic, number): o.OffsetFetchResponsePartition(partition_index=number)
    for topic, number in (("t", 0), ("t", 1), ("u", 0))
}


@pytest.mark.parametrize(
    ("named", "chosen"),
    [
        ((), ["t:0", "t:1", "u:0"]),
        (("t",), ["t:0", "t:1"]),
        (("t:0", "t:1"), ["t:0", "t:1"]),
        (("t:0", "t"), ["t:0", "t:1"]),
        (("t:0,1", "u:0"), ["t:0", "t:1", "u:0"]),
    ],
)
def test_what_is_named_adds_up(named: tuple[str, ...], chosen: list[str]) -> None:
    """A partition that is named and left out in silence keeps an offset that should be gone."""
    assert [str(place) for place in select(OFFSETS, named)] == chosen
    assert lacking(OFFSETS, named) == []


def test_what_is_named_and_not_there_is_told() -> None:
    assert lacking(OFFSETS, ("t:0,7", "typo", "typo:3", "u")) == ["t:7", "typo", "typo:3"]

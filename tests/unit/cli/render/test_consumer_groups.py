"""A group of the heartbeat protocol on the terminal: who owns what, and who waits for whom."""

from __future__ import annotations

import pytest

from holdfast.cli.render import consumer_groups
from holdfast.cli.render.times import Now
from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import group_pb2 as g

NOW = Now(log_ms=60_000, wall_ms=60_000)


def owning(*numbers: int) -> g.ConsumerGroupAssignment:
    """Partitions of the topic `t`."""
    topic = g.ConsumerGroupTopicPartitions(topic="t", partitions=numbers)
    return g.ConsumerGroupAssignment(topic_partitions=[topic] if numbers else [])


def shown(
    capsys: pytest.CaptureFixture[str], **group: object
) -> tuple[list[str], list[dict[str, str]]]:
    """The lines above the table, and its rows by column."""
    consumer_groups.show([a.ConsumerGroupDescribedGroup(**group)], NOW)  # type: ignore[arg-type]  # its fields
    lines = capsys.readouterr().out.splitlines()
    if len(lines) <= 2:
        return lines, []
    head = lines[2]
    columns = head.split()
    starts = [head.index(column) for column in columns]
    ends = [*starts[1:], None]
    rows = [
        {c: line[s:e].strip() for c, s, e in zip(columns, starts, ends, strict=True)}
        for line in lines[3:]
    ]
    return lines[:2], rows


def test_a_group_on_its_way_shows_who_gives_up_and_who_waits(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """K-O3, K-O8: the one with what it was asked for; the other with what it is to own."""
    gives = a.ConsumerGroupDescribedMember(
        member_id="m1",
        instance_id="i1",
        client_id="indexer",
        client_host="/::1",
        member_epoch=2,
        assignment=owning(0, 1, 2, 3),
        target_assignment=owning(0, 1),
    )
    gives.holdfast.revoking.CopyFrom(owning(2, 3))
    gives.holdfast.principal = "svc"
    waits = a.ConsumerGroupDescribedMember(
        member_id="m2", client_id="indexer", member_epoch=3, target_assignment=owning(2, 3)
    )
    waits.holdfast.state = "unreleased"

    head, (first, second) = shown(
        capsys,
        group_id="g",
        group_state="Reconciling",
        group_epoch=3,
        assignment_epoch=3,
        assignor_name="uniform",
        members=[gives, waits],
    )

    assert head == [
        "g: Reconciling, epoch 3",
        "heartbeat protocol, target of epoch 3, assignor uniform, 2 members",
    ]
    assert (first["OWNS"], first["TARGET"]) == ("t 0-3", "t 0-1")
    assert (first["PRINCIPAL"], first["NOTE"]) == ("svc", "has to give up t 2-3")
    assert (second["INSTANCE"], second["OWNS"], second["TARGET"]) == ("-", "-", "t 2-3")
    assert second["NOTE"] == "waits for t 2-3 of i1"


@pytest.mark.parametrize(("behind", "empty"), [(False, 1), (True, 2)])
def test_an_empty_line_stands_between_groups(
    capsys: pytest.CaptureFixture[str], *, behind: bool, empty: int
) -> None:
    """Also between them and those of the classic protocol."""
    groups = [a.ConsumerGroupDescribedGroup(group_id=name) for name in ("g", "h")]
    consumer_groups.show(groups, NOW, behind=behind)

    assert capsys.readouterr().out.splitlines().count("") == empty


def test_a_target_that_is_behind_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """Assigning: nobody has computed the newest yet."""
    (_, facts), rows = shown(
        capsys, group_id="g", group_state="Assigning", group_epoch=4, assignment_epoch=3
    )

    assert "target of epoch 3, which is not the newest" in facts
    assert not rows


def test_a_member_that_restarts_is_noted(capsys: pytest.CaptureFixture[str]) -> None:
    """K-N2: its place is kept."""
    away = a.ConsumerGroupDescribedMember(member_id="m", client_id="c", client_host="h")
    away.member_epoch, away.holdfast.released = -2, True

    _, (row,) = shown(capsys, group_id="g", group_state="Reconciling", members=[away])

    assert (row["EPOCH"], row["NOTE"]) == ("-2", "restarting")


def test_who_waits_for_nobody_any_more_takes_the_rest_by_itself(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """K-O5: what it waited for is free, and its own next heartbeat grants it."""
    waits = a.ConsumerGroupDescribedMember(member_id="m", assignment=owning(0))
    waits.target_assignment.CopyFrom(owning(0, 1))
    waits.holdfast.state = "unreleased"

    _, (row,) = shown(capsys, group_id="g", group_state="Reconciling", members=[waits])

    assert row["NOTE"] == "takes the rest with its next heartbeat"


def test_the_member_that_is_to_compute_the_target_is_noted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """KIP-848: the group is Assigning until it has."""
    chosen = a.ConsumerGroupDescribedMember(member_id="m")
    chosen.holdfast.should_compute = True

    _, (row,) = shown(capsys, group_id="g", group_state="Assigning", members=[chosen])

    assert row["NOTE"] == "is to compute the target"


def test_an_assignor_that_is_not_used_is_named_with_its_versions(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """KIP-848: all must share one; a name with a mistake in it is seen nowhere else."""
    first = a.ConsumerGroupDescribedMember(member_id="m")
    first.holdfast.client_assignors.add(name="near", maximum_version=2)
    none = a.ConsumerGroupDescribedMember(member_id="n")

    _, rows = shown(capsys, group_id="g", assignor_name="uniform", members=[first, none])
    assert [row["NOTE"] for row in rows] == ["can run near 0-2, which not all members share", ""]
    _, (row,) = shown(capsys, group_id="g", assignor_name="near", members=[first])
    assert row["NOTE"] == ""


def told(
    capsys: pytest.CaptureFixture[str], group: a.ConsumerGroupDescribedGroup
) -> tuple[list[str], list[str]]:
    """The lines of `describe` without members, and those of `explain`."""
    consumer_groups.show([group], NOW)
    described = capsys.readouterr().out.splitlines()
    consumer_groups.explain_epochs(group, NOW)
    return described, capsys.readouterr().out.splitlines()


def test_partitions_that_an_assignor_left_out_are_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """ADR 53, 7: they are nobody's, and no process would say so."""
    group = a.ConsumerGroupDescribedGroup(group_id="g", assignor_name="near")
    group.holdfast.left_out.CopyFrom(owning(0, 1, 2, 5))
    line = "nobody owns t 0-2,5: the assignor left them out"

    described, explained = told(capsys, group)
    assert described[2] == line
    assert explained[-1] == line


def test_adr58_an_assignor_for_which_the_group_is_too_large_is_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """All members share it: the note at each that they do not would be untrue."""
    member = a.ConsumerGroupDescribedMember(member_id="m")
    member.holdfast.client_assignors.add(name="near")
    group = a.ConsumerGroupDescribedGroup(group_id="g", assignor_name="uniform", members=[member])
    group.holdfast.passed_over = "near"
    line = (
        "assignor near is of all members, and none of them computes: the group is too large for "
        "it, so uniform of the service does"
    )

    described, explained = told(capsys, group)
    assert described[2] == line
    assert "not all members share" not in described[-1]
    assert explained[-1] == line


def test_a_group_without_any_of_this_has_no_line_for_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    described, _ = told(capsys, a.ConsumerGroupDescribedGroup(group_id="g"))
    assert len(described) == 2

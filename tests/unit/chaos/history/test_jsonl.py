"""The history on disk: nothing is lost on the way, and nothing damaged is taken for whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.chaos.history import happenings as h
from holdfast.chaos.history.jsonl import HistoryDamaged, Writer, line_of, read, write
from unit.chaos.scribe import Scribe

EVERY: list[h.Happening] = [
    h.Began(0, h.FORMAT, "simulation", ("n1", "n2"), 0.1, {"seed": 7}),
    h.Invoked(1, 1, "w1", "JoinGroup", "g", {"member_id": "", "topics": ["t"]}),
    h.Returned(2, 1, "ok", "", {"position": [3, 0], "member_id": "ä\n"}),
    h.Granted(3, "w1", "g", "a", "i", 1, (("t", 0), ("u", 1)), 1 << 49, 500, 9),
    h.Granted(3, "w1", "g", "a", "i", 2, (("t", 0), ("u", 2)), 1 << 50, 0, 9, (1 << 49, 1 << 50)),
    h.Renewed(4, "w1", "g", "a", 12),
    h.Surrendered(5, "w1", "g", "a", "revoked"),
    h.Wrote(6, "w1", "g", "t", 0, 5, accepted=True),
    h.Recorded(7, 3, 0, 1, "g", 1, "GroupCreated", 99, ("r1", "r2"), {"a": [None, {}]}, "00ff"),
    h.Applied(8, "n1", 3, "ab", "install"),
    h.Role(9, "n1", "leader", 2),
    h.WatchOpened(10, "x", "", 0, 0),
    h.Watched(11, "x", 3, 0, 1, "g", "GroupCreated"),
    h.WatchGap(12, "x"),
    h.NodesChanged(12, "n1", 7, 2, ("n1", "n2"), ("n3",), ()),
    h.Fault(13, "pause", "n1", "begin", {"for_ms": 5}),
    h.Phase(14, "healing"),
]


def test_every_kind_of_happening_is_tried() -> None:
    assert {type(each) for each in EVERY} == set(h.Happening.__args__)


def test_a_history_comes_back_as_it_was_written(tmp_path: Path) -> None:
    write(tmp_path / "whole", EVERY)
    with Writer(tmp_path / "bit by bit") as writer:
        for each in EVERY:
            writer.write(each)

    assert read(tmp_path / "whole") == EVERY
    assert [type(each) for each in read(tmp_path / "bit by bit")] == [type(each) for each in EVERY]
    assert (tmp_path / "whole").read_bytes() == (tmp_path / "bit by bit").read_bytes()


def test_a_line_is_whole_as_soon_as_it_is_written(tmp_path: Path) -> None:
    """Whoever writes may be killed at any moment."""
    writer = Writer(tmp_path / "x")
    writer.write(EVERY[0])

    assert read(tmp_path / "x") == EVERY[:1]
    writer.close()


def test_what_was_left_out_has_its_default(tmp_path: Path) -> None:
    text = line_of(EVERY[9]).replace(',"via":"install"', "")
    (tmp_path / "x").write_text(text)

    assert read(tmp_path / "x") == [h.Applied(8, "n1", 3, "ab", "live")]


def test_a_grant_of_version_0_1_had_one_token_for_all_its_partitions(tmp_path: Path) -> None:
    """Its members were eager, so the line names no tokens; it reads as it was meant."""
    text = line_of(EVERY[3]).replace(',"tokens":[]', "")
    (tmp_path / "x").write_text(text)

    (grant,) = read(tmp_path / "x")

    assert isinstance(grant, h.Granted)
    assert list(grant.shares) == [("t", 0, 1 << 49), ("u", 1, 1 << 49)]


@pytest.mark.parametrize("number", range(len(EVERY)), ids=lambda n: type(EVERY[n]).__name__)
def test_a_line_that_was_cut_off_anywhere_is_refused(number: int, tmp_path: Path) -> None:
    line = line_of(EVERY[number])
    for end in range(1, len(line)):
        (tmp_path / "x").write_text(line[:end])
        with pytest.raises(HistoryDamaged, match="line 1"):
            read(tmp_path / "x")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("[]", "not an object"),
        ("{}", "unknown type None"),
        ('{"type":"Gone","at_us":1}', "unknown type 'Gone'"),
        ('{"type":[],"at_us":1}', "unknown type"),
        ('{"type":"WatchGap","at_us":1}', "WatchGap lacks 'watch'"),
        ('{"type":"WatchGap","at_us":1,"watch":"x","y":1}', "WatchGap has no field 'y'"),
        ('{"type":"WatchGap","at_us":"1","watch":"x"}', "WatchGap.at_us is '1', not of type int"),
        ('{"type":"WatchGap","at_us":true,"watch":"x"}', "WatchGap.at_us is True"),
        ('{"type":"Phase","at_us":1,"name":"later"}', "is 'later', not one of safety, healing"),
        (line_of(EVERY[3]).replace('[["t",0]', '[["t"]'), "in place of 2 values"),
        (line_of(EVERY[3]).replace('[["t",0]', "[3"), "in place of 2 values"),
        (line_of(EVERY[4]).replace('"tokens":[', '"tokens":[5,'), "tokens has 3 values for 2"),
        (line_of(EVERY[0]).replace('["n1","n2"]', "7"), "not a list"),
        (line_of(EVERY[0]).replace('"format":1', '"format":2'), "written in format 2"),
        ("\udcff", "not JSON"),
    ],
)
def test_a_damaged_line_is_refused_with_its_number_and_reason(
    line: str, why: str, tmp_path: Path
) -> None:
    text = line_of(EVERY[0]) + "\n" + line + "\n"
    (tmp_path / "x").write_text(text, encoding="utf-8", errors="surrogateescape")

    with pytest.raises(HistoryDamaged, match="line 2") as caught:
        read(tmp_path / "x")
    assert why in str(caught.value)


def test_time_that_runs_back_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "x", [EVERY[6], EVERY[5]])

    with pytest.raises(HistoryDamaged, match="line 2: 4 us after 5 us"):
        read(tmp_path / "x")


def test_what_several_wrote_is_merged_by_time() -> None:
    assert h.in_order([*EVERY[9:], *EVERY[:9]]) == EVERY


def test_a_scribes_history_survives_the_disk(tmp_path: Path) -> None:
    s = Scribe()
    s.create()
    s.stable({"a.1": [0], "b": [1]})
    write(tmp_path / "x", s.history)

    assert read(tmp_path / "x") == s.history

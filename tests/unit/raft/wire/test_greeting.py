"""Greetings: complete, bounded, open to later versions; and which versions run together."""

from __future__ import annotations

import pytest

from holdfast.raft.api import BadMessage, Build
from holdfast.raft.wire import peer_pb2 as pb
from holdfast.raft.wire.bounds import TEXT_MAX
from holdfast.raft.wire.greeting import (
    BYTES_MAX,
    OURS,
    OVER_GRPC,
    Greeting,
    Versions,
    common_protocol,
    decode_answer,
    decode_greeting,
    encode_answer,
    encode_greeting,
    encode_refusal,
    version_problem,
)

GREETING = Greeting(
    "größer", "b", "a", Versions(3, 5, 7, Build("0.2.0", 2, 4), level=3), "segments"
)


def test_what_is_written_is_read() -> None:
    assert decode_greeting(encode_greeting(GREETING)) == GREETING


def test_a_golden_greeting() -> None:
    """Every version reads it: fields 1 to 6, by number, never change their meaning."""
    assert encode_greeting(Greeting("c", "b", "a", Versions(3, 5, 7))).hex() == (
        "0a0163" + "120162" + "1a0161" + "2003" + "2805" + "3007"
    )


def test_a_golden_greeting_with_levels() -> None:
    """Fields 8 to 11 are for ever, too; a node from before there were levels skips them."""
    versions = Versions(3, 5, 7, Build("v", 2, 4), level=3)
    assert encode_greeting(Greeting("c", "b", "a", versions)).hex() == (
        "0a0163" + "120162" + "1a0161" + "2003" + "2805" + "3007"
    ) + ("4002" + "4804" + "5003" + "5a0176")


def test_a_golden_greeting_that_tells_where_its_sender_is() -> None:
    """Field 22; whoever tells no address is dialled by the log or the file alone (S25)."""
    told = Greeting("c", "b", "a", Versions(3, 5, 7), peer_address="b:1")
    written = encode_greeting(told)
    assert written.hex() == (
        "0a0163" + "120162" + "1a0161" + "2003" + "2805" + "3007" + "b20103623a31"
    )
    assert decode_greeting(written) == told


def test_who_tells_no_levels_can_run_at_the_first_alone() -> None:
    told = decode_greeting(bytes.fromhex("0a01631201621a0161200328053007"))
    assert told.versions == Versions(3, 5, 7, Build("", 1, 1), level=0)


def test_what_is_answered_is_read() -> None:
    assert decode_answer(encode_answer(GREETING)) == GREETING
    assert decode_answer(encode_refusal("this is node 'x'")) == "this is node 'x'"


@pytest.mark.parametrize(
    "data",
    [b"", b"\xff", bytes(BYTES_MAX + 1), encode_answer(GREETING) + encode_refusal("and no")],
)
def test_an_answer_accepts_or_refuses(data: bytes) -> None:
    with pytest.raises(BadMessage):
        decode_answer(data)


def test_fields_of_a_later_version_are_skipped() -> None:
    """Otherwise a later node could not even be told that it is too new."""
    assert decode_greeting(encode_greeting(GREETING) + b"\xf8\x07\x01") == GREETING
    assert decode_answer(encode_answer(GREETING) + b"\xf8\x07\x01") == GREETING


BAD: dict[str, tuple[pb.Greeting | bytes, str]] = {
    "no protobuf": (b"\xff", "no protobuf"),
    "a text that is no UTF-8": (b"\x0a\x01\xff", "no protobuf"),
    "nothing": (b"", "without versions"),
    "too much": (bytes(BYTES_MAX + 1), "4097 bytes exceeds 4096"),
}
PARTS = {
    "cluster_id": ("", "a name is missing"),
    "sender": ("", "a name is missing"),
    "addressee": ("x" * (TEXT_MAX + 1), "exceeds"),
    "method": ("x" * (TEXT_MAX + 1), "exceeds"),
    "version_min": (0, "without versions"),
    "version_max": (2, "without versions"),
    "entry_schema": (0, "without versions"),
    "level_min": (5, "the wrong way round"),
    "level_max": (1, "the wrong way round"),
    "release": ("x" * (TEXT_MAX + 1), "exceeds"),
}


@pytest.mark.parametrize("what", BAD)
def test_what_is_no_greeting_is_refused(what: str) -> None:
    data, why = BAD[what]

    with pytest.raises(BadMessage, match=why):
        decode_greeting(data if isinstance(data, bytes) else data.SerializeToString())


@pytest.mark.parametrize("part", PARTS)
def test_no_part_of_a_greeting_may_be_missing_or_out_of_bounds(part: str) -> None:
    value, why = PARTS[part]
    told = pb.Greeting.FromString(encode_greeting(GREETING))
    setattr(told, part, value)

    with pytest.raises(BadMessage, match=why):
        decode_greeting(told.SerializeToString())


@pytest.mark.parametrize("part", ["version_max", "entry_schema", "level_max", "level"])
def test_no_version_may_be_out_of_range(part: str) -> None:
    told = pb.Greeting.FromString(encode_greeting(GREETING))
    setattr(told, part, 2**63)

    with pytest.raises(BadMessage, match="exceeds"):
        decode_greeting(told.SerializeToString())


@pytest.mark.parametrize(
    ("one", "other", "common"),
    [
        ((3, 3), (3, 3), 3),
        ((3, 5), (4, 7), 5),
        ((3, 7), (4, 5), 5),
        ((3, 4), (4, 6), 4),
        ((3, 3), (4, 6), None),
        ((1, 1), (3, 3), None),
    ],
)
def test_nodes_speak_the_newest_protocol_that_both_know(
    one: tuple[int, int], other: tuple[int, int], common: int | None
) -> None:
    """And both come to the same one, whoever dialled."""
    here, there = Versions(*one, 1), Versions(*other, 1)

    assert common_protocol(here, there) == common
    assert common_protocol(there, here) == common


@pytest.mark.parametrize(
    ("theirs", "said"),
    [
        (OVER_GRPC, "node 'b' speaks peer protocols 1 to 3; node 'a'"),
        (OURS._replace(entries=9), "speaks peer protocol 4 with entries of schema 9; node 'a'"),
        (Versions(5, 6, 1), "speaks peer protocols 5 to 6 with entries of schema 1; node 'a'"),
    ],
)
def test_unlike_versions_are_told_what_to_do(theirs: Versions, said: str) -> None:
    problem = version_problem("a", "b", theirs)

    assert said in problem
    assert f"node 'a' {OURS}. Nodes of unlike versions do not run together" in problem
    assert "stop all nodes, install one version of Holdfast everywhere" in problem


def test_a_range_that_reaches_back_is_no_problem() -> None:
    later = Versions(OURS.oldest, OURS.newest + 2, OURS.entries)

    assert version_problem("a", "b", later) == ""


def running(release: str, oldest: int, newest: int, level: int = 0) -> Versions:
    return OURS._replace(build=Build(release, oldest, newest), level=level)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (running("0.1", 1, 1), running("0.2", 1, 2, level=1)),  # an upgrade has begun
        (running("0.1", 1, 1, level=1), running("0.2", 1, 2)),  # its disk is empty
        (running("0.1", 1, 1), running("0.2", 1, 2)),  # a cluster is formed
        (running("0.2", 1, 2, level=1), running("0.2", 1, 2, level=2)),  # it was away at the end
        (running("0.3", 2, 3, level=2), running("0.2", 1, 2, level=2)),
    ],
)
def test_nodes_run_together_that_can_run_at_the_level_in_force(
    theirs: Versions, ours: Versions
) -> None:
    """Both come to the same answer, whoever dialled."""
    assert version_problem("a", "b", theirs, ours) == ""
    assert version_problem("b", "a", ours, theirs) == ""


@pytest.mark.parametrize(
    ("theirs", "ours", "said"),
    [
        (
            running("0.1", 1, 1),
            running("0.2", 1, 2, level=2),
            "node 'b' runs Holdfast 0.1, which can run at level 1 alone, and level 2 is in force",
        ),
        (
            running("0.3", 2, 3),
            running("0.2", 1, 2, level=1),
            "node 'b' runs Holdfast 0.3, which can run at levels 2 to 3, and level 1 is in force",
        ),
    ],
)
def test_who_cannot_run_at_the_level_in_force_is_named(
    theirs: Versions, ours: Versions, said: str
) -> None:
    """Both nodes name the same one."""
    assert said in version_problem("a", "b", theirs, ours)
    assert said in version_problem("b", "a", ours, theirs)


def test_what_to_do_with_a_node_that_is_too_old_or_too_new() -> None:
    old, new = running("0.1", 1, 1), running("0.3", 2, 3)
    at_2, at_1 = running("0.2", 1, 2, level=2), running("0.2", 1, 2, level=1)
    assert "Install a newer version of Holdfast on it" in version_problem("a", "b", old, at_2)
    assert "Install an older version of Holdfast on it" in version_problem("a", "b", new, at_1)


def test_nodes_that_could_never_agree_on_a_level_do_not_form_a_cluster() -> None:
    problem = version_problem("a", "b", running("", 1, 1), running("0.3", 2, 3))
    assert "they have no level in common" in problem
    assert "node 'a' runs Holdfast 0.3, which can run at levels 2 to 3" in problem
    assert "node 'b' runs a version of Holdfast, which can run at level 1 alone" in problem

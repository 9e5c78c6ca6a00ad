"""The wire: a strict codec, and no pickle that the network or the disk could reach."""

from __future__ import annotations

import ast
import importlib
import pickle
import pkgutil
import random
from pathlib import Path

import pytest

import holdfast.raft
from harness.cluster import HEARTBEAT, Cluster
from holdfast.raft.messages import (
    Ack,
    Append,
    BadMessage,
    ChunkAck,
    EntryChunk,
    Formed,
    Hello,
    LogEntry,
    Message,
    PreVote,
    PreVoteGranted,
    RequestVote,
    SnapshotChunk,
    StateDigest,
    TermNotice,
    TimeoutNow,
    VoteGranted,
    decode,
    encode,
)

YES, NO = True, False
EXAMPLES: list[Message] = [
    PreVote(1, 2, 3, 4),
    PreVoteGranted(1, 2),
    TermNotice(2**64 - 1),
    RequestVote(5, 6, 7, 4),
    VoteGranted(5),
    Append(1, 2, 3, 4, 5, "", ()),
    Append(
        1, 2, 3, 4, 5, "0f", (LogEntry(1, b"\x01"), LogEntry(2, b""), LogEntry(3, b"\xff" * 99))
    ),
    EntryChunk(1, 2, 3, 4, 5, 6, 700, 300, b"abc"),
    SnapshotChunk(1, 2, 3, 4, 5, YES, b""),
    ChunkAck(1, 2, 3),
    Ack(1, 2, YES, NO, 3, 400, "member", "00ff"),
    TimeoutNow(9),
    Hello("cluster", "forming", "00ff", NO, (Formed("A", "1"), Formed("ü", "2"))),
    StateDigest(512, b"digest"),
]


@pytest.mark.parametrize("message", EXAMPLES, ids=lambda m: type(m).__name__)
def test_what_is_encoded_is_decoded(message: Message) -> None:
    assert decode(encode(message)) == message


@pytest.mark.parametrize("message", EXAMPLES, ids=lambda m: type(m).__name__)
def test_no_frame_may_be_cut_or_lengthened(message: Message) -> None:
    frame = encode(message)
    for size in range(len(frame)):
        with pytest.raises(BadMessage):
            decode(frame[:size])
    with pytest.raises(BadMessage, match="too many"):
        decode(frame + b"\x00")


def test_a_golden_frame() -> None:
    """The bytes of a message may not change without a new version."""
    frame = encode(Append(1, 2, 3, 4, 5, "ab", (LogEntry(6, b"xyz"),)))
    assert frame.hex() == (
        "05"
        "0000000000000001"
        "0000000000000002"
        "0000000000000003"
        "0000000000000004"
        "0000000000000005"
        "00000002"
        "6162"
        "00000001"
        "0000000000000006"
        "00000003"
        "78797a"
    )


@pytest.mark.parametrize(
    ("frame", "why"),
    [
        (b"", "too few"),
        (b"\x63", "unknown message type 99"),
        (b"\x0b\xff\xff\xff\xff", "exceeds"),
        (encode(SnapshotChunk(1, 1, 1, 1, 1, NO, b""))[:41] + b"\x02" + b"\0" * 4, "not a flag"),
        (encode(Hello("c", "s", "i", NO, ()))[:5] + b"\xff" + b"\0" * 20, "not UTF-8"),
        (encode(Append(1, 1, 1, 1, 1, "", ()))[:-4] + b"\xff\xff\xff\xff", "exceeds"),
        (encode(Append(1, 1, 1, 1, 1, "", ()))[:-4] + b"\x00\x00\xff\xff", "too few"),
    ],
)
def test_bad_frames_say_what_is_wrong(frame: bytes, why: str) -> None:
    with pytest.raises(BadMessage, match=why):
        decode(frame)


def test_garbage_never_raises_anything_else() -> None:
    """Ten thousand frames, random and damaged (seed 7): a message or BadMessage."""
    chance = random.Random(7)
    for _ in range(10_000):
        frame = bytearray(encode(chance.choice(EXAMPLES)))
        for _ in range(chance.randint(1, 3)):
            frame[chance.randrange(len(frame))] = chance.randrange(256)
        try:
            decode(bytes(frame))
        except BadMessage:
            continue


def test_no_pickle_is_reached_by_messages_or_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    """A whole life (elections, load, restart, snapshot) with a pickle that refuses to work."""

    def refuse(*_args: object) -> None:
        raise AssertionError("pickle was reached")

    for name in ("load", "loads", "dump", "dumps"):
        monkeypatch.setattr(f"pysyncobj.pickle.{name}", refuse)
        monkeypatch.setattr(pickle, name, refuse)
    c = Cluster()
    c.elect("A")
    c.crash("C")
    for i in range(20):
        c.put("A", f"v{i}")
    c.pump("AB", rounds=4, seconds=HEARTBEAT)
    c.consumer("A").snapshot()
    c.pump("AB", rounds=2)
    c.start("C")
    c.connect_all()
    c.pump(rounds=8, seconds=HEARTBEAT)
    assert c.consumer("C").values == [f"v{i}" for i in range(20)]


def test_no_module_of_the_raft_layer_imports_pickle() -> None:
    for module in pkgutil.walk_packages(holdfast.raft.__path__, "holdfast.raft."):
        spec = importlib.util.find_spec(module.name)
        assert spec is not None
        assert spec.origin is not None
        for node in ast.walk(ast.parse(Path(spec.origin).read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {"pickle", "marshal", "shelve"} & {n.split(".")[0] for n in names}
            assert "pysyncobj.pickle" not in names


def test_an_entry_of_an_unknown_kind_stops_the_node() -> None:
    """A pickled call, a membership change (E-8), a code version: none of these exist here."""
    c = Cluster("A")
    c.elect("A")
    c.engine("A").overlay.journal.append(b"\x02" + pickle.dumps(["add", "evil"]), 1)
    with pytest.raises(holdfast.raft.api.EngineStopped, match="kind 02"):
        c.pump(rounds=2)

"""A test build of the next version of Holdfast: this one with a new event, field and message.

It is a copy of some of this tree's packages with a few edits, in a folder that a node's process
finds before the originals. It can run at one level more: the event `Noted` and the state's field
`notes` belong to it; and it speaks one peer protocol more, whose message is `Noticed`. Each edit
must fit in exactly one place, so that none is lost when the tree changes. No wheel has any of this.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)

from harness.children import environment
from holdfast.coordinator.model.levels import LEVEL_MAX
from holdfast.raft.wire.greeting import OURS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ROOT: Final = Path(__file__).parents[2]
RELEASE: Final = "next"
"""What the build says its version is."""
LEVEL: Final = LEVEL_MAX + 1
NUMBER: Final = 1000
"""Of each new field: none that this version will ever give away."""
COPIED: Final = ("coordinator", "proto", "raft", "server")

_MODEL: Final = "coordinator/holdfast/coordinator/model"
_KERNEL: Final = "coordinator/holdfast/coordinator/kernel"
_RAFT: Final = "raft/holdfast/raft"
_NOTED: Final = '''
@dataclass(frozen=True, slots=True)
class Noted:
    """A note."""

    text: str


GroupEvent: TypeAlias = (
    GroupCreated
'''
_NOTICED: Final = '''
@dataclass(frozen=True, slots=True)
class Noticed:
    """Says that the sender speaks the next protocol."""

    term: int


Message = (
    Noticed
    | PreVote
'''
_WRITE: Final = """
def noticed(peer: pb.Peer, message: m.Noticed) -> Tail:
    peer.noticed.term = message.term
    return ()


def pre_vote("""
_READ: Final = """
def noticed(peer: pb.Peer, tail: bytes) -> m.Noticed:
    measure(tail, 0)
    return m.Noticed(peer.noticed.term)


def pre_vote("""
_SEND: Final = """        self.overlay.elections.connection_began(peer)
        logger.warning("the next version is connected with %s", peer)
        self.overlay.ctx.ready.send.append((peer, Noticed(1)))
"""


def _after(anchor: str, *lines: str) -> tuple[str, str]:
    """Put lines after what stands there."""
    return anchor, "".join((anchor, *lines))


EDITS: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    f"{_MODEL}/levels.py": (
        (f"LEVEL_MAX: Final = {LEVEL_MAX}\n", f"LEVEL_MAX: Final = {LEVEL}\n"),
        _after("    LevelRaised,\n", "    Noted,\n"),
        _after("    LevelRaised: 2,\n", f"    Noted: {LEVEL},\n"),
    ),
    f"{_MODEL}/events.py": (
        ("\nGroupEvent: TypeAlias = (\n    GroupCreated\n", _NOTED),
        _after("    | LevelRaised\n", "    | Noted\n"),
    ),
    f"{_MODEL}/membership.py": (
        _after("    ev.LevelRaised: UNTOUCHED,\n", "    ev.Noted: UNTOUCHED,\n"),
    ),
    f"{_MODEL}/state.py": (_after("    raised_to: int = 0\n", '    notes: str = ""\n'),),
    f"{_KERNEL}/evolve.py": (
        _after("    LevelRaised,\n", "    Noted,\n"),
        _after(
            "    LevelRaised: evolve_cluster.level_raised,\n",
            "    Noted: lambda state, event, _: state._replace(notes=state.notes + event.text),\n",
        ),
    ),
    "coordinator/holdfast/coordinator/cluster/topics.py": (
        _after("    LevelRaised,\n", "    Noted,\n"),
        _after(
            '        draft.emit(TopicsCreated(made), "CreateTopics")\n',
            f"        if draft.state.level >= {LEVEL}:\n",
            '            draft.emit(Noted(made[0].name), "CreateTopics")\n',
        ),
    ),
    f"{_RAFT}/messages.py": (("\nMessage = (\n    PreVote\n", _NOTICED),),
    f"{_RAFT}/wire/greeting.py": (
        (f"({OURS.oldest}, {OURS.newest}, ENTRY", f"({OURS.oldest}, {OURS.newest + 1}, ENTRY"),
    ),
    f"{_RAFT}/wire/writing.py": (("\ndef pre_vote(", _WRITE),),
    f"{_RAFT}/wire/reading.py": (("\ndef pre_vote(", _READ),),
    f"{_RAFT}/wire/codec.py": (
        _after(
            "TABLE: Final[dict[type[m.Message], Form]] = {\n",
            '    m.Noticed: Form("noticed", writing.noticed, reading.noticed, OURS.newest),\n',
        ),
    ),
    f"{_RAFT}/pysyncobj/engine.py": (
        _after("    Message,\n", "    Noticed,\n"),
        ("        self.overlay.elections.connection_began(peer)\n", _SEND),
        _after(
            "            PreVote: o.elections.on_pre_vote,\n",
            '            Noticed: lambda peer, _: logger.warning("noticed %s", peer),\n',
        ),
    ),
    "server/holdfast/server/rpc/nodes.py": (
        ("VERSION: Final = own_version()\n", f'VERSION: Final = "{RELEASE}"\n'),
    ),
}
"""By file: what stands there once, and what stands there in the next version."""


def build(place: Path) -> dict[str, str]:
    """Make the build in an empty folder; return the environment of a process that runs it."""
    roots = []
    for root in COPIED:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / root / "holdfast", place / root / "holdfast", ignore=ignored)
        roots.append(str(place / root))
    for file, edits in EDITS.items():
        _edit(place / file, edits)
    v1 = place / "proto" / "holdfast" / "v1"
    _extend(v1 / "events_pb2.py", _with_noted)
    _extend(v1 / "state_pb2.py", _with_notes)
    _extend(place / _RAFT / "wire" / "peer_pb2.py", _with_noticed)
    inherited = environment()
    path = os.pathsep.join([*roots, inherited["PYTHONPATH"]])
    return {**inherited, "PYTHONPATH": path}


def _edit(file: Path, edits: tuple[tuple[str, str], ...]) -> None:
    text = file.read_text(encoding="utf-8")
    for old, new in edits:
        assert text.count(old) == 1, f"{file} has {text.count(old)} times: {old}"
        text = text.replace(old, new)
    file.write_text(text, encoding="utf-8")


def _extend(stub: Path, change: Callable[[FileDescriptorProto], None]) -> None:
    """Change the schema in a generated stub, where it is a literal of bytes."""
    text = stub.read_text(encoding="utf-8")
    found = re.search(r"AddSerializedFile\((b'.*')\)\n", text)
    assert found is not None, stub
    schema = FileDescriptorProto.FromString(ast.literal_eval(found[1]))
    change(schema)
    literal = repr(schema.SerializeToString())
    stub.write_text(text[: found.start(1)] + literal + text[found.end(1) :], encoding="utf-8")


def _with_noted(schema: FileDescriptorProto) -> None:
    schema.message_type.add(name="Noted").field.append(_field("text", 1, "TYPE_STRING"))
    _into_oneof(_message(schema, "Event"), "noted", ".holdfast.v1.Noted")


def _with_notes(schema: FileDescriptorProto) -> None:
    _message(schema, "ClusterState").field.append(_field("notes", NUMBER, "TYPE_STRING"))


def _with_noticed(schema: FileDescriptorProto) -> None:
    schema.message_type.add(name="Noticed").field.append(_field("term", 1, "TYPE_UINT64"))
    _into_oneof(_message(schema, "Peer"), "noticed", ".holdfast.raft.wire.Noticed")


def _message(schema: FileDescriptorProto, name: str) -> DescriptorProto:
    return next(message for message in schema.message_type if message.name == name)


def _field(name: str, number: int, kind: str) -> FieldDescriptorProto:
    return FieldDescriptorProto(
        name=name,
        number=number,
        type=FieldDescriptorProto.Type.Value(kind),
        label=FieldDescriptorProto.LABEL_OPTIONAL,
    )


def _into_oneof(message: DescriptorProto, name: str, kind: str) -> None:
    field = _field(name, NUMBER, "TYPE_MESSAGE")
    field.type_name, field.oneof_index = kind, 0
    message.field.append(field)

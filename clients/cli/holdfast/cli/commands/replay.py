"""`holdfast replay`: proves and tells what happened, with Spark, from the directories of nodes.

Spark comes with an extra of its own, so `holdfast.replay` is imported when a command runs.
`generate` makes such directories, and needs none.
"""

from __future__ import annotations

from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from holdfast.cli.ending import fail, print_json
from holdfast.cli.options import as_json
from holdfast.cli.render.speaking import say, say_lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.coordinator.kernel.queries import DescribedGroup
    from holdfast.coordinator.model.described import DescribedConsumerGroup
    from holdfast.coordinator.model.ids import Position
    from holdfast.coordinator.model.state import State

CONSUMER_PROTOCOL_TYPE: Final = "consumer"
USAGE: Final = 2
"""Exit code for a missing extra, as for wrong usage."""

_folder = click.Path(exists=True, file_okay=False, path_type=Path)
_file = click.Path(exists=True, dir_okay=False, path_type=Path)
node_dirs = click.option(
    "--node-dir",
    "folders",
    required=True,
    multiple=True,
    type=_folder,
    help="A node's node.data_dir, or a folder of segments; may be repeated.",
)


@click.group()
def replay() -> None:
    """Replay the event log with Spark: verify it, report on it, show a past state."""


@replay.command()
@node_dirs
@click.option("--witness", multiple=True, type=_file, help="What clients were acknowledged.")
@click.option(
    "--anchor",
    "anchors",
    multiple=True,
    type=_file,
    help="What nodes told of their logs earlier (`holdfast log anchor --json`); may be repeated.",
)
@as_json
def verify(
    folders: tuple[Path, ...],
    witness: tuple[Path, ...],
    anchors: tuple[Path, ...],
    *,
    as_json: bool,
) -> None:
    """Prove the logs of some nodes, or say what is wrong with them."""
    report = _run(lambda app: app.verify(folders, witness=witness, anchors=anchors))
    if as_json:
        print_json(_reported(report))
    else:
        say_lines(report.table().split("\n"))
    if not report.passed:
        fail("the log is NOT verified; what was found is listed above")


def _reported(found: Any) -> dict[str, Any]:  # noqa: ANN401 - replay's Report, unknown here
    """Convert a report to plain data; the digest in hexadecimal, as `replay verify` writes it."""
    return {
        "passed": found.passed,
        "records": found.records,
        "last": found.last and {"index": found.last.index, "ordinal": found.last.ordinal},
        "checkpoint": found.cut and {"index": found.cut.index, "ordinal": found.cut.ordinal},
        "digest": None if found.digest is None else f"{found.digest:016x}",
        "checks": [
            {"name": each.name, "covered": each.covered, "passed": each.passed}
            for each in found.checks
        ],
        "findings": [str(each) for each in found.findings],
        "notes": list(found.notes),
    }


@replay.command()
@node_dirs
@click.option("--out", required=True, type=click.Path(path_type=Path), help="A folder for it.")
def report(folders: tuple[Path, ...], out: Path) -> None:
    """Write ownership.png, report.html and report.txt: who owned what, and what changed."""
    written = _run(lambda app: app.report(folders, out))
    say_lines(written.text.read_text().split("\n"))
    say(f"written to {written.page}")


@replay.command()
@node_dirs
@click.option("--at", metavar="INDEX[.ORDINAL]", help="After this record; default: the last.")
@click.option("--log-time-ms", type=int, help="After all records up to this log time.")
def state(folders: tuple[Path, ...], at: str | None, log_time_ms: int | None) -> None:
    """Print the groups of a past state as JSON: generations, members, who had what."""
    place = _place(at) if at is not None else None
    found = _run(lambda app: app.state(folders, at=place, log_time_ms=log_time_ms))
    print_json(_told(found))


@replay.command()
@click.option("--events", required=True, type=int, help="Records of the log, exactly so many.")
@click.option("--groups", type=int, default=100, show_default=True, help="Groups, at most.")
@click.option(
    "--skew",
    type=float,
    default=1.1,
    show_default=True,
    help="Exponent of Zipf's law, by which groups are chosen; 0: all alike.",
)
@click.option(
    "--giant",
    metavar="SHARE",
    type=float,
    default=0.0,
    show_default=True,
    help="Share of all events that one group has; 0: none stands out so.",
)
@click.option(
    "--faults",
    metavar="A,B",
    default="bounces,expiries,failovers,deletions",
    show_default=True,
    help="What goes wrong; none: nothing.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Same options, same bytes.")
@click.option("--nodes", type=int, default=3, show_default=True, help="Directories of nodes.")
@click.option(
    "--segment-events",
    type=int,
    default=100_000,
    show_default=True,
    help="A segment is sealed when it has so many records; memory grows with it.",
)
@click.option("--witness/--no-witness", default=True, help="Write what clients were told is done.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="A new folder for it.")
@as_json
def generate(out: Path, faults: str, *, as_json: bool, **options: Any) -> None:  # noqa: ANN401 - fields of a plan
    """Make the log of a cluster that never ran; needs no Spark.

    Groups of both protocols join, commit, fail and come back, by the coordinator's own rules. OUT
    gets a directory for each node, as verify reads it, witness.jsonl and the line anchor.json.
    """
    from holdfast.cli.offline import generated_history  # noqa: PLC0415 - needs the [server] extra

    generated_history.generate(out, faults, options, as_json=as_json)


def _run(use: Callable[[Any], Any]) -> Any:  # noqa: ANN401 - holdfast.replay.app, unknown here
    """Use `holdfast.replay.app`; ends the command with one sentence if that is impossible."""
    try:
        app = import_module("holdfast.replay.app")
    except ModuleNotFoundError:
        raise  # a package of the extra: `holdfast.cli.entry` knows the sentence
    except ImportError as error:
        fail(str(error), USAGE)
    no_java: type[Exception] = import_module("holdfast.replay.spark.java").NoJava
    try:
        return use(app)
    except (OSError, ValueError, no_java) as error:
        fail(str(error))


def _place(text: str) -> Position:
    from holdfast.coordinator.model.ids import Position  # noqa: PLC0415 - for this command alone

    index, _, ordinal = text.partition(".")
    try:
        # Without an ordinal: after the whole entry.
        return Position(int(index), int(ordinal) if ordinal else (1 << 31) - 1)
    except ValueError:
        raise click.BadParameter(f"{text!r}; write INDEX or INDEX.ORDINAL") from None


def _told(found: State) -> dict[str, Any]:
    return {
        "applied_index": found.applied_index,
        "log_time_ms": found.log_time_ms,
        "topics": {name: size.num_partitions for name, size in sorted(found.topics.items())},
        "groups": {name: _of_its_type(found, name) for name in sorted(found.groups)},
    }


def _of_its_type(found: State, group_id: str) -> dict[str, Any]:
    from holdfast.coordinator.kernel import queries  # noqa: PLC0415 - for this command alone

    other = queries.describe_consumer_group(found, group_id)
    if other.error is None:
        return _consumer_group(other)
    return _group(queries.describe_group(found, group_id))


def _consumer_group(group: DescribedConsumerGroup) -> dict[str, Any]:
    return {
        "state": group.state,
        "group_epoch": group.group_epoch,
        "assignment_epoch": group.assignment_epoch,
        "members": {
            member.member_id: {
                "instance_id": member.instance_id,
                "member_epoch": member.member_epoch,
                "assignment": dict(member.assignment),
                "target": dict(member.target),
            }
            for member in sorted(group.members, key=attrgetter("member_id"))
        },
    }


def _group(group: DescribedGroup) -> dict[str, Any]:
    return {
        "state": group.state,
        "generation": group.generation,
        "leader": group.leader or None,
        "members": {
            member.member_id: {
                "instance_id": member.instance_id,
                "assignment": _assignment(group, member.assignment),
            }
            for member in sorted(group.members, key=attrgetter("member_id"))
        },
    }


def _assignment(group: DescribedGroup, assignment: bytes) -> str | dict[str, list[int]]:
    """Return partitions by topic if the group's type tells how to read the bytes, else hex."""
    from holdfast.storage.codec.event_codec import CodecError, decode_assignment  # noqa: PLC0415 - for this command alone

    if group.protocol_type != CONSUMER_PROTOCOL_TYPE:
        return assignment.hex()
    try:
        partitions = decode_assignment(assignment)
    except CodecError:
        return assignment.hex()
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    return topics

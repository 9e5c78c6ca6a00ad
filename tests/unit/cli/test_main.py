"""The command loads what it needs and no more: processor time is what people wait for."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Final

import click
import pytest

from harness.children import environment
from holdfast.cli import names
from holdfast.cli.main import COMMANDS, Commands
from holdfast.client._translate import arguments, call_arguments, offset_messages
from holdfast.coordinator.classic.check import STATES
from holdfast.coordinator.cluster.topics import TOPIC_NAME_LENGTH_MAX
from holdfast.coordinator.consumer.transitions import ASSIGNING, RECONCILING
from holdfast.coordinator.groups.lifecycle import GROUP_ID_LENGTH_MAX
from holdfast.server.guard.item_bounds import OFFSETS_MAX
from holdfast.server.translate.limits import TEXT_MAX

NOWHERE: Final = ("--address", "127.0.0.1:1")
SERVERS: Final = (
    *("cryptography", "lmdb", "pyarrow", "pysyncobj", "uvloop"),
    *("holdfast.server", "holdfast.runtime", "holdfast.raft", "holdfast.storage"),
    *("holdfast.chaos", "holdfast.replay"),
)
"""What a node needs, or a tool of its own; none of it comes with the [cli] extra. Of what else a
node needs, grpc loads grpc_health and grpc_reflection by itself where they are installed."""
CLIENTS: Final = ("grpc", "google.protobuf", "holdfast.client", "holdfast.v1")


def loaded(*command: str) -> set[str]:
    """What a process has loaded that ran the command, where nobody answers."""
    program = (
        "import json, sys; from holdfast.cli import connect, entry; connect.UNCONNECTED_MS = 0\n"
        if NOWHERE[0] in command
        else "import json, sys; from holdfast.cli import entry\n"
    )
    program += (
        f"sys.argv[1:] = {command!r}\n"
        "try:\n    entry.main()\n"
        "except SystemExit:\n    pass\n"
        "print(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_the_help_loads_no_command_and_no_client() -> None:
    assert loaded("--help") & {*SERVERS, *CLIENTS} == set()


@pytest.mark.parametrize(
    "command",
    [
        ("group", "describe", "--help"),
        ("cluster", "--help"),
        ("log", "--help"),
        ("group", "describe", "g", *NOWHERE),
        ("topic", "create", "t", "--partitions", "1", *NOWHERE),
        ("offsets", "list", "g", *NOWHERE),
        ("settings", "list", *NOWHERE),
        ("cluster", "status", *NOWHERE),
        ("log", "tail", *NOWHERE),
    ],
)
def test_who_asks_a_cluster_loads_nothing_of_a_server(command: tuple[str, ...]) -> None:
    found = loaded(*command)

    assert f"holdfast.cli.commands.{command[0]}" in found
    assert found & set(SERVERS) == set()


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_says_what_each_says_of_itself(name: str) -> None:
    command = Commands().get_command(click.Context(click.Command("holdfast")), name)

    assert command is not None
    assert command.get_short_help_str(limit=1_000) == COMMANDS[name]


def test_names_and_calls_are_bounded_as_the_service_bounds_them() -> None:
    """The command has the client's figures, so that it needs no server to know them."""
    assert arguments.GROUP_LENGTH_MAX == GROUP_ID_LENGTH_MAX
    assert arguments.NAME_LENGTH_MAX == TOPIC_NAME_LENGTH_MAX
    assert names.TEXT_MAX == TEXT_MAX
    assert offset_messages.PARTITIONS_MAX == OFFSETS_MAX
    assert set(call_arguments.GROUP_STATES) == STATES | {ASSIGNING, RECONCILING}

"""Wrong usage of the command is told at once, with code 2, before any node is asked."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from holdfast.cli.commands import group
from holdfast.cli.main import main
from holdfast.cli.options import about
from holdfast.v1 import admin_pb2 as a

NOWHERE = ("--address", "127.0.0.1:1")
"""Nobody may listen on this port, so a command that asked would end with 3."""
REMOVE = ("group", "remove-members", "g")
TOO_MANY = str(1 << 31)
TOO_FAR = str(1 << 63)
LONG = "x" * 70_000


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("topic", "create", "x", "--partitions", "99999999999999"), "1<=x<=1000000"),
        (("topic", "grow", "x", "--partitions", TOO_MANY), "1<=x<=1000000"),
        (("topic", "create", "", "--partitions", "1"), "cannot be empty"),
        (("topic", "delete", "x", ""), "cannot be empty"),
        (("offsets", "commit", "g", f"documents:{TOO_MANY}=1"), "at most 2147483647"),
        (("offsets", "commit", "g", f"documents:0={TOO_FAR}"), "at most 9223372036854775807"),
        (("offsets", "reset", "g", "--to-offset", TOO_FAR), "9223372036854775807"),
        (("offsets", "reset", "g", "--shift-by", TOO_FAR), "9223372036854775807"),
        (("offsets", "list", ""), "cannot be empty"),
        (("log", "tail", "--from", "99999999999999999999999"), "9223372036854775807"),
        (("group", "list", "--state", "foo"), "PreparingRebalance"),
        (("group", "describe", ""), "cannot be empty"),
        (("settings", "list", "--group", ""), "cannot be empty"),
        ((*REMOVE, "--instance-prefix", "a", "--instance-prefix", "b"), "may be given once"),
        ((*REMOVE, "--all", "--instance", "a"), "exactly one way"),
        (REMOVE, "exactly one way"),
        ((*REMOVE, "--instance-prefix", ""), "cannot be empty"),
        (("topic", "list", "--address", "nonsense"), "is no address"),
        (("topic", "delete", "x", "\udcff"), "is not UTF-8"),
        (("topic", "create", LONG, "--partitions", "1"), "70000 characters; at most 249"),
        (("topic", "delete", "x", LONG), "at most 249"),
        (("group", "describe", "g", LONG), "70000 characters; at most 512"),
        (("group", "delete", LONG), "at most 512"),
        ((*REMOVE, "--instance", LONG), "at most 4096"),
        (("offsets", "list", LONG), "at most 512"),
        (("settings", "list", "--group", LONG), "at most 512"),
        (("log", "tail", "--group", LONG), "at most 512"),
        (("settings", "set", LONG), "write NAME=VALUE"),
        (("offsets", "commit", "g", LONG), "write TOPIC:PARTITION=OFFSET"),
        (("topic", "list", "--address", "http://127.0.0.1:9400"), "is a URL or a path"),
        (("topic", "list", "--address", LONG), "is no address"),
    ],
)
def test_wrong_usage_is_told_before_any_node_is_asked(
    arguments: tuple[str, ...], words: str
) -> None:
    ended = CliRunner().invoke(main, [*arguments, *NOWHERE])

    assert ended.exit_code == 2, ended.output
    assert words.lower() in ended.output.lower()
    assert len(ended.output) < 1_000


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("topics", "'topic'"), ("grup", "'group'"), ("setting", "'settings'"), ("repay", "'replay'")],
)
def test_a_command_that_is_nearly_one_is_suggested(typed: str, meant: str) -> None:
    """As click does for commands below; it does not know ours, which are loaded when called."""
    ended = CliRunner().invoke(main, [typed, "list"])

    assert ended.exit_code == 2
    assert f"No such command {typed!r}. Did you mean {meant}" in ended.stderr


def test_nothing_is_suggested_for_what_is_near_to_none() -> None:
    ended = CliRunner().invoke(main, ["frobnicate"])

    assert ended.exit_code == 2
    assert "No such command 'frobnicate'.\n" in ended.stderr


@pytest.mark.parametrize("command", [("topic", "list"), ("log", "tail")])
def test_a_refusal_is_an_object_for_programs(command: tuple[str, ...]) -> None:
    """A program that asked for JSON gets some, also where no answer of the service is to be had."""
    ended = CliRunner().invoke(main, [*command, "--json", *NOWHERE])

    told = json.loads(ended.stdout)
    assert (ended.exit_code, told["exit_code"]) == (3, 3)
    assert ended.stderr == f"holdfast: {told['error']}\n"
    assert "is the cluster running" in told["error"].lower()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("topic", "create", "x", "--partitions", "0", "--json"), "0 is not in the range"),
        (("topic", "create", "--json", "x"), "Missing option '--partitions'"),
        (("topic", "list", "--json", "--address", "nonsense"), "is no address"),
        (("topic", "list", "--json", "--jason"), "No such option"),
        (("topic", "crate", "--json"), "No such command"),
        (("--json", "topic", "list"), "No such option"),
    ],
)
def test_wrong_usage_is_an_object_for_programs(arguments: tuple[str, ...], words: str) -> None:
    """docs/operations/groups.md promises one for each command that ends without an answer."""
    ended = CliRunner().invoke(main, [*arguments])

    told = json.loads(ended.stdout)
    assert (ended.exit_code, told["exit_code"]) == (2, 2)
    assert words in told["error"]
    assert words in ended.stderr


@pytest.mark.parametrize("arguments", [("topic", "create"), ("topic", "delete", "--", "--json")])
def test_wrong_usage_is_no_object_for_people(arguments: tuple[str, ...]) -> None:
    assert CliRunner().invoke(main, [*arguments, *NOWHERE]).stdout == ""


@pytest.mark.parametrize(
    "path",
    [
        ("topic", "create"),
        ("topic", "grow"),
        ("topic", "delete"),
        ("group", "rebalance"),
        ("settings", "set"),
        ("cluster", "transfer-leadership"),
        ("log", "verify"),
        ("replay", "verify"),
    ],
)
def test_what_programs_run_prints_json(path: tuple[str, ...]) -> None:
    """docs/operations/groups.md promises `--json` for all commands."""
    assert "--json" in CliRunner().invoke(main, [*path, "--help"]).output


class Asked:
    """A cluster that answers DescribeGroups with members in the order of their coming."""

    def call(
        self, request: a.DescribeGroupsRequest, answer: type[a.DescribeGroupsResponse]
    ) -> a.DescribeGroupsResponse:
        members = (("w-1", "b"), ("", "z"), ("w-0", "d"), ("", "c"))
        described = a.DescribedGroup(
            group_id=request.groups[0],
            members=[
                a.DescribedGroupMember(group_instance_id=instance or None, member_id=member)
                for instance, member in members
            ],
        )
        return answer(groups=[described])


def test_members_are_described_in_order() -> None:
    """By instance id, then by member id: two looks at one group can be compared."""
    response = group._described(Asked(), ("g",), 1)  # type: ignore[arg-type]  # only what is used

    assert [m.member_id for m in response.groups[0].members] == ["c", "z", "d", "b"]


def test_a_subject_is_not_named_twice() -> None:
    sentence = "there is no group 'nope'"
    assert about("nope", sentence, "group nope") == sentence
    assert about("g", "the group still has 2 members", "group g").startswith("group g: ")


def test_a_long_subject_is_cut_and_not_named_twice() -> None:
    """The service cuts it as well, at another place."""
    sentence = f"no topic can be named {LONG[:249]!r}: it is too long"
    assert about(LONG, sentence) == sentence
    assert about(LONG, "no", f"group {LONG}") == f"group {'x' * 34}…: no"


def test_the_empty_group_may_be_named_where_it_means_the_cluster() -> None:
    """`log tail --group ''`: only the cluster's own events."""
    assert CliRunner().invoke(main, ["log", "tail", "--group", "", *NOWHERE]).exit_code == 3

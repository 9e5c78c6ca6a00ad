"""S25: `holdfast node add|promote|remove|replace`, against a node that leads."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from holdfast.cli.main import main
from holdfast.cli.nodes import changes
from holdfast.coordinator.model.events import LevelRaised
from holdfast.coordinator.model.levels import NODE_CHANGES
from holdfast.raft.api import NotLeader, PeerStatus
from holdfast.raft.membership import ChangeRefused, Promote
from unit.server.nodes import Served, served

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.raft.membership import Change

AT = ("--peer", "127.0.0.1:32", "--client", "127.0.0.1:31")
ADD = ("add", "node-3", *AT)


@pytest.fixture(autouse=True)
def looks_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two looks nothing has to pass here."""
    monkeypatch.setattr(changes, "LOOK_SECONDS", 0)


def ran(
    *commands: tuple[str, ...],
    level: int = NODE_CHANGES,
    before: Callable[[Served], object] = lambda _: None,
) -> tuple[list[Result], Served]:
    """Run `holdfast node …` one after the other; the cluster has node-1 and node-2."""

    async def story() -> tuple[list[Result], Served]:
        async with served() as node:
            if level > node.replica.state.level:
                node.replica.slip_in("", LevelRaised(level))
            before(node)
            return [await _ran(node, command) for command in commands], node

    return asyncio.run(story())


async def _ran(node: Served, command: tuple[str, ...]) -> Result:
    words = ["node", *command, "--address", node.address]
    return await asyncio.to_thread(CliRunner().invoke, main, words)


def names(node: Served) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Who votes, and who learns."""
    now = node.replica.membership
    return now.voter_names, tuple(each.name for each in now.learners)


def refusing(node: Served, *sentences: str) -> None:
    """Have the log refuse the next promotions with these sentences, each once."""
    really_change, left = node.replica.change_nodes, [*sentences]

    async def refuse_first(change: Change) -> None:
        if left and isinstance(change, Promote):
            raise ChangeRefused(left.pop(0))
        await really_change(change)

    node.replica.change_nodes = refuse_first  # type: ignore[method-assign]  # of a stand-in


def test_a_node_is_added_promoted_and_removed_with_a_word_for_each_step() -> None:
    done, node = ran(ADD, ("promote", "node-3"), ("remove", "node-3"))

    assert [each.exit_code for each in done] == [0, 0, 0]
    assert done[0].output.startswith("node-3 is a learner now\n")
    assert "holdfast node promote node-3" in done[0].output
    assert [each.output for each in done[1:]] == ["node-3 is a voter now\n", "node-3 is removed\n"]
    assert names(node) == (("node-1", "node-2"), ())
    assert node.replica.membership.removed == ("node-3",)


def test_a_command_that_is_repeated_changes_nothing_and_says_so() -> None:
    """S5: whoever was interrupted does not know how far it came."""
    done, _ = ran(ADD, ADD, ("promote", "node-3"), ("promote", "node-3"))

    assert [each.exit_code for each in done] == [0] * 4
    assert done[1].output.startswith("node-3 is a node of the cluster already\nIf it is a learner ")
    assert done[3].output == "node-3 is a voter already\n"


def test_a_promotion_waits_until_the_node_has_caught_up_and_tells_why() -> None:
    """S25 c: each reason is told once, however long it lasts."""
    lacks = "node 'node-3' is 7 entries behind"
    done, node = ran(
        ADD,
        ("promote", "node-3"),
        before=lambda node: refusing(node, lacks, lacks, "another change is not committed yet"),
    )

    assert done[1].exit_code == 0
    assert done[1].output.splitlines() == [
        lacks,
        "another change is not committed yet",
        "node-3 is a voter now",
    ]
    assert names(node)[0] == ("node-1", "node-2", "node-3")


def test_a_promotion_tells_how_far_the_node_is() -> None:
    def behind(node: Served) -> None:
        refusing(node, "it is behind")
        status = node.replica.status()
        learner = PeerStatus(
            "node-2",
            connected=True,
            acked_index=1,
            next_index=2,
            streaming=False,
            counted=False,
        )
        told = replace(status, peers=(learner,), commit_index=5)
        node.replica.status = lambda: told  # type: ignore[method-assign]  # of a stand-in
        two = node.replica.membership
        node.replica.membership = replace(two, voters=two.voters[:1], learners=two.voters[1:])

    (done,), _ = ran(("promote", "node-2"), before=behind)

    assert done.output.splitlines() == ["node-2 has 1 of 5 entries", "node-2 is a voter now"]


def test_a_promotion_ends_with_the_reason_when_its_time_is_over() -> None:
    done, node = ran(
        ADD,
        ("promote", "node-3", "--timeout", "0"),
        before=lambda node: refusing(node, "node 'node-3' is not connected to the leader"),
    )

    assert done[1].exit_code == 1
    assert "node 'node-3' is not connected to the leader" in done[1].output
    assert names(node) == (("node-1", "node-2"), ("node-3",))


def test_what_can_never_pass_ends_the_command_at_once() -> None:
    done, _ = ran(("promote", "node-9"), ("remove", "node-9"), ("add", "node-1", *AT))

    assert [each.exit_code for each in done] == [1, 1, 1]
    assert "there is no learner 'node-9'" in done[0].output
    assert "there is no node 'node-9'" in done[1].output
    assert "the cluster has a node 'node-1'" in done[2].output


def test_below_level_2_the_refusal_names_the_command_that_helps() -> None:
    (done,), _ = ran(ADD, level=1)

    assert done.exit_code == 1
    assert "holdfast cluster upgrade finish" in done.output


def test_a_node_is_replaced_in_three_steps_and_the_old_one_goes_last() -> None:
    (done,), node = ran(("replace", "node-2", "node-3", *AT))

    assert done.output.splitlines() == [
        "node-3 is a learner now",
        "node-3 is a voter now",
        "node-2 is removed",
    ]
    assert names(node) == (("node-1", "node-3"), ())


def test_a_replacement_that_was_interrupted_goes_on_where_it_was() -> None:
    command = ("replace", "node-2", "node-3", *AT)
    done, node = ran(ADD, command, command)

    assert [each.exit_code for each in done] == [0, 0, 0]
    assert done[1].output.startswith("node-3 is a node of the cluster already\n")
    assert done[2].output.splitlines()[1:] == [
        "node-3 is a voter already",
        "node-2 was removed already",
    ]
    assert names(node) == (("node-1", "node-3"), ())


def test_nothing_is_added_in_the_place_of_a_node_that_never_was() -> None:
    """A misspelt name would leave the cluster with one node more than was meant."""
    (done,), node = ran(("replace", "nide-2", "node-3", *AT))

    assert done.exit_code == 1
    assert "there is no node 'nide-2'" in done.output
    assert names(node) == (("node-1", "node-2"), ())


def test_programs_get_the_answers_as_they_came_and_no_word_beside() -> None:
    done, _ = ran(
        ("replace", "node-2", "node-3", *AT, "--json"),
        ("add", "node-3", *AT, "--json"),
        ("promote", "node-9", "--json"),
        before=lambda node: refusing(node, "it is behind"),
    )

    steps = json.loads(done[0].output)
    assert [*steps] == ["added", "promoted", "removed"]
    assert {each["error_code"] for each in steps.values()} == {"NONE"}
    assert json.loads(done[1].output)["already"] is True
    refused = json.loads(done[2].stdout)
    assert refused["error_code"] == "INVALID_REQUEST"
    assert done[2].exit_code == 1


def test_the_leader_that_leaves_is_removed_by_the_next_one() -> None:
    """S25 d: it hands over and names its heir; here it is soon elected again itself."""
    (done,), node = ran(
        ("remove", "node-2"),
        before=lambda node: setattr(node.replica, "fail_next", NotLeader(None)),
    )

    assert done.exit_code == 0, done.output
    assert names(node) == (("node-1",), ())

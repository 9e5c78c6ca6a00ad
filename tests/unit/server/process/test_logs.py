"""Each line of the log that a call causes has the call's method and request id."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from holdfast.coordinator.model.commands import Caller, TriggerRebalance
from holdfast.raft.api import Overloaded
from holdfast.runtime.groups.batch import TOLD_MAX, told
from holdfast.server.process.logs import TextForm
from holdfast.server.rpc.calls.classic import Join
from unit.server.nodes import join, served
from unit.server.session_calls import Stream, request_id, run

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from unit.server.nodes import Served

    Join_ = Callable[[Served, Any], Awaitable[Any]]


async def unary(node: Served, request: Any) -> None:  # noqa: ANN401 - of any kind
    with pytest.raises(grpc.aio.AioRpcError):
        await node.group.JoinGroup(request)


async def on_session(node: Served, request: Any) -> None:  # noqa: ANN401 - as above
    await Stream(node).ask(1, request)


def lines_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The warnings and worse, as a node writes them."""
    form = TextForm("node-1")
    return [form.format(each) for each in caplog.records if each.levelno >= logging.WARNING]


def crash(*_: object, **__: object) -> None:
    raise ValueError("a defect")


@pytest.mark.parametrize("way", [unary, on_session])
def test_a_call_that_fails_inside_is_told_with_its_request_id(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, way: Join_
) -> None:
    """Also a parked one, whose message is gone when it is answered."""
    known_as = request_id()
    monkeypatch.setattr(Join, "response", crash)

    async def story() -> None:
        async with served() as node:
            await way(node, join(request_id=known_as))

    run(story)
    (line,) = lines_of(caplog)
    assert "a call failed inside" in line
    assert f'call="JoinGroup {known_as}"' in line


def test_a_decision_that_fails_is_told_with_the_request_id(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    known_as = request_id()

    async def story() -> None:
        async with served() as node:
            monkeypatch.setattr("holdfast.runtime.groups.decider.decide", crash)
            answer = await node.group.JoinGroup(join(request_id=known_as))
            assert answer.error_code != 0

    run(story)
    (line,) = lines_of(caplog)
    assert "alarm: deciding JoinGroup" in line
    assert f'call="JoinGroup {known_as}"' in line


def test_a_batch_that_is_not_proposed_is_told_with_the_request_ids_of_its_calls(
    caplog: pytest.LogCaptureFixture,
) -> None:
    known_as = request_id()

    async def story() -> None:
        async with served() as node:
            node.replica.fail_next = Overloaded("full")
            await unary(node, join(request_id=known_as))

    run(story)
    (line,) = lines_of(caplog)
    assert "was not proposed" in line
    assert f'call="JoinGroup {known_as}"' in line


def test_of_a_long_batch_the_first_calls_are_named_and_the_others_counted() -> None:
    commands = [
        TriggerRebalance(Caller(number, request_id=f"r{number}"), "g", "why")
        for number in range(1, TOLD_MAX + 4)
    ]

    said = told(commands)["call"]
    assert said.startswith("TriggerRebalance r1, TriggerRebalance r2, ")
    assert said.endswith(f"TriggerRebalance r{TOLD_MAX}, 3 more")
    assert told([])["call"] == ""


def test_a_line_that_no_call_caused_names_none() -> None:
    record = logging.LogRecord("holdfast.x", logging.INFO, "x.py", 1, "hello", None, None)

    assert "call=" not in TextForm("node-1").format(record)

"""Two processes with one node's name are told of, and nothing else that a node may do is."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from holdfast.raft.transport.peer_options import SILENCE_SECONDS
from holdfast.raft.transport.peer_trouble import Trouble
from holdfast.raft.transport.rivals import TIMES, Rivals
from unit.raft.transport.peer_authority import Authority
from unit.raft.transport.transports import Nodes, addresses


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


class Port:
    """A node's port at which connections are accepted by hand, and its rivals."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        self.trouble = Trouble()
        self.rivals = Rivals(self.trouble)

    def dialled(self) -> tuple[socket.socket, socket.socket]:
        """A new connection: the peer's end of it and this node's."""
        theirs = self._stack.enter_context(socket.create_connection(self._server.getsockname()))
        ours = self._stack.enter_context(self._server.accept()[0])
        return theirs, ours


def test_two_processes_of_one_name_are_told_with_both_addresses(stack: ExitStack) -> None:
    """Each dials again when its connection is displaced, so an open one is displaced each time."""
    port = Port(stack)
    theirs, older = port.dialled()
    dialled_from = [theirs.getsockname()[1]]
    for number in range(TIMES):
        assert port.trouble.lasting() == [], "one displaced connection proves nothing"
        theirs, newer = port.dialled()
        dialled_from.append(theirs.getsockname()[1])
        port.rivals.displaces("b", older, newer, now=number * 0.1)
        older = newer

    (told,) = port.trouble.lasting()
    one, other = dialled_from[-2:]
    assert "two processes say that they are node 'b'" in told
    assert f"one connects from 127.0.0.1:{one}, the other from 127.0.0.1:{other}" in told
    assert "stop the copy" in told


def test_a_node_that_closed_its_connection_is_no_rival_of_itself(stack: ExitStack) -> None:
    """It started again, however often, before the end of its connection was read here."""
    port = Port(stack)
    theirs, older = port.dialled()
    for _ in range(10 * TIMES):
        theirs.sendall(b"unread")
        theirs.close()
        theirs, newer = port.dialled()
        port.rivals.displaces("b", older, newer, now=0.0)
        older = newer

    assert port.trouble.lasting() == []


def test_a_link_that_breaks_again_and_again_makes_no_rival(stack: ExitStack) -> None:
    """The end of the older connection is lost with it; a node notices after a silence only."""
    port = Port(stack)
    _, older = port.dialled()
    for number in range(10 * TIMES):
        _, newer = port.dialled()
        port.rivals.displaces("b", older, newer, now=number * SILENCE_SECONDS)
        older = newer

    assert port.trouble.lasting() == []


def test_a_copied_machine_is_told_of_once(
    stack: ExitStack, caplog: pytest.LogCaptureFixture
) -> None:
    """Two transports with one name and a valid certificate each, on real sockets."""
    caplog.set_level(logging.WARNING)
    nodes, at, authority = Nodes(stack), addresses("a", "b", "copy"), Authority()
    nodes.start("a", at["a"], {"b": at["b"]}, tls=authority.node("a"))
    nodes.start("b", at["b"], {"a": at["a"]}, tls=authority.node("b"))
    assert nodes.until(lambda: nodes.recorders["b"].seen.count(("a", "up")) == 1)
    nodes.turn()
    assert nodes.transports["a"].troubles() == []
    nodes.transports["the original"] = nodes.transports.pop("b")
    nodes.start("b", at["copy"], {"a": at["a"]}, tls=authority.node("b"))

    assert nodes.until(lambda: nodes.transports["a"].troubles() != [])
    ups = len(nodes.recorders["b"].seen)
    assert nodes.until(lambda: len(nodes.recorders["b"].seen) >= ups + 4)
    told = [each for each in caplog.messages if "two processes" in each]
    assert len(told) == 1
    assert "each with a valid certificate" in told[0]

"""Links with nodes that are no peers: when they end, and what they do not lose (S25)."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import cast

import pytest

from holdfast.raft.transport.dialling import Dialler, Greeted
from holdfast.raft.transport.identity import Peers
from holdfast.raft.transport.links import Links
from holdfast.raft.transport.peer_trouble import Trouble
from holdfast.raft.wire.greeting import Greeting
from unit.raft.transport.other_node import ends


class Unreached:
    """A dialler whom nobody answers."""

    def dial(self, peer: str, method: str = "") -> Greeted:
        raise OSError(f"{peer} does not answer {method}")


@pytest.fixture
def links() -> Iterator[Links]:
    made = Links(Peers("a", {}), cast("Dialler", Unreached()), Trouble())
    made.start(lambda: None)
    yield made
    made.close()


def come(links: Links, node: str) -> socket.socket:
    """A node that is no peer has dialled this one; return its end of the connection."""
    ours, theirs = socket.socketpair()
    links.take_in(Greeting("c", node, "a"), ours)
    return theirs


def test_a_outsider_that_has_just_come_back_keeps_its_link(links: Links) -> None:
    """Its new connection waits to be taken while the end of the older one is dealt with."""
    with come(links, "b"):
        links.take_new()[0].incoming.connection.close()  # type: ignore[union-attr]  # it has one
    with come(links, "b") as again:
        assert not links.part("b")

        (new,) = links.take_new()
        assert new.incoming is not None
        new.incoming.connection.close()
        assert ends(again)
    assert links.part("b")
    assert links.outsiders() == []


def test_who_dials_before_this_node_does_is_taken_in() -> None:
    """The port is open a moment earlier: a connection lost there would look like a dead process."""
    links = Links(Peers("a", {"b": "b:1"}), cast("Dialler", Unreached()), Trouble())
    with come(links, "b"):
        links.start(lambda: None)

        (new,) = links.take_new()
        assert new.incoming is not None
        new.incoming.connection.close()
    links.close()


def test_when_all_links_end_nobody_is_let_in_any_more(links: Links) -> None:
    with come(links, "b") as theirs:
        links.close()

        assert ends(theirs), "it was not taken, so it is closed"
    with come(links, "b") as late:
        assert ends(late)

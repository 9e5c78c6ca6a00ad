"""The wait of one thread: ended by a socket, by the bell, and never missed."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from holdfast.raft.transport.poller import READABLE, WRITABLE, Poller

LONG_S = 60.0


@pytest.fixture
def poller() -> Iterator[Poller]:
    with closing(Poller()) as made:
        yield made


def test_a_ring_ends_the_wait_that_comes_after_it(poller: Poller) -> None:
    for _ in range(3):
        poller.ring()
        poller.ring()
        assert poller.wait(LONG_S) == []


def test_a_ring_from_another_thread_ends_the_present_wait(poller: Poller) -> None:
    waiting = threading.Timer(0.05, poller.ring)
    waiting.start()
    assert poller.wait(LONG_S) == []
    waiting.join()


def test_one_ring_ends_one_wait(poller: Poller) -> None:
    """Else a thread that was woken once would never sleep again."""
    poller.ring()
    poller.wait(LONG_S)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        poller.watch(ours.fileno())
        theirs.sendall(b"x")
        assert poller.wait(LONG_S) == [(ours.fileno(), READABLE)]
        assert poller.wait(LONG_S) == [(ours.fileno(), READABLE)], "it was not dealt with"
        poller.change(ours.fileno(), WRITABLE)
        assert poller.wait(LONG_S) == [(ours.fileno(), WRITABLE)]
        poller.forget(ours.fileno())
        poller.ring()
        assert poller.wait(LONG_S) == []


def test_after_the_end_nobody_else_is_rung() -> None:
    """The descriptor's number may be another file's a moment later."""
    poller = Poller()
    poller.close()
    read, write = os.pipe()
    mine = [os.eventfd(0, os.EFD_NONBLOCK) for _ in range(4)]
    poller.ring()
    poller.close()
    for each in mine:
        with pytest.raises(BlockingIOError):
            os.eventfd_read(each)
        os.close(each)
    os.close(read)
    os.close(write)

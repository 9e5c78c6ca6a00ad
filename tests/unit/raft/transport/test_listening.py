"""Listening: on every address of the host, alone, and with one clear error."""

from __future__ import annotations

import socket
from contextlib import ExitStack

import pytest

from holdfast.raft.transport.listening import TransportFailed, listen


def places(address: str) -> set[str]:
    """The hosts on which it listens."""
    with ExitStack() as stack:
        return {stack.enter_context(each).getsockname()[0] for each in listen(address)}


def test_a_host_is_all_of_its_addresses() -> None:
    """Peers may have resolved its name to any of them."""
    known = socket.getaddrinfo("localhost", 0, type=socket.SOCK_STREAM)
    assert places("localhost:0") <= {str(place[0]) for *_, place in known}
    assert "127.0.0.1" in places("localhost:0")
    assert places("127.0.0.1:0") == {"127.0.0.1"}


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="no IPv6 on this machine")
def test_every_address_of_the_machine_is_that_of_both_families() -> None:
    (listener,) = listen("[::]:0")
    with listener, socket.create_connection(("127.0.0.1", listener.getsockname()[1])):
        pass


@pytest.mark.parametrize("address", ["192.0.2.1:0", "no-such-host.invalid:0", f"{'x' * 70}.y:0"])
def test_an_address_that_is_not_this_machines_is_one_clear_error(address: str) -> None:
    with pytest.raises(TransportFailed, match=f"cannot listen for peers on {address}: .*; end"):
        listen(address)


def test_a_second_listener_does_not_get_half_of_the_connections() -> None:
    (first,) = listen("127.0.0.1:0")
    with first, pytest.raises(TransportFailed, match="in use"):
        listen(f"127.0.0.1:{first.getsockname()[1]}")

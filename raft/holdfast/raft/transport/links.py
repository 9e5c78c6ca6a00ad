"""A link for each node that this one is connected with, or tries to be; a thread dials for each.

Connections that threads have made wait here until the engine's thread takes them. A peer has a link
for as long as it is one. Any other node of the cluster that has dialled this one is an *outsider*:
it is being added, and the log here does not tell of it yet; or it was removed, and has to be told.
It is dialled back, so that it can be answered, until its own connection has ended.
"""

from __future__ import annotations

import logging
import math
import random
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from holdfast.raft.api import Build
from holdfast.raft.transport import peer_options
from holdfast.raft.transport.dialling import Dialler, Greeted, PeerRefused
from holdfast.raft.transport.identity import Peers
from holdfast.raft.transport.peer_options import RENEW_AGAIN_PART, RENEWED_AT
from holdfast.raft.transport.peer_trouble import Trouble
from holdfast.raft.wire.greeting import Greeting

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Link:
    """What helper threads and the engine's thread share about one node; under the lock."""

    incoming: Greeted | None = None
    outgoing: Greeted | None = None
    """Connections that the engine's thread has not taken yet."""
    build: Build | None = None
    """What the node runs by its last greeting; None: it has not been met."""
    down: threading.Event = field(default_factory=lambda: _set(threading.Event()))
    """Set while there is no outgoing connection, so that the node is dialled."""
    over: threading.Event = field(default_factory=threading.Event)
    """Set when nobody is to dial the node any more."""
    is_replacing: bool = False
    """Whether another outgoing connection is being made in place of one that still serves."""

    def close(self) -> None:
        """Close what nobody has taken, and end the thread that dials."""
        for each in (self.incoming, self.outgoing):
            if each is not None:
                each.connection.close()
        self.incoming = self.outgoing = None
        self.over.set()
        self.down.set()


def _set(event: threading.Event) -> threading.Event:
    event.set()
    return event


class NewConnections(NamedTuple):
    """The connections with one node that are to take the place of those before."""

    peer: str
    incoming: Greeted | None
    outgoing: Greeted | None


class Links:
    """All links. Any thread, unless said otherwise."""

    def __init__(self, peers: Peers, dialler: Dialler, trouble: Trouble) -> None:
        """Know the peers; `start` begins to dial them."""
        self._peers, self._dialler, self._trouble = peers, dialler, trouble
        self._links: dict[str, _Link] = {}
        self._lock = threading.Lock()
        self._wake: Callable[[], None] = lambda: None
        self._is_open, self._has_started = True, False
        self.has_new = False
        """Whether connections wait to be taken."""
        self.age_seconds = math.inf
        """How old a connection may become; its dialler replaces it before. Set before `start`."""

    def start(self, wake: Callable[[], None]) -> None:
        """Begin to dial; who dials this node is taken in before that, too.

        `wake` is called when there is something for the engine's thread.
        """
        self._wake, self._has_started = wake, True
        self.follow()

    def follow(self) -> None:
        """Dial all peers that have no link yet: they may be others than before."""
        with self._lock:
            for peer in self._peers.names if self._has_started and self._is_open else ():
                self._link(peer)

    def close(self) -> None:
        """End all links; connections that were taken are not theirs any more."""
        with self._lock:
            self._is_open = False
            for link in self._links.values():
                link.close()

    def builds(self) -> dict[str, Build]:
        """Return what each node runs by its last greeting, also if it is away now."""
        with self._lock:
            return {p: each.build for p, each in self._links.items() if each.build is not None}

    # --- outsiders ---

    def outsider_problem(self, node: str) -> str:
        """Say why a node that has proved who it is is not let in; empty if it is."""
        with self._lock:
            outsiders = self._links.keys() - self._peers.names
            if node in self._links or len(outsiders) < peer_options.OUTSIDERS_MAX:
                return ""
        return (
            f"this node does not know {node!r} as a node of the cluster, and has let in "
            f"{len(outsiders)} that it does not know. Add the node to the cluster first"
        )

    def outsiders(self) -> list[str]:
        """Return the linked nodes that are no peers."""
        with self._lock:
            return sorted(self._links.keys() - self._peers.names)

    def part(self, outsider: str) -> bool:
        """End the link with an outsider that has gone; False if it has just come back."""
        with self._lock:
            link = self._links[outsider]
            if link.incoming is not None or outsider in self._peers.names:
                return False
            link.close()
            del self._links[outsider]
        self._peers.forget(outsider)
        self._trouble.over(f"to {outsider}")
        return True

    # --- connections ---

    def take_in(self, told: Greeting, connection: socket.socket) -> None:
        """Leave a connection that a node dialled to the engine's thread."""
        with self._lock:
            if not self._is_open:
                connection.close()
                return
            self._peers.note_told(told.sender, told.peer_address)
            link = self._link(told.sender)
            older, link.incoming = link.incoming, Greeted(connection, told.versions)
            link.build, self.has_new = told.versions.build, True
        if older is not None:
            older.connection.close()
        self._wake()

    def take_new(self) -> list[NewConnections]:
        """Take the connections that helper threads have made. The engine's thread."""
        with self._lock:
            links = self._links.items()
            new = [NewConnections(peer, each.incoming, each.outgoing) for peer, each in links]
            for each in self._links.values():
                if each.outgoing is not None:
                    each.is_replacing = False
                each.incoming = each.outgoing = None
            self.has_new = False
        return new

    def is_replacing(self, peer: str) -> bool:
        """Return whether another outgoing connection to a peer is about to come."""
        link = self._links.get(peer)
        return link is not None and link.is_replacing

    def dial_again(self, peer: str) -> None:
        """Dial a peer, since the connection to it has ended."""
        if link := self._links.get(peer):
            link.down.set()

    # --- the threads that dial ---

    def _link(self, peer: str) -> _Link:
        """Return a node's link; a new one is dialled from now on. Under the lock."""
        link = self._links.get(peer)
        if link is None:
            link = self._links[peer] = _Link()
            threading.Thread(
                target=self._dial_for_ever, args=(peer, link), name=f"peer-{peer}", daemon=True
            ).start()
        return link

    def _dial_for_ever(self, peer: str, link: _Link) -> None:
        while not link.over.is_set():
            pause = self._dial(peer, link)
            if pause is None or not link.down.is_set():
                self._wait_while_up(link, is_new=pause is None)
            else:
                link.over.wait(pause)

    def _wait_while_up(self, link: _Link, *, is_new: bool) -> None:
        """Wait until the outgoing connection has ended, or it is time to replace it.

        `is_new`: it has just been made; else an attempt to replace it has failed.
        """
        if self.age_seconds == math.inf:
            link.down.wait()
            return
        part = random.uniform(*RENEWED_AT) if is_new else RENEW_AGAIN_PART  # noqa: S311 - no secret
        link.is_replacing = not link.down.wait(self.age_seconds * part)

    def _dial(self, peer: str, link: _Link) -> float | None:
        """Dial once. Return None if the connection is made, else the pause before the next time."""
        pause = peer_options.REDIAL_SECONDS
        try:
            self._hand_over(peer, link, self._dialler.dial(peer))
        except PeerRefused as error:
            if not link.over.is_set():
                self._trouble.warn(f"to {peer}", str(error))
            pause = peer_options.REFUSED_SECONDS
        except OSError as error:
            logger.debug("no connection to %s: %s", peer, error)
        except Exception as error:  # noqa: BLE001 - one odd answer must not end all dialling
            address = self._peers.address(peer)
            problem = f"node {peer!r} cannot be dialled at {address}: {error!r}. It is dialled "
            self._trouble.warn(f"to {peer}", problem + "again; is its peer address right?")
            pause = peer_options.REFUSED_SECONDS
        else:
            return None
        link.is_replacing = False
        self._wake()  # the old connection may have ended meanwhile: now that is told
        return pause

    def _hand_over(self, peer: str, link: _Link, dialled: Greeted) -> None:
        """Leave a connection to the engine's thread."""
        self._trouble.over(f"to {peer}")
        with self._lock:
            if link.over.is_set():
                dialled.connection.close()
                return
            older, link.outgoing = link.outgoing, dialled
            link.down.clear()
            link.build = dialled.versions.build
            self.has_new = True
        if older is not None:
            older.connection.close()
        self._wake()

"""The one function that does what the concerns want done, in the one order that is safe (E-5).

Nothing that shows durable state leaves before it is durable: that is the order of the lines of
`Completion.run`, and no concern can leave it: none of them holds the disk, the transport or the
consumer's queue.
"""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

from holdfast.raft.api import ProbeFailed, Refused, RoleChanged
from holdfast.raft.core.context import Switch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.raft.api import Item, Transport
    from holdfast.raft.core.apply_queue import ApplyQueue
    from holdfast.raft.core.context import Context
    from holdfast.raft.core.log import StoredLog
    from holdfast.raft.core.ready import Outgoing
    from holdfast.raft.core.watch import Watch
    from holdfast.raft.messages import Message


class Completion:
    """Tick thread only. Several acks of one round share one sync."""

    def __init__(
        self,
        ctx: Context,
        log: StoredLog,
        transport: Transport,
        apply_queue: ApplyQueue,
        watch: Watch,
        shown: Callable[[str, Message], None],
    ) -> None:
        """`shown` is called with each message that shows this disk, before it leaves."""
        self._ctx, self._log, self._transport, self._apply_queue = ctx, log, transport, apply_queue
        self._watch, self._shown = watch, shown
        if not ctx.on(Switch.ACK_AFTER_FLUSH):
            ctx.ready.send = _Unheld(self._show)

    def run(self) -> None:
        """Tell and send what shows nothing of the disk; persist; check; send the rest; hand over.

        If one step raises, no later step happens.
        """
        ready = self._ctx.ready
        self._tell_what_ended()
        at_once, ready.at_once = ready.at_once, []
        self._send(at_once)
        self._log.flush(ready.persist)
        if ready.send:
            self._watch.look(leaving=True)
            shows, ready.send = ready.send, []
            self._show(shows)
        if ready.apply:
            items, ready.apply = ready.apply, []
            self._apply_queue.push(items)

    def _tell_what_ended(self) -> None:
        """Hand over the first items, as far as none of them waits for the disk (S4, S5)."""
        ready = self._ctx.ready
        ended = list(takewhile(_tells_an_end, ready.apply))
        if ended:
            del ready.apply[: len(ended)]
            self._apply_queue.push(ended)

    def _show(self, messages: Sequence[Outgoing]) -> None:
        for peer, message in messages:
            self._shown(peer, message)
        self._send(messages)

    def _send(self, messages: Sequence[Outgoing]) -> None:
        for peer, message in messages:
            self._transport.send(peer, message)


def _tells_an_end(item: Item) -> bool:
    """Return whether an item only says that a lead, a probe or a proposal has ended.

    That is so whatever the disk holds, and a consumer that hears of it late would go on deciding.
    """
    ended = isinstance(item, RoleChanged) and item.role == "follower"
    return ended or isinstance(item, ProbeFailed | Refused)


class _Unheld(list["Outgoing"]):
    """Stands in for `Ready.send` without E-5: a message leaves as soon as it is appended."""

    def __init__(self, show: Callable[[Sequence[Outgoing]], None]) -> None:
        """Stay empty: `show` sends each message at once."""
        super().__init__()
        self._show = show

    def append(self, message: Outgoing) -> None:
        """Send the message."""
        self._show([message])

"""A stop that systemd, Kubernetes or Ctrl-C asks for becomes a planned restart (S12).

Without it, SIGTERM kills the process at once: its place stays taken for a session, and its
successor must assume that it may still run. Knows members by two methods only.

The handlers are Python's own and not the event loop's: a loop that is blocked by the user's code
would never see a second signal, which is sent in just that case.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from signal import SIGINT, SIGTERM
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from holdfast.client._rpc.fork_guard import is_this_process, this_process
from holdfast.client._translate.call_arguments import check_members

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from signal import Signals

    from holdfast.client.aio.member import Member

    Handler: TypeAlias = Callable[[int, Any], Any] | int | None

STOP_SIGNALS: Final = (SIGTERM, SIGINT)


def restart_on_signals(*members: Member, signals: Sequence[Signals] = STOP_SIGNALS) -> None:
    """Let the first of these signals begin `restart` of all these members.

    Returns at once. On the signal `on_revoked` runs, `owned` ends, and so the program leaves its
    block in the usual way. The next signal, if it comes before all members have stopped, ends the
    process where it stands, as `kill` does, unless the program had set a handler of its own: then
    that one is called. One that comes after all members have stopped does what it did before. Call
    it in the main thread with the loop running: else RuntimeError. Raises TypeError for what is no
    member.
    """
    check_members(members)
    loop = asyncio.get_running_loop()
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("restart_on_signals is for the main thread: only it hears signals.")

    def begin() -> None:
        for member in members:
            member.begin_restart()

    def restart() -> None:
        loop.call_soon_threadsafe(begin)

    install_handlers(
        restart, lambda: loop.is_closed() or all(one.stopped for one in members), signals
    )


def install_handlers(
    restart: Callable[[], None],
    stopped: Callable[[], bool],
    signals: Sequence[Signals] = STOP_SIGNALS,
) -> None:
    """Install the handlers for any loop: `restart` must return at once and take no lock.

    Raises ValueError outside the main thread.
    """
    process = this_process()
    asked: list[int] = []
    before: dict[Signals, Handler] = {}

    def received(number: int, frame: object) -> None:
        del frame
        if not is_this_process(process) or stopped():
            for each, handler in before.items():
                signal.signal(each, handler or signal.SIG_DFL)
            signal.raise_signal(number)
        elif not asked:
            asked.append(number)
            restart()
        else:
            handler = before[signal.Signals(number)]
            signal.signal(number, handler if _is_of_the_program(handler) else signal.SIG_DFL)
            signal.raise_signal(number)

    for number in signals:
        before[number] = signal.signal(number, received)


def _is_of_the_program(handler: Handler) -> bool:
    """Return whether the program has set a handler: not the system, Python or `asyncio.run`."""
    if not callable(handler) or handler is signal.default_int_handler:
        return False
    behind = getattr(handler, "func", handler)  # asyncio.run's is a partial of a method
    return not isinstance(getattr(behind, "__self__", None), asyncio.Runner)

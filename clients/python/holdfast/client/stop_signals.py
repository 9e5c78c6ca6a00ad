"""A stop that systemd, Kubernetes or Ctrl-C asks for becomes a planned restart (S12).

Left alone, SIGTERM kills the process where it stands: its place waits for a session, and whoever
comes next has to reckon with a predecessor that may still run. Knows members by two methods only.
"""

from __future__ import annotations

import asyncio
import signal
from signal import SIGINT, SIGTERM
from typing import TYPE_CHECKING, Final

from holdfast.client.call_arguments import check_members

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from signal import Signals

    from holdfast.client.health import Health
    from holdfast.client.member import Member

STOP_SIGNALS: Final = (SIGTERM, SIGINT)


def restart_on_signals(*members: Member, signals: Sequence[Signals] = STOP_SIGNALS) -> None:
    """Have the first of these signals begin `restart` of all these members.

    Returns at once. On the signal `on_revoked` runs, `owned` ends, and so the program leaves its
    block in the usual way. The next signal does what it did before, as does one that comes after
    all members have stopped. Call it in the main thread with the loop running: else RuntimeError.
    Raises TypeError for what is no member.
    """
    check_members(members)
    loop = asyncio.get_running_loop()

    def received(number: Signals) -> None:
        for each in signals:
            loop.remove_signal_handler(each)
        if not all_stopped(member.health() for member in members):
            for member in members:
                member.begin_restart()
        else:
            signal.raise_signal(number)

    for number in signals:
        loop.add_signal_handler(number, received, number)


def restart_on_signals_in_threads(
    restart: Callable[[], None],
    look: Callable[[], Iterable[Health]],
    signals: Sequence[Signals] = STOP_SIGNALS,
) -> None:
    """The same without a loop in this thread: `restart` must return at once and take no lock."""

    def received(number: int, frame: object) -> None:
        del frame
        for each, handler in before.items():
            signal.signal(each, handler or signal.SIG_DFL)
        if not all_stopped(look()):
            restart()
        else:
            signal.raise_signal(number)

    before = {number: signal.signal(number, received) for number in signals}


def all_stopped(health: Iterable[Health]) -> bool:
    """Whether there is nobody left to stop."""
    return all(one.phase == "stopped" for one in health)

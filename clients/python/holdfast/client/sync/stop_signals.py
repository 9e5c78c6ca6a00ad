"""A stop that a signal asks for becomes a planned restart: for members with threads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.client._translate.call_arguments import check_members
from holdfast.client.aio.stop_signals import STOP_SIGNALS, install_handlers

if TYPE_CHECKING:
    from collections.abc import Sequence
    from signal import Signals

    from holdfast.client.sync.member import Member


def restart_on_signals(*members: Member, signals: Sequence[Signals] = STOP_SIGNALS) -> None:
    """As `aio.restart_on_signals`; call it in the main thread, else ValueError."""
    check_members(members)

    def restart() -> None:
        for member in members:
            member.begin_restart()

    install_handlers(restart, lambda: all(member.stopped for member in members), signals)

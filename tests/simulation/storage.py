"""A storage outside of Holdfast that does what it should: it compares tokens (S13).

Per (group, topic, partition) it keeps the highest fencing token that it has seen and refuses a
write with a lower one. It never fails; how long a write takes to get here is the network's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.chaos.history.happenings import Wrote

if TYPE_CHECKING:
    from collections.abc import Callable

    from simulation.recorder import Recorder
    from simulation.wire import Wire

MACHINE = "storage"


class OutsideStorage:
    """What members write to."""

    def __init__(self, wire: Wire, recorder: Recorder) -> None:
        self._wire, self._recorder = wire, recorder
        self._highest: dict[tuple[str, str, int], int] = {}

    def receive(
        self,
        machine: str,
        who: str,
        group: str,
        topic: str,
        partition: int,
        token: int,
        answer: Callable[[], None],
    ) -> None:
        """A write was sent from there, which hears an `answer` when it is done."""

        def arrive() -> None:
            place = (group, topic, partition)
            accepted = token >= self._highest.get(place, 0)
            if accepted:
                self._highest[place] = token
            now_us = self._recorder.now_us
            self._recorder.add(Wrote(now_us, who, group, topic, partition, token, accepted))
            self._wire.path(MACHINE, machine).stream(answer)

        self._wire.path(machine, MACHINE).stream(arrive)

"""One worker of the demo: a process that owns partitions and indexes their files.

It shows how an application is meant to use Holdfast: claim each new grant at the store, check
before each write, hand the token over with it, let go when told to. SIGTERM ends it by the
planned restart of a static member (S12); so does the end of its conductor.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from demo import job
from demo.diary import Diary, Kind
from demo.group import PROTOCOLS
from demo.store import Holder, Refusal, Store
from demo.witness import write_witness
from holdfast.client import HoldfastError, OwnershipLost, Tls
from holdfast.client.sync import Member, Partition, restart_on_signals

_IDLE_S: Final = 0.1
_HOLD_LOOK_S: Final = 0.01


class Worker:
    """The work of one process; `run` is the main thread, the callbacks come in another one."""

    def __init__(self, name: str, store: Path, diary: Path) -> None:
        self.name = name
        self.stopping = threading.Event()
        self._store = Store(store)
        self._diary_file = diary
        self._diary = Diary(diary)
        self._library = job.library()
        self._in_hand = threading.Lock()
        self._left: dict[Holder, list[str]] = {}
        self._turn = 0

    # --- the main thread ---

    def run(self, make_member: Callable[..., Member]) -> None:
        """Work until told to stop, or until the conductor is gone, killed or not."""
        conductor = os.getppid()
        self._diary.note(self.name, Kind.STARTED)
        listeners = {"on_assigned": self._assigned, "on_revoked": self._ended}
        with make_member(on_lost=self._lost, **listeners) as member:
            restart_on_signals(member)
            threading.Thread(target=self._until_stopped, args=[member], daemon=True).start()
            while not self.stopping.is_set() and os.getppid() == conductor:
                done = self._step(member.assignment)
                self.stopping.wait(self._diary.pace_s if done else _IDLE_S)
        self._diary.note(self.name, Kind.STOPPED)

    def _step(self, owned: Sequence[Partition]) -> bool:
        """Index one file of the next partition that has any left; claim first what is new."""
        open_ones = [partition for partition in owned if self._files_left(partition)]
        if not open_ones:
            return False
        self._turn += 1
        self._index_one(open_ones[self._turn % len(open_ones)])
        return True

    def _files_left(self, partition: Partition) -> list[str]:
        holder = self._holder(partition)
        if holder not in self._left:
            claimed = self._store.claim(holder)
            if isinstance(claimed, Refusal):
                self._error(f"claim refused: {_words(claimed)}")
            self._left[holder] = [] if isinstance(claimed, Refusal) else claimed
        return self._left[holder]

    def _index_one(self, partition: Partition) -> None:
        left = self._files_left(partition)
        row = job.index(self._library, left[-1])
        with self._in_hand:
            try:
                partition.check()
            except OwnershipLost as error:
                self._error(f"OwnershipLost: {error}")
                return
            self._hold_if_asked(partition, row.path)
            refusal = self._store.write(self._holder(partition), row)
        if refusal:
            self._error(f"write refused: {_words(refusal)}")
        else:
            left.remove(row.path)

    def _hold_if_asked(self, partition: Partition, path: str) -> None:
        """Announce the point between check and write, and stay there: to be frozen here."""
        if self._diary.hold != self.name:
            return
        text = f"{partition.number} {partition.fencing_token} {path}"
        self._diary.note(self.name, Kind.HOLDING, text)
        while self._diary.hold == self.name:
            time.sleep(_HOLD_LOOK_S)

    def _until_stopped(self, member: Member) -> None:
        """Notice a membership that ended by itself; in a thread of its own."""
        try:
            member.wait_stopped()
        except HoldfastError as error:
            Diary(self._diary_file).note(self.name, Kind.ERROR, f"{type(error).__name__}: {error}")
        self.stopping.set()

    # --- the callbacks' thread ---

    def _assigned(self, partitions: Sequence[Partition]) -> None:
        """A new grant, or an old one confirmed after doubt: either is claimed before it is used."""
        del partitions
        self._left = {}

    def _ended(self, partitions: Sequence[Partition]) -> None:
        """Let go: the row in hand is finished first, then nothing is written any more."""
        with self._in_hand:
            diary = Diary(self._diary_file)
            for partition in partitions:
                diary.end(self.name, partition.number, partition.fencing_token)

    def _lost(self, partitions: Sequence[Partition]) -> None:
        """Too late to finish anything: the row in hand is the store's to refuse."""
        diary = Diary(self._diary_file)
        numbers = ", ".join(str(partition.number) for partition in partitions)
        diary.note(self.name, Kind.LOST, f"on_lost: {numbers}")
        for partition in partitions:
            diary.end(self.name, partition.number, partition.fencing_token)

    def _holder(self, partition: Partition) -> Holder:
        return Holder(self.name, partition.number, partition.fencing_token)

    def _error(self, text: str) -> None:
        self._diary.note(self.name, Kind.ERROR, text)


def _words(refusal: Refusal) -> str:
    """A refusal for people."""
    return (
        f"partition {refusal.partition} has seen token {refusal.highest}, ours is {refusal.token}"
    )


def main() -> None:
    """Be the worker that the command line describes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("--endpoint", action="append", required=True)
    parser.add_argument("--protocol", choices=PROTOCOLS, required=True)
    parser.add_argument("--tls", nargs=3, metavar=("CA", "CERTIFICATE", "KEY"))
    for name in ("store", "diary", "witness"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    asked = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    worker = Worker(asked.name, asked.store, asked.diary)
    # Until there is a member to restart, and for a second signal after that.
    signal.signal(signal.SIGTERM, lambda _number, _frame: worker.stopping.set())
    make_member = partial(
        Member,
        asked.endpoint,
        group=job.GROUP,
        topics=[job.TOPIC],
        instance_id=asked.name,
        protocol=asked.protocol,
        **PROTOCOLS[asked.protocol].timeouts,
        credentials=Tls(*asked.tls) if asked.tls else None,
        on_acknowledged=write_witness(asked.witness),
    )
    worker.run(make_member)


if __name__ == "__main__":
    main()

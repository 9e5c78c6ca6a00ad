"""The phases of the demo: what is done to the cluster and its workers while the job goes on.

Each phase does its harm, waits until every partition has its rightful worker again, and says what
it has to hold. Measuring is for `measure`, looking at the end for `proof`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple

from demo.cluster import Cluster
from demo.crew import Crew
from demo.diary import Diary, Kind
from demo.job import PARTITIONS
from demo.measure import Freeze, Window
from demo.settings import FROZEN, REMOVED, ROWS_A_PHASE, SEVENTH, WORKERS
from demo.store import Store
from harness.poll import until

SETTLE_S: Final = 60.0
TELL_EACH: Final = 300
PHASE_S: Final = 20.0
"""About how long a phase takes: for the pace only."""


class Check(NamedTuple):
    """Something that has to hold, and what was seen."""

    name: str
    held: bool
    seen: str


class Mark(NamedTuple):
    """Something that was done at a moment, in few words, for the picture."""

    at: float
    text: str


class Phase(NamedTuple):
    """A finished phase. `rows`: written meanwhile by workers other than its victim.

    `changes`: of the group, by rebalances or epochs.
    """

    name: str
    window: Window
    changes: int
    rows: int


@dataclass(slots=True)
class Stage:
    """Everything that a phase works with, and what has come of the phases so far."""

    cluster: Cluster
    crew: Crew
    store: Store
    diary: Diary
    say: Callable[[str], None]
    began: float = field(default_factory=time.time)
    phases: list[Phase] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    freezes: list[Freeze] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)

    def check(self, name: str, seen: object, *, held: bool) -> None:
        """Record what had to hold; a failure does not end the run, so that all are told."""
        self.checks.append(Check(name, held, str(seen)))
        if not held:
            self.say(f"FAILED: {name}: {seen}")

    def mark(self, text: str) -> None:
        """Record what is done now."""
        self.marks.append(Mark(time.time(), text))
        self.say(text)

    def settle(self, members: int) -> None:
        """Wait until the group is stable with so many members and all grants are claimed."""
        until(
            lambda: self._settled(members), f"{members} members own everything", within_s=SETTLE_S
        )

    def _settled(self, members: int) -> bool:
        self.crew.refuse_dead()
        group = self.cluster.group()
        tokens = self.store.tokens()
        whole = group.state == "Stable" and group.members == members
        return whole and len(tokens) == PARTITIONS and tokens == group.tokens

    @contextmanager
    def phase(self, name: str, victims: Collection[str] = ()) -> Iterator[None]:
        """Run a phase: count the group's changes and the rows of everybody but its victims."""
        self._set_pace()
        began, number = time.time(), self.cluster.group().number
        self.say(f"{name} ({self.store.count()} of {self.store.size()} files are done)")
        yield
        self.await_rows(self.marks[-1].at, victims)  # a stretch of calm before the next phase
        changes = self.cluster.group().number - number
        rows = self.store.count(began, other_than=victims)
        self.phases.append(Phase(name, Window(began, time.time()), changes, rows))
        self.check(f"{name}: rows by others", rows, held=rows >= ROWS_A_PHASE)

    def check_changes(self, name: str, most: int) -> None:
        """Check how often the phase that has just ended changed the group."""
        seen = self.phases[-1].changes
        self.check(name.format(self.cluster.protocol.changes), seen, held=seen == most)

    def await_rows(self, since: float, victims: Collection[str] = ()) -> None:
        """Wait until others than the victims have written enough rows."""
        until(
            lambda: self.store.count(since, other_than=victims) >= ROWS_A_PHASE,
            f"{ROWS_A_PHASE} rows by workers other than the victims {list(victims)}",
            within_s=SETTLE_S,
        )

    def _set_pace(self) -> None:
        """Rest between rows so that the files last for this phase, those to come, and the end."""
        shares = len(ALL) - len(self.phases) + 1
        rows = max(1, (self.store.size() - self.store.count()) // shares)
        self.diary.pace_s = self.crew.size * PHASE_S / rows


def begin(stage: Stage) -> None:
    """Six workers join and share everything."""
    for name in WORKERS:
        stage.crew.start(name)
    stage.settle(len(WORKERS))
    stage.say(f"{len(WORKERS)} workers own {PARTITIONS} partitions")


def bounce(stage: Stage) -> None:
    """(a) Every worker is restarted, one after another: no change, no move (KIP-345)."""
    with stage.phase("(a) rolling bounce"):
        rows = 0
        for name in WORKERS:
            since = time.time()
            stage.mark(f"bounce {name}")
            stage.crew.stop(name)
            stage.crew.start(name)
            until(partial(_claims_again, stage, name, since), f"{name} is back", within_s=SETTLE_S)
            stage.settle(len(WORKERS))
            rows += stage.store.count(since, other_than=[name])
    stage.check("(a) rows by workers not being bounced", rows, held=rows >= ROWS_A_PHASE)
    stage.check_changes("(a) {}", 0)


def _claims_again(stage: Stage, name: str, since: float) -> bool:
    return any(claim.worker == name and claim.at >= since for claim in stage.store.claims())


def kill_leader(stage: Stage) -> None:
    """(b) kill -9 of the leading node: work goes on, the assignment stays; later it comes back."""
    with stage.phase("(b) leading node killed"):
        dead = stage.cluster.kill_leader()
        stage.mark(f"kill -9 {dead.name}")
        leader = stage.cluster.leader(other_than=dead)
        stage.say(f"{leader.name} leads after {time.time() - stage.marks[-1].at:.1f} s")
        stage.await_rows(time.time())
        stage.cluster.revive(dead)
        stage.mark(f"{dead.name} is back")
        stage.settle(len(WORKERS))
    stage.check_changes("(b) {}", 0)


def freeze(stage: Stage) -> None:
    """(c) One worker is frozen between its check and its write, past its session (S13)."""
    with stage.phase("(c) worker frozen", victims=[FROZEN]):
        _freeze_before_write(stage)
        old = _held(stage)
        until(lambda: _taken_over(stage, old), f"{FROZEN} is replaced", within_s=SETTLE_S)
        stage.say(f"the partitions of {FROZEN} ({len(old)}) have other workers")
        stage.await_rows(stage.freezes[-1].at, [FROZEN])
        thawed = time.time()
        stage.mark(f"thaw {FROZEN}")
        stage.crew.thaw(FROZEN)
        stage.freezes[-1] = stage.freezes[-1]._replace(until=thawed)
        until(lambda: _late_writes(stage), "the late write is refused")
        until(lambda: stage.diary.notes(Kind.LOST, since=thawed), f"{FROZEN} notices its loss")
        stage.settle(len(WORKERS))
    late = _late_writes(stage)
    stage.check("(c) late writes refused by the store", len(late), held=len(late) > 0)
    lost = [note.text for note in stage.diary.notes(Kind.LOST) if note.worker == FROZEN]
    stage.check(f"(c) {FROZEN} noticed by itself", "; ".join(lost), held=bool(lost))


def _freeze_before_write(stage: Stage) -> None:
    since = time.time()
    stage.diary.hold = FROZEN
    until(lambda: stage.diary.notes(Kind.HOLDING, since=since), f"{FROZEN} is about to write")
    stage.crew.freeze(FROZEN)
    stage.freezes.append(Freeze(time.time(), FROZEN))
    stage.mark(f"freeze {FROZEN}")
    stage.diary.hold = ""


def _held(stage: Stage) -> dict[int, int]:
    """The partitions that the frozen worker was the last to claim, with their tokens."""
    last = {claim.partition: claim for claim in stage.store.claims()}
    return {number: claim.token for number, claim in last.items() if claim.worker == FROZEN}


def _taken_over(stage: Stage, old: dict[int, int]) -> bool:
    tokens = stage.store.tokens()
    return all(tokens[number] > token for number, token in old.items())


def _late_writes(stage: Stage) -> list[object]:
    return [
        refusal
        for refusal in stage.store.refusals()
        if refusal.worker == FROZEN and refusal.action == "write"
    ]


def grow(stage: Stage) -> None:
    """(d) A seventh worker joins: one change gives it its share."""
    with stage.phase("(d) seventh worker joins", victims=[SEVENTH]):
        stage.mark(f"{SEVENTH} joins")
        stage.crew.start(SEVENTH)
        stage.settle(len(WORKERS) + 1)
    stage.check_changes("(d) {} for the seventh", 1)


def shrink(stage: Stage) -> None:
    """(d) Two workers stop for a restart, which moves nothing; one call removes both."""
    with stage.phase("(d) two workers removed", victims=REMOVED):
        before = stage.cluster.group().number
        stage.mark(f"stop {', '.join(REMOVED)}")
        stage.crew.stop(*REMOVED)
        stopped = stage.cluster.group().number
        name = f"(d) {stage.cluster.protocol.changes} by the stop"
        stage.check(name, stopped - before, held=stopped == before)
        stage.mark("remove both")
        stage.cluster.remove(*REMOVED)
        stage.settle(len(WORKERS) + 1 - len(REMOVED))
    stage.check_changes("(d) {} for both", 1)


def finish(stage: Stage) -> None:
    """Lift the pace, wait until every file has its row, and stop the workers."""
    stage.say("the pace is lifted")
    stage.diary.pace_s = 0.0
    until(_done(stage), "every file has its row", within_s=2 * SETTLE_S)
    stage.crew.stop_all()
    stage.say(f"all {stage.store.count()} files are done; the workers have stopped")


def _done(stage: Stage) -> Callable[[], bool]:
    told = stage.store.count()

    def done() -> bool:
        nonlocal told
        stage.crew.refuse_dead()
        count = stage.store.count()
        if count - told >= TELL_EACH:
            told = count
            stage.say(f"{count} of {stage.store.size()} files are done")
        return count == stage.store.size()

    return done


MOVED: Final = {"(a)": 0, "(b)": 0, "(d) seventh": PARTITIONS // (len(WORKERS) + 1)}
"""How many partitions get another worker in the phases whose names begin so."""
ALL: Final = (bounce, kill_leader, freeze, grow, shrink)

"""A second opinion on who computes a target: random members, and rules written down naively.

It knows KIP-848's text and nothing of the core: who of all members can run what, who was chosen and
who was late, and what becomes of a target that somebody hands in. Times are milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Final, NamedTuple

NAMES: Final = ("x", "y")
HEARTBEAT_MS: Final = 5_000


class Runs(NamedTuple):
    """An assignor that a member can run."""

    name: str
    least: int
    most: int
    version: int
    reason: int


@dataclass
class Crowd:
    """What a group has come to, as far as a member's assignor matters."""

    epoch: int = 1
    target: int = 1
    now_ms: int = 0
    members: dict[str, tuple[Runs, ...]] = field(default_factory=dict)
    """In the order of joining."""
    timeouts: dict[str, int] = field(default_factory=dict)
    chosen: str = ""
    chosen_for: int = 0
    assignor: str = ""
    late: list[str] = field(default_factory=list)
    due_ms: int | None = None

    # --- what members share ---

    def shared(self) -> tuple[str, list[str]]:
        """The assignor that all can run, and who of them can run it; "": there is none."""
        usable: dict[str, list[str]] = {}
        for name in NAMES:
            said = [r for runs in self.members.values() for r in runs if r.name == name]
            if not said or len(said) < len(self.members):
                continue
            used = {each.version for each in said}
            able = [
                who
                for who, runs in self.members.items()
                for r in runs
                if r.name == name and all(r.least <= version <= r.most for version in used)
            ]
            common = set.intersection(*({*range(r.least, r.most + 1)} for r in said))
            if common and able:
                usable[name] = able
        if not usable:
            return "", []
        firsts = [next(r.name for r in runs if r.name in usable) for runs in self.members.values()]
        best = max(sorted(usable), key=firsts.count)
        return best, usable[best]

    # --- what happens ---

    def joins(self, who: str, runs: tuple[Runs, ...], timeout_ms: int) -> None:
        """Somebody comes."""
        self.members[who], self.timeouts[who] = runs, timeout_ms
        self.epoch += 1
        self.speaks(who)

    def says(self, who: str, runs: tuple[Runs, ...]) -> None:
        """Somebody says what it can run now."""
        before, old = self.shared()[0], self.members[who]
        self.members[who] = runs
        after = self.shared()[0]
        was = next((r for r in old if r.name == after), None)
        now = next((r for r in runs if r.name == after), None)
        news = was is not None and now is not None and was != now
        plain = news and was._replace(reason=0) == now._replace(reason=0) and now.reason == 0  # type: ignore[union-attr]  # both are there
        if before != after or (news and not plain):
            self.epoch += 1
        self.speaks(who)

    def leaves(self, who: str) -> None:
        """Somebody goes."""
        del self.members[who]
        self.late = [each for each in self.late if each != who]
        if self.chosen == who:
            self.chosen, self.due_ms = "", None
        self.epoch += 1

    def speaks(self, who: str) -> None:
        """A heartbeat of somebody: it may be time to choose."""
        if self.epoch == self.target or (self.chosen and self.chosen_for == self.epoch):
            return
        name, able = self.shared()
        if not name:
            self.target, self.chosen, self.due_ms = self.epoch, "", None
            return
        best = self._best(able, who)
        if self.chosen in able and self.chosen not in self.late:
            best = self.chosen
        if best != self.chosen:
            self.due_ms = None
        self._choose(best, name)

    def _best(self, able: list[str], who: str = "") -> str:
        order = list(self.members)
        lateness = {each: place for place, each in enumerate(self.late, 1)}
        return min(able, key=lambda e: (lateness.get(e, 0), e != who, order.index(e)))

    def _choose(self, who: str, name: str) -> None:
        self.chosen, self.chosen_for, self.assignor = who, self.epoch, name
        if self.due_ms is None:
            self.due_ms = self.now_ms + max(self.timeouts[who], HEARTBEAT_MS)

    def passes(self, by_ms: int) -> None:
        """Time passes; who is too late is relieved."""
        end_ms = self.now_ms + by_ms
        while self.due_ms is not None and self.due_ms <= end_ms:
            self.now_ms, self.due_ms = self.due_ms, None
            self._relieve()
        self.now_ms = end_ms

    def _relieve(self) -> None:
        """Ask another one, if there is one; who was relieved is asked last."""
        name, able = self.shared()
        if name and self.chosen:
            tardy = self.chosen
            others = [each for each in able if each != tardy] or able
            best = self._best(others)
            self.late = [*(each for each in self.late if each != tardy), tardy]
            self._choose(best, name)

    def fails_over(self) -> None:
        """A new leader gives the chosen one its whole time."""
        if self.chosen:
            self.due_ms = self.now_ms + max(self.timeouts[self.chosen], HEARTBEAT_MS)

    def fails(self, who: str, epoch: int) -> str:
        """Somebody says that it makes no target; the refusal, "": another one is asked."""
        error = self._refusal(who, epoch or self.epoch)
        if not error:
            self.due_ms = None
            self._relieve()
        return error

    def _refusal(self, who: str, epoch: int) -> str:
        name, _ = self.shared()
        if who != self.chosen or not name or name != self.assignor:
            return "NotChosen"
        if epoch == self.epoch:
            return ""
        return "StaleAssignment" if epoch < self.epoch else "InvalidRequest"

    def installs(self, who: str, epoch: int, *, true: bool) -> str:
        """Somebody hands a target in; the refusal, "": it is taken."""
        error = self._refusal(who, epoch)
        if error or not true:
            return error or "InvalidRequest"
        self.target, self.chosen, self.due_ms = self.epoch, "", None
        self.late = [each for each in self.late if each != who]
        return ""


def some_runs(random: Random) -> tuple[Runs, ...]:
    """What a member may be able to run: mostly the same as others, and sometimes nothing."""
    if random.random() < 0.08:
        return ()
    made = []
    for name in random.sample(NAMES, random.choice((1, 2, 2, 2))):
        least, most = random.choice(((0, 1), (0, 1), (0, 2), (1, 2)))
        made.append(Runs(name, least, most, random.randint(least, most), random.choice((0, 0, 1))))
    return tuple(made)

"""Steps through the trace of a run, for people: `./dev debug TRACE`.

A trace is a history (JSON lines), from the simulator or from a real cluster. The groups are folded
from the records of the log as the coordinator folds them, so what is shown is what a node held.

    next [N]              the next happening, or the next N
    until SECONDS | TEXT  go on to a moment, or to the first happening that has the text
    back SECONDS          go back to a moment
    show group GROUP      the group as of now: state, generation, members, who may act on what
    show node NODE        the node as of now: role, term, newest digest
    show nodes            which nodes there are now, by the newest change that any of them knows
    show faults           what is broken now
    judge                 what the checkers find in the whole trace
    quit
"""

from __future__ import annotations

import cmd
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.chaos.checkers import judge
from holdfast.chaos.history import happenings as h
from holdfast.chaos.history import jsonl
from holdfast.chaos.history.records import record_of
from holdfast.coordinator.kernel.apply import replay
from holdfast.coordinator.model.state import State

if TYPE_CHECKING:
    from collections.abc import Sequence

US = 1_000_000
WIDTH = 200


class Moment:
    """Everything that a history says up to one happening."""

    def __init__(self) -> None:
        self.state = State()
        self.whole = True
        self.roles: dict[str, h.Role] = {}
        self.digests: dict[str, h.Applied] = {}
        self.owners: dict[tuple[str, str], h.Granted] = {}
        self.faults: dict[tuple[str, str], h.Fault] = {}
        self.nodes: h.NodesChanged | None = None
        self.beginning: tuple[str, ...] = ()

    def take(self, happening: h.Happening) -> None:
        """One more happening."""
        match happening:
            case h.Recorded():
                self._record(happening)
            case h.Began(nodes=nodes):
                self.beginning = nodes
            case h.NodesChanged() if self.nodes is None or happening.entry > self.nodes.entry:
                self.nodes = happening
            case h.Role(node=node):
                self.roles[node] = happening
            case h.Applied(node=node):
                self.digests[node] = happening
            case h.Granted(who=who, group=group):
                self.owners[who, group] = happening
            case h.Surrendered(who=who, group=group):
                self.owners.pop((who, group), None)
            case h.Fault(kind=kind, target=target, phase="begin") if happening.details["lasts_us"]:
                self.faults[kind, target] = happening
            case h.Fault(kind=kind, target=target):
                self.faults.pop((kind, target), None)

    def _record(self, recorded: h.Recorded) -> None:
        if not recorded.payload:
            self.whole = False
        elif self.whole:
            self.state = replay(self.state, (record_of(recorded),))


class Debugger(cmd.Cmd):
    """Takes commands; `at` is how many happenings are past."""

    prompt = "> "

    def __init__(self, history: Sequence[h.Happening], **how: Any) -> None:  # noqa: ANN401 - cmd.Cmd's own
        super().__init__(**how)
        self.history, self.at, self.moment = history, 0, Moment()
        first = history[0]
        details = first.details if isinstance(first, h.Began) else {}
        self.intro = (
            f"{len(history)} happenings; seed {details.get('seed', '?')}. `help` tells more."
        )

    # --- moving ---

    def do_next(self, argument: str) -> None:
        """Next [N]: the next happening, or the next N."""
        for _ in range(_number(argument, 1)):
            if self.at == len(self.history):
                self._say("the end")
                return
            self._say(line(self._step()))

    def do_until(self, argument: str) -> None:
        """Until SECONDS | TEXT: go on to a moment, or to the first happening that has the text."""
        while self.at < len(self.history):
            happening = self._step()
            if _is_there(happening, argument):
                self._say(line(happening))
                return
        self._say("the end")

    def do_back(self, argument: str) -> None:
        """Back SECONDS: go back to a moment."""
        self.at, self.moment = 0, Moment()
        until_us = round(float(argument or 0) * US)
        while self.at < len(self.history) and self.history[self.at].at_us <= until_us:
            self._step()
        self._say(f"{self.at} happenings are past")

    def _step(self) -> h.Happening:
        happening = self.history[self.at]
        self.at += 1
        self.moment.take(happening)
        return happening

    # --- showing ---

    def do_show(self, argument: str) -> None:
        """Show group GROUP | show node NODE | show nodes | show faults: as of now."""
        what, _, name = argument.partition(" ")
        shows = {
            "group": self._group,
            "node": self._node,
            "nodes": self._nodes,
            "faults": self._faults,
        }
        if what in shows:
            shows[what](name.strip())
        else:
            self._say("show group GROUP, show node NODE, show nodes, or show faults")

    def _group(self, name: str) -> None:
        group = self.moment.state.groups.get(name)
        if group is None:
            self._say(f"no group {name!r}; there are {', '.join(self.moment.state.groups)}")
            return
        self._say(
            f"{name}: {group.state}, generation {group.generation}, leader {group.body.leader}"
        )
        for member in group.body.members.values():
            instance = f" ({member.instance_id})" if member.instance_id else ""
            self._say(f"  {member.member_id}{instance}, granted at {member.granted_index}")
        for (who, of), granted in self.moment.owners.items():
            if of == name:
                parts = ", ".join(f"{topic}/{number}" for topic, number in granted.partitions)
                until = f" until {granted.until_us / US:.3f} s" if granted.until_us else ""
                self._say(f"  {who} may act on {parts} with token {granted.token}{until}")

    def _node(self, name: str) -> None:
        role, digest = self.moment.roles.get(name), self.moment.digests.get(name)
        if role is not None:
            self._say(f"{name}: {role.role} of term {role.term} since {role.at_us / US:.3f} s")
        if digest is not None:
            self._say(f"  {digest.digest[:16]} at index {digest.index} ({digest.via})")
        if role is None and digest is None:
            self._say(f"nothing is known of {name!r} yet")

    def _nodes(self, name: str) -> None:
        del name
        told = self.moment.nodes
        if told is None:
            self._say(f"voters {', '.join(self.moment.beginning)}, as at the beginning")
            return
        self._say(f"since entry {told.entry} of term {told.term}, {told.at_us / US:.3f} s:")
        parts = {"voters": told.voters, "learners": told.learners, "removed": told.removed}
        for part, names in parts.items():
            self._say(f"  {part} {', '.join(names) or 'none'}")

    def _faults(self, name: str) -> None:
        del name
        for (kind, target), fault in self.moment.faults.items():
            self._say(f"  {kind} of {target} since {fault.at_us / US:.3f} s {fault.details}")

    def do_judge(self, argument: str) -> None:
        """judge: what the checkers find in the whole trace."""
        del argument
        self._say(judge(self.history).table())

    def do_quit(self, argument: str) -> bool:
        """quit: go."""
        del argument
        return True

    do_EOF = do_quit  # noqa: N815 - the name that cmd gives the end of the input

    def _say(self, text: str) -> None:
        self.stdout.write(text + "\n")


def line(happening: h.Happening) -> str:
    """A happening on one line."""
    values = happening._asdict()
    values.pop("at_us")
    values.pop("payload", None)
    said = " ".join(f"{name}={value}" for name, value in values.items())
    return f"{happening.at_us / US:11.6f}  {type(happening).__name__:<11} {said}"[:WIDTH]


def _is_there(happening: h.Happening, argument: str) -> bool:
    try:
        return happening.at_us >= float(argument) * US
    except ValueError:
        return argument in jsonl.line_of(happening)


def _number(argument: str, default: int) -> int:
    return int(argument) if argument.strip().isdigit() else default


def main(arguments: Sequence[str]) -> int:
    """Open a trace and take commands."""
    if len(arguments) != 1 or arguments[0] in {"-h", "--help"}:
        print(__doc__)
        return 0 if arguments else 2
    try:
        history = jsonl.read(Path(arguments[0]))
    except (OSError, jsonl.HistoryDamaged) as error:
        print(f"./dev debug: {error}")
        return 2
    Debugger(history).cmdloop()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

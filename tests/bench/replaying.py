"""The row about the replay: what one event costs in each of its parts, by processor time.

Logs of two sizes are made up (`holdfast replay generate`), and measured in one warm Spark session:
a rate is a slope, from the smaller log to the larger one, so that what a session costs at the start
is not in it. Peers run in the same program. `replay_worker` measures; logs are kept beside the
results, for they take longer to make than to replay.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from bench.figures import Figure, Goal, least, most
from bench.rig import Bench

GROUPS: Final = 20_000
SEED: Final = 7
RATES: Final[dict[str, Goal | None]] = {
    "hashes": least(1_000_000),
    "hashes by DuckDB": None,
    "hashes by Polars": None,
    "fold": least(50_000),
    "plain loop": None,
    "state by SQL": least(200_000),
    "state by DuckDB": None,
    "report": least(80_000),
}
"""Events a second by the clock, on two cores, by the part of `replay_worker`."""
PEERS: Final = ("hashes by DuckDB", "hashes by Polars", "plain loop", "state by DuckDB")
RATIOS: Final = (
    ("hashes", "hashes by DuckDB", least(0.3)),
    ("fold", "plain loop", least(0.8)),
    ("state by SQL", "state by DuckDB", least(0.25)),
    ("report", "fold", least(1)),
)
"""Two parts, and what the first one's rate is to be of the second's, by processor time."""
SKEWS: Final[dict[str, tuple[str, ...]]] = {
    "one group has 60 % of the events": ("--giant", "0.6"),
    "100,000 groups": ("--groups", "100000"),
    "segments of 1,000 events": ("--segment-events", "1000"),
}
SKEWED: Final = ("hashes", "fold")
MEMORY: Final = {"driver": most(512), "worker": most(512), "JVM": most(2048)}
"""Peaks in MiB, at the larger size."""
WHOLE: Final = "verify, whole"
NEW: Final = "verify from a checkpoint at 90 %"
ONLY_NEW: Final = most(0.2)
"""What a verification costs that has to look at the last tenth alone, of one of everything."""
TENTHS_MIN: Final = 1_000_000
"""A log of fewer events has not ten segments, so that no tenth of it can be left out."""
RECORDS: Final = 71
"""Those of a log that `./dev demo` leaves."""
VERIFIED: Final = most(25)
_SUBREAPER: Final = 36
"""PR_SET_CHILD_SUBREAPER of prctl(2)."""


async def replay(bench: Bench) -> None:
    """Verifying and reporting a log with Spark: rates by processor time, memory, skew."""
    await asyncio.to_thread(_replay, bench)


def _replay(bench: Bench) -> None:
    _verify(bench)
    small, large = bench.sizes.replayed_events
    even = ("--groups", str(GROUPS))
    logs = [_log(bench, events, even, nodes=1) for events in (small, large)]
    verified = (WHOLE, NEW) if small >= TENTHS_MIN else ()
    told = _run(bench, logs, list(RATES), verified)
    _rates(bench, told, small, large)
    _memory(bench, told, large)
    if verified:
        _only_new(bench, told, small, large)
    _skew(bench, small, told)


def _log(bench: Bench, events: int, options: Sequence[str], nodes: int) -> Path:
    """The folder of a log with these options; it is made if it is not there yet."""
    name = "-".join([str(events), *(each.strip("-") for each in options)])
    folder = bench.folder / "logs" / name
    if not folder.exists():
        bench.say(f"replay: makes a log of {events:,} events, {' '.join(options) or 'as it is'}")
        words = ["--events", str(events), "--seed", str(SEED), "--nodes", str(nodes)]
        made = [*words, *options, "--no-witness", "--out", str(folder)]
        _checked([sys.executable, "-m", "holdfast.cli", "replay", "generate", *made])
    return folder


def _checked(command: Sequence[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip()[-2_000:]
        raise RuntimeError(f"{' '.join(command[2:5])} ended with {done.returncode}: {said}")
    return done.stdout


def _run(
    bench: Bench, logs: Sequence[Path], parts: Sequence[str], verified: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """What `replay_worker` tells of these logs, each folder's first node."""
    bench.say(f"replay: {', '.join(parts)}, of {', '.join(each.name for each in logs)}")
    plan = {
        "logs": [str(each / "node-1") for each in logs],
        "parts": [part for part in parts if part not in PEERS],
        "peers": [part for part in parts if part in PEERS],
        "verified": list(verified),
    }
    command = [sys.executable, "-m", "bench.replay_worker", json.dumps(plan)]
    told = []
    for line in _lines(command, {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}):
        if line.startswith("{"):
            told.append(each := json.loads(line))
            bench.say(f"  {each['part']}, {each['events']:,} events: {each['cpu']:.1f} CPU s")
    return told


def _lines(command: Sequence[str], environment: Mapping[str, str]) -> Iterator[str]:
    """Yield what a program prints, as it does. Raises RuntimeError if it fails."""
    with (
        tempfile.TemporaryFile("w+") as complaint,
        subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=complaint, text=True
        ) as process,
    ):
        yield from process.stdout or ()
        if process.wait():
            complaint.seek(0)
            raise RuntimeError(f"the replay failed: {complaint.read().strip()[-2_000:]}")


def _rates(bench: Bench, told: Sequence[dict[str, Any]], small: int, large: int) -> None:
    start = next(each for each in told if each["part"] == "start-up")
    bench.add(Figure("replay", "start of a session", start["cpu"], "CPU s", more=start))
    rates = {part: slope(told, part, small, large, "cpu") for part in RATES}
    for part, rate in rates.items():
        more: dict[str, object] = {"seen": [each for each in told if each["part"] == part]}
        bench.add(Figure("replay", part, rate, "events/CPU s", more=more))
        if RATES[part] is not None:
            by_clock = slope(told, part, small, large, "wall")
            what = f"{part}, on two cores"
            bench.add(Figure("replay", what, by_clock, "events/s", RATES[part]))
    for one, other, goal in RATIOS:
        what = f"{one} / {other}"
        bench.add(Figure("replay", what, rates[one] / rates[other], "times", goal))


def slope(told: Sequence[dict[str, Any]], part: str, small: int, large: int, by: str) -> float:
    """Events for a second, of those that the larger log has more.

    `by`: "cpu", processor time; or "wall", the clock, which says something on a quiet machine.
    """
    spent = {each["events"]: each[by] for each in told if each["part"] == part}
    rate: float = (large - small) / (spent[large] - spent[small])
    return rate


def _memory(bench: Bench, told: Sequence[dict[str, Any]], large: int) -> None:
    """The largest of each kind: a worker that has ended is seen in earlier lines alone."""
    ours = [each["peaks"] for each in told if each["part"] not in PEERS]
    for kind, goal in MEMORY.items():
        what = f"peak of the {kind}, {large:,} events"
        peak = max(peaks.get(kind, 0) for peaks in ours)
        bench.add(Figure("replay", what, peak / 2**20, "MiB", goal))


def _only_new(bench: Bench, told: Sequence[dict[str, Any]], small: int, large: int) -> None:
    """The ratio of what either kind takes for the records that the larger log has more."""
    for part in (WHOLE, NEW):
        seen = [each for each in told if each["part"] == part]
        cost = (large - small) / slope(told, part, small, large, "cpu")
        bench.add(Figure("replay", part, cost, "CPU s", more={"seen": seen}))
    costs = [1 / slope(told, part, small, large, "cpu") for part in (NEW, WHOLE)]
    bench.add(Figure("replay", f"{NEW} / whole", costs[0] / costs[1], "times", ONLY_NEW))


def _skew(bench: Bench, events: int, told: Sequence[dict[str, Any]]) -> None:
    """What an event costs in a log of another shape, against the even one of the same size."""
    even = {e["part"]: e["cpu"] for e in told if e["events"] == events}
    for what, options in SKEWS.items():
        groups = () if "--groups" in options else ("--groups", str(GROUPS))
        log = _log(bench, events, (*groups, *options), nodes=1)
        for line in _run(bench, [log], SKEWED):
            part = line["part"]
            if part in SKEWED:
                times = line["cpu"] / even[part]
                bench.add(Figure("replay", f"{part}, {what}", times, "x even", most(1.5)))


def _verify(bench: Bench) -> None:
    """The real command, with all that it starts, twice.

    The first run with this Java and this Spark writes an archive of classes that all later ones
    begin with (`spark.class_archive`).
    """
    made = _log(bench, RECORDS, (), nodes=3)
    words = [word for n in (1, 2, 3) for word in ("--node-dir", str(made / f"node-{n}"))]
    command = [sys.executable, "-m", "holdfast.cli", "replay", "verify", *words]
    with suppress(OSError):
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)  # what it leaves behind is waited for, too
    what = f"verify of {RECORDS} records on 3 nodes"
    first, later = (_spent(command) for _ in range(2))
    bench.add(Figure("replay", f"{what}, in a run before that", first, "CPU s"))
    bench.add(Figure("replay", what, later, "CPU s", VERIFIED))


def _spent(command: Sequence[str]) -> float:
    """Processor time of a command until the last of what it started has ended."""
    before = _children()
    _checked(command)
    with suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)
    return _children() - before


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime

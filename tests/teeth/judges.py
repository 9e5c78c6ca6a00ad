"""Lays a defect over the product and asks its judge whether anything is wrong.

A verdict comes from a checker, an alarm of the product or an assertion that is named; a patch that
falls over its own feet has shown nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from simulation.outcome import run_seed
from teeth.catalogue import Scenario, Simulated, catalogue
from teeth.weather import WEATHERS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from simulation.outcome import Broken, Outcome
    from teeth.catalogue import Defect

ROOT: Final = Path(__file__).parents[2]
PLUGIN_SAYS: Final = "teeth: "
TEST_SECONDS_MAX: Final = 300
STUMBLES: Final = ("AttributeError(", "TypeError(", "NameError(", "KeyError(", "IndexError(")
"""What a patch raises that does not fit the product: an alarm about that shows nothing."""


class Verdict(NamedTuple):
    """What came of one defect. `by` "": nobody noticed; `what`: what was said of it.

    `seeds`: how many runs it took; a test is one. `besides`: what else was said, by whom.
    """

    defect: str
    by: str
    what: str
    seeds: int
    cpu_s: float
    besides: tuple[str, ...] = ()


class Clean(NamedTuple):
    """A run without any defect. `problem` "": it was clean, as it must be."""

    name: str
    problem: str
    cpu_s: float


def judged(name: str) -> Verdict:
    """Try one defect; in a process whose hashes are pinned."""
    defect = catalogue()[name]
    match defect.judge:
        case Simulated():
            return _simulated(defect, defect.judge)
        case Scenario():
            return _shown_to_a_test(defect, defect.judge)


# --- the simulator ---


def _simulated(defect: Defect, judge: Simulated) -> Verdict:
    began, besides = time.process_time(), set[str]()
    for seed in range(1, judge.seeds + 1):
        outcome = _run(judge.weather, seed, defect)
        said = {broken.invariant for broken in outcome.violations}
        besides |= said - {*judge.by}
        for broken in outcome.violations:
            if broken.invariant in judge.by and not _is_a_stumble(broken):
                cpu_s = time.process_time() - began
                others = tuple(sorted(said - {broken.invariant}))
                return Verdict(defect.name, broken.invariant, broken.what, seed, cpu_s, others)
    cpu_s = time.process_time() - began
    return Verdict(defect.name, "", "", judge.seeds, cpu_s, tuple(sorted(besides)))


def _is_a_stumble(broken: Broken) -> bool:
    return broken.invariant == "alarm" and any(each in broken.what for each in STUMBLES)


def _run(weather: str, seed: int, defect: Defect | None) -> Outcome:
    there = WEATHERS[weather]
    patches = () if defect is None else (defect.patch,)
    return run_seed(seed, patches=patches, faults=there.faults(seed), shape=there.shape)


def clean_run(weather: str, seed: int) -> Clean:
    """The same seed without any defect."""
    began = time.process_time()
    broken = _run(weather, seed, None).violations
    problem = "" if not broken else f"{broken[0].invariant}: {broken[0].what}"
    return Clean(f"{weather}, seed {seed}", problem, time.process_time() - began)


# --- tests ---


def _shown_to_a_test(defect: Defect, judge: Scenario) -> Verdict:
    """Caught if an assertion of the test itself fails; the plugin tells what failed, and how."""
    began = _children_s()
    asked = _pytest(["-p", "teeth.plugin", judge.test], defect.name)
    found = [line for line in asked.stdout.splitlines() if line.startswith(PLUGIN_SAYS)]
    cpu_s = _children_s() - began
    if asked.returncode == 0:
        return Verdict(defect.name, "", "", 1, cpu_s)
    if not found:
        return Verdict(defect.name, "", "", 1, cpu_s, (asked.stdout[-600:] + asked.stderr[-200:],))
    told = json.loads(found[0].removeprefix(PLUGIN_SAYS))
    if told["asserted"]:
        return Verdict(defect.name, judge.test.rpartition("::")[2], told["what"], 1, cpu_s)
    return Verdict(defect.name, "", "", 1, cpu_s, (told["what"],))


def clean_tests(tests: Iterable[str]) -> Clean:
    """The same tests without any defect."""
    began = _children_s()
    asked = _pytest(sorted(set(tests)), "")
    problem = "" if asked.returncode == 0 else asked.stdout[-2_000:] + asked.stderr[-500:]
    return Clean("the tests that judge", problem, _children_s() - began)


def _pytest(arguments: list[str], defect: str) -> subprocess.CompletedProcess[str]:
    """A pytest of its own: a patch lies over modules that a test imports by name."""
    paths = [str(ROOT / "tests"), *(path for path in sys.path if path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "HOLDFAST_DEFECT": defect}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=TEST_SECONDS_MAX,
    )


def _children_s() -> float:
    times = os.times()
    return times.children_user + times.children_system

"""`./dev teeth`: whether the tests would notice. Every seeded defect must be caught.

    ./dev teeth                   all of them, on two processes, as a table
    ./dev teeth NAME...           these
    ./dev teeth --list            what there is

Each defect is laid over the product at run time and shown to its judge: seeds of the simulator
with all its checkers, or the scenario that was written for the rule. Then the same seeds and
scenarios are run without any defect, and must be clean. Exit codes: 0 all caught, 1 a hole, or a
run that is not clean.
"""

from __future__ import annotations

import argparse
import sys
import time
from multiprocessing import get_context
from typing import TYPE_CHECKING, Final

from simulation.run import with_pinned_hashes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from teeth.catalogue import Defect
    from teeth.judges import Clean, Verdict

WORKERS: Final = 2
WHAT_MAX: Final = 100


def main(arguments: Sequence[str]) -> int:
    """Try the defects that were asked for; 1 if one of them was not noticed."""
    from teeth.catalogue import catalogue  # noqa: PLC0415 - after the hash seed is pinned

    known = catalogue()
    asked = _parse(arguments, known)
    chosen = {name: known[name] for name in asked.names or known}
    if asked.list:
        print(*map(_listed, chosen.values()), sep="\n")
        return 0
    began = time.monotonic()
    with get_context("spawn").Pool(asked.workers) as pool:
        verdicts = list(_told(chosen, pool.imap_unordered(_judged, _costly_first(chosen))))
        clean = list(_cleaned(pool.imap_unordered(_clean, _same_runs(chosen, verdicts))))
    return _summary(verdicts, clean, time.monotonic() - began)


def _parse(arguments: Sequence[str], known: dict[str, Defect]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="./dev teeth",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="a defect; default: all")
    parser.add_argument("--list", action="store_true", help="only tell what there is")
    parser.add_argument("--workers", type=int, default=WORKERS, help=f"processes ({WORKERS})")
    asked = parser.parse_args(arguments)
    if unknown := [name for name in asked.names if name not in known]:
        parser.error(f"there is no defect {unknown[0]!r}; --list tells what there is")
    return asked


# --- in a worker ---


def _judged(name: str) -> Verdict:
    from teeth.judges import judged  # noqa: PLC0415 - after the hash seed is pinned

    return judged(name)


def _clean(run: tuple[str, int] | tuple[str, ...]) -> Clean:
    from teeth.judges import clean_run, clean_tests  # noqa: PLC0415 - as above

    match run:
        case (str(weather), int(seed)):
            return clean_run(weather, seed)
        case tests:
            return clean_tests(map(str, tests))


# --- what is run ---


def _costly_first(chosen: dict[str, Defect]) -> list[str]:
    """Seeds before tests, so that both processes end together."""
    from teeth.catalogue import Simulated  # noqa: PLC0415 - as above

    return sorted(chosen, key=lambda name: not isinstance(chosen[name].judge, Simulated))


def _same_runs(
    chosen: dict[str, Defect], verdicts: Sequence[Verdict]
) -> list[tuple[str, int] | tuple[str, ...]]:
    """Every run that has shown something, without the defect."""
    from teeth.catalogue import Scenario, Simulated  # noqa: PLC0415 - as above

    runs: set[tuple[str, int]] = set()
    tests: set[str] = set()
    for verdict in verdicts:
        judge = chosen[verdict.defect].judge
        if isinstance(judge, Simulated) and verdict.by:
            runs.add((judge.weather, verdict.seeds))
        elif isinstance(judge, Scenario):
            tests.add(judge.test)
    return [*sorted(runs), *([tuple(sorted(tests))] if tests else [])]


# --- what is told ---


def _listed(defect: Defect) -> str:
    return f"{defect.layer:<8} {defect.rule:<8} {defect.name:<44} {defect.title}"


def _told(chosen: dict[str, Defect], verdicts: Iterator[Verdict]) -> Iterator[Verdict]:
    """A line for each, as it comes."""
    print(f"{'defect':<44} {'rule':<8} {'runs':>4} {'cpu':>6}  caught by")
    for verdict in verdicts:
        defect = chosen[verdict.defect]
        runs = f"{verdict.seeds:>4} {verdict.cpu_s:>4.0f} s"
        print(f"{defect.name:<44} {defect.rule:<8} {runs}  {_by(verdict)}", flush=True)
        yield verdict


def _by(verdict: Verdict) -> str:
    if not verdict.by:
        besides = f"; said besides: {', '.join(verdict.besides)}" if verdict.besides else ""
        return f"NOT CAUGHT{besides}"
    return f"{verdict.by}: {verdict.what[:WHAT_MAX]}"


def _cleaned(runs: Iterator[Clean]) -> Iterator[Clean]:
    for run in runs:
        if run.problem:
            print(f"without a defect, {run.name} is not clean: {run.problem}", flush=True)
        yield run


def _summary(verdicts: Sequence[Verdict], clean: Sequence[Clean], seconds: float) -> int:
    caught = sum(1 for verdict in verdicts if verdict.by)
    unclean = sum(1 for run in clean if run.problem)
    cpu_s = sum(each.cpu_s for each in verdicts) + sum(run.cpu_s for run in clean)
    print(
        f"\n{caught} of {len(verdicts)} defects caught, in {seconds:.0f} s ({cpu_s:.0f} s of CPU)"
    )
    print(f"the same runs without a defect: {len(clean) - unclean} of {len(clean)} clean")
    return 0 if caught == len(verdicts) and not unclean else 1


if __name__ == "__main__":
    with_pinned_hashes()
    sys.exit(main(sys.argv[1:]))

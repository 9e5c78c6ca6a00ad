"""The deterministic simulator: a cluster, its clients and what goes wrong, in one thread.

    ./dev sim --seed N            one seed, told in full; writes a trace if something is broken
    ./dev sim --seeds N           the seeds 1 to N, on two processes, with totals and one digest
    ./dev debug TRACE             steps through the trace of a failing seed

Real: the overlay on PySyncObj, replica, fold, snapshots and history, all of the server below gRPC
(actors, timers, reads, pushes, services), the core, and the whole client library. Modelled: the
network, gRPC's transport, the disk (a journal that passes the real one's conformance suite, and a
directory of the state), threads, clocks, chance, and the child that seals. Left out: real files, so
nobody reads or fetches a segment; tests/storage and tests/cluster break these.

The same seed gives the same history, byte for byte, on any machine with the same versions.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import time
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from simulation.faults import Planned
    from simulation.ledger import SeedResult
    from simulation.outcome import Outcome

WORKERS: Final = 2
TOLD_EVERY: Final = 25
SHOWN_MAX: Final = 12
"""Violations of one seed that are printed; the trace has what led to all of them."""


def main(arguments: Sequence[str]) -> int:
    """Run what was asked for; 1 if a seed is broken."""
    asked = _parse(arguments)
    if asked.seed is not None:
        return _one(asked.seed, shrinking=not asked.no_shrink, only=asked.faults)
    return _many(range(asked.first, asked.first + asked.seeds), asked.workers, asked.ledger)


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="./dev sim", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--seed", type=int, help="run this seed")
    which.add_argument("--seeds", type=int, help="run so many seeds")
    parser.add_argument("--first", type=int, default=1, help="the first of them (1)")
    parser.add_argument("--workers", type=int, default=WORKERS, help=f"processes ({WORKERS})")
    parser.add_argument("--ledger", type=Path, help="add the totals to this file")
    parser.add_argument(
        "--no-shrink", action="store_true", help="keep all faults of a failing seed"
    )
    parser.add_argument(
        "--faults", help="only these of the seed's faults, by number: 3,7,12; '' for none"
    )
    return parser.parse_args(arguments)


# --- one seed ---


def _one(seed: int, *, shrinking: bool, only: str | None) -> int:
    from simulation import outcome, telling, trace  # noqa: PLC0415 - after the hash seed is pinned

    began = time.process_time()
    done = outcome.run_seed(seed, faults=_chosen(seed, only))
    print(telling.of_seed(result_of(done, time.process_time() - began)))
    if done.clean:
        return 0
    if shrinking and only is None:
        done = _shrunk(done)
    for broken in done.violations[:SHOWN_MAX]:
        print(f"  {broken.at_us / 1e6:10.6f} s  {broken.invariant}: {broken.what}")
    path = trace.write(done)
    print(f"\ntrace: {path}      ./dev debug {path}")
    print(f"replay: {replay_command(done)}")
    return 1


def _chosen(seed: int, only: str | None) -> list[Planned] | None:
    if only is None:
        return None
    from simulation import outcome  # noqa: PLC0415 - after the hash seed is pinned

    numbers = {int(number) for number in only.split(",") if number}
    every = outcome.planned(seed, outcome.shape_of(seed))
    return [fault for fault in every if fault.number in numbers]


def _shrunk(done: Outcome) -> Outcome:
    """The same seed with the faults that its first violation needs."""
    from simulation import outcome, shrink  # noqa: PLC0415 - after the hash seed is pinned

    invariant = done.violations[0].invariant

    def fails(faults: Sequence[Planned]) -> bool:
        again = outcome.run_seed(done.seed, faults=faults)
        return any(broken.invariant == invariant for broken in again.violations)

    print(f"  {len(done.faults)} faults; looking for those that {invariant} needs ...")
    left = shrink.shrink(done.faults, fails)
    named = ", ".join(f"{fault.number} {fault.kind}" for fault in left)
    print(f"  {len(left)} are enough: {named}" if left else "  none is needed")
    return outcome.run_seed(done.seed, faults=left)


def replay_command(done: Outcome) -> str:
    """The one command that runs this again."""
    numbers = ",".join(str(fault.number) for fault in done.faults)
    return f"./dev sim --seed {done.seed} --faults {shlex.quote(numbers)}"


def result_of(done: Outcome, cpu_s: float) -> SeedResult:
    """What is kept of a run."""
    from simulation.ledger import SeedResult  # noqa: PLC0415 - after the hash seed is pinned

    return SeedResult(
        done.seed,
        done.digest,
        done.simulated_us,
        done.healed_after_us,
        dict(done.counts),
        dict(done.fault_counts),
        tuple(tuple(broken) for broken in done.violations),  # type: ignore[misc]  # three each
        cpu_s,
    )


# --- many seeds ---


def run_one(seed: int) -> SeedResult:
    """One seed of many, in a worker."""
    from simulation import outcome, trace  # noqa: PLC0415 - after the hash seed is pinned

    began = time.process_time()
    done = outcome.run_seed(seed)
    if not done.clean:
        trace.write(done)
    return result_of(done, time.process_time() - began)


def _many(seeds: Iterable[int], workers: int, ledger: Path | None) -> int:
    from simulation import telling  # noqa: PLC0415 - after the hash seed is pinned
    from simulation.ledger import Totals, add_to  # noqa: PLC0415 - as above

    totals, results = Totals(), []
    for result in _results(seeds, workers):
        totals.add(result)
        results.append(result)
        if result.violations:
            print(telling.of_failure(result), flush=True)
        elif sys.stdout.isatty():
            print(f"\r\033[K  {totals.seeds} seeds", end="", flush=True)
        elif totals.seeds % TOLD_EVERY == 0:
            print(f"  {totals.seeds} seeds", flush=True)
    print(telling.of_totals(totals, results))
    if ledger is not None:
        known = add_to(ledger, totals)
        print(f"ledger {ledger}: {known['seeds']} seeds in {known['runs']} runs")
    return 1 if totals.failing else 0


def _results(seeds: Iterable[int], workers: int) -> Iterator[SeedResult]:
    if workers <= 1:
        yield from map(run_one, seeds)
        return
    with get_context("spawn").Pool(workers, maxtasksperchild=25) as pool:
        yield from pool.imap_unordered(run_one, seeds)


def with_pinned_hashes() -> None:
    """Start anew unless the hashes of texts are the same in every run: the engine keeps sets."""
    if os.environ.get("PYTHONHASHSEED") != "0":
        environment = {**os.environ, "PYTHONHASHSEED": "0"}
        os.execve(sys.executable, [sys.executable, *sys.argv], environment)  # noqa: S606 - ourselves


if __name__ == "__main__":
    with_pinned_hashes()
    sys.exit(main(sys.argv[1:]))

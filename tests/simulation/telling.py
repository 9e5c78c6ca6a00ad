"""Results in words, for people: one seed, a failing one among many, and the totals. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simulation.ledger import digest_over

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Sequence

    from simulation.ledger import SeedResult, Totals

US = 1_000_000


def of_seed(result: SeedResult) -> str:
    """One seed in full."""
    counts = result.counts
    simulated_s = result.simulated_us / US
    speed = simulated_s / result.cpu_s if result.cpu_s else 0.0
    healed = "never" if result.healed_after_us is None else f"{result.healed_after_us / US:.1f} s"
    lines = [
        (
            f"seed {result.seed}: {simulated_s:.0f} s simulated in {result.cpu_s:.1f} s of "
            f"processor time ({speed:.0f} times as fast), {counts['events']:,} events"
        ),
        (
            f"  {counts['calls']:,} calls, {counts['acknowledged']:,} acknowledged changes, "
            f"{counts['records']:,} records, {counts['grants']:,} grants, "
            f"{counts['moves']:,} moves, {counts['writes']:,} writes, {counts['watched']:,} watched"
        ),
        f"  {counts['elections']} elections, {counts['installs']} installs, healed after {healed}",
        *_of_nodes(counts),
        f"  {counts['faults']} faults: {_by_kind(result.faults)}",
        f"  digest {result.digest}",
    ]
    return "\n".join(lines)


def of_failure(result: SeedResult) -> str:
    """A failing seed among many, with the command that runs it again."""
    invariant, at_us, what = result.violations[0]
    return (
        f"seed {result.seed} is broken: {len(result.violations)} violations, the first at "
        f"{at_us / US:.3f} s: {invariant}: {what[:300]}\n  replay: ./dev sim --seed {result.seed}"
    )


def of_totals(totals: Totals, results: Sequence[SeedResult]) -> str:
    """The totals of a run of many seeds."""
    counts, cpu_s = totals.counts, sum(result.cpu_s for result in results)
    healed = sorted(r.healed_after_us for r in results if r.healed_after_us is not None)
    lines = [
        (
            f"{totals.seeds} seeds, {totals.hours:.2f} simulated hours in {cpu_s:,.0f} s of "
            f"processor time ({totals.simulated_us / US / max(cpu_s, 0.001):.0f} times as fast)"
        ),
        (
            f"  {counts['events']:,} events, {counts['happenings']:,} happenings, "
            f"{counts['calls']:,} calls"
        ),
        (
            f"  {counts['acknowledged']:,} acknowledged changes, {counts['records']:,} records, "
            f"{counts['moves']:,} moves, {counts['writes']:,} writes"
        ),
        f"  {counts['elections']:,} elections, {counts['installs']:,} installs",
        *_of_nodes(counts),
        f"  healed after: median {_part(healed, 0.5)}, 99 % {_part(healed, 0.99)}",
        f"  {counts['faults']:,} faults: {_by_kind(totals.faults)}",
        f"  digest over all seeds: {digest_over(results)}",
        f"  broken seeds: {', '.join(map(str, sorted(totals.failing))) or 'none'}",
    ]
    return "\n".join(lines)


def _of_nodes(counts: dict[str, int] | Counter[str]) -> list[str]:
    """What became of the nodes, where they came and went."""
    if not counts["changes_asked"]:
        return []
    made, told = counts["node_changes"], counts["nodes_told"]
    of_asked = f"{counts['changes_asked']:,} times asked for, {counts['changes_refused']:,} refused"
    return [f"  {made:,} changes of nodes, {of_asked}; {told:,} nodes ended as they were removed"]


def _part(sorted_us: Sequence[int], part: float) -> str:
    if not sorted_us:
        return "never"
    return f"{sorted_us[min(len(sorted_us) - 1, int(part * len(sorted_us)))] / US:.1f} s"


def _by_kind(counts: dict[str, int] | Counter[str]) -> str:
    return ", ".join(f"{kind} {count}" for kind, count in sorted(counts.items())) or "none"

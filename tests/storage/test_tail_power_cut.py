"""S18, S21: the power fails at every operation of the journal's tail; nothing acknowledged is lost.

Sectors that were not synced survive at random, torn and in any order; starts are cut as well. What
was acknowledged is judged by the model in memory. A test names its seed: the same line with
`-k SEED` behind it plays it again.
"""

from __future__ import annotations

import copy
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING, NamedTuple

import pytest

from holdfast.storage.errors import JournalDamaged
from storage.histories import History
from storage.tail_power import SECTOR, Killed, Machine, PowerCut, Started

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.storage.journal.journal import JournalImage

pytestmark = pytest.mark.slow

SEEDS = range(6)
COMMITS = 40
CUTS_IN_STARTS = 2


class Ended(NamedTuple):
    """How a life ended: how many batches were acknowledged, and whether the power had failed."""

    acknowledged: int
    cut: bool


def lived(machine: Machine, history: History, first: int) -> Ended:
    """Start on what the disk has, check it, and commit from batch `first` on until the power fails.

    The helper falls behind or keeps up, as chance has it.
    """
    done = first
    try:
        started = Started(machine)
        started.journal.load()
        for batch in history.batches[first:]:
            started.journal.commit(batch)
            done += 1
            if machine.random.random() < 0.5:
                started.helper.run()
        started.journal.close()
    except PowerCut:
        return Ended(done, cut=True)
    assert started.files.opened == [], "a file was left open"
    return Ended(done, cut=False)


def start(machine: Machine) -> JournalImage:
    """What a start finds, though the power may fail in the first ones."""
    for _ in range(CUTS_IN_STARTS):
        machine.cut_at = machine.steps + machine.random.randint(1, 8)
        try:
            started = Started(machine)
            started.journal.load()
            started.journal.close()
        except PowerCut:
            continue
    machine.cut_at = None
    started = Started(machine)
    image = started.journal.load()
    started.journal.close()
    return image


def sound_start(machine: Machine, told: str) -> JournalImage:
    """The same on a disk that kept what it promised: there is no damage to be found."""
    try:
        return start(machine)
    except JournalDamaged as damaged:
        raise AssertionError(f"{told}: {damaged.reason}") from damaged


@pytest.mark.parametrize("seed", SEEDS)
def test_s18_whatever_the_power_leaves_each_acknowledged_batch_is_there(seed: int) -> None:
    """The batch that was under way is there whole or not at all; the node goes on from there."""
    history = History(Random(f"history {seed}"), COMMITS)
    whole = Machine(Random(seed))
    lived(whole, history, 0)
    for cut_at in range(1, whole.steps + 1):
        machine = Machine(Random(f"{seed} {cut_at}"))
        machine.cut_at = cut_at
        acknowledged = lived(machine, history, 0).acknowledged

        told = f"seed {seed}, cut at operation {cut_at}"

        image = sound_start(machine, told)

        allowed = history.images[acknowledged : acknowledged + 2]
        assert image in allowed, told
        reached = acknowledged + allowed.index(image)
        assert lived(machine, history, reached) == Ended(COMMITS, cut=False)
        assert sound_start(machine, told) == history.images[-1], told


@pytest.mark.parametrize("seed", SEEDS)
def test_s18_what_a_start_has_read_outlives_a_power_cut(seed: int) -> None:
    """A killed process leaves a batch written, not synced: the next one reads it, and may ack it.

    So it must be on the disk, and not only in the kernel's memory, when the start ends.
    """
    history = History(Random(f"history {seed}"), COMMITS)
    whole = Machine(Random(seed))
    lived(whole, history, 0)
    for kill_at in range(1, whole.steps + 1):
        machine = Machine(Random(f"{seed} {kill_at}"))
        machine.kill_at = kill_at
        with suppress(Killed):
            lived(machine, history, 0)
        read = Started(machine).journal.load()
        with pytest.raises(PowerCut):
            machine.die()

        told = f"seed {seed}, killed at operation {kill_at}"
        assert sound_start(machine, told) == read, told


@pytest.mark.parametrize("marked", [True, False])
@pytest.mark.parametrize("seed", SEEDS)
def test_s21_a_flipped_bit_is_damage_or_harmless_or_in_the_last_batch(
    seed: int, *, marked: bool
) -> None:
    """With a mark, also in the last batch; without one that looks torn, and peers must tell."""
    history = History(Random(f"history {seed}"), COMMITS)
    whole = Machine(Random(seed))
    lived(whole, history, 0)
    last_file, begin, end = whole.last_batch
    damaged = looked_torn = 0
    for name, at in places(whole):
        machine = copy.deepcopy(whole)
        machine.mark = whole.mark if marked else 0
        machine.durable[name][at] ^= 1 << machine.random.randrange(8)
        in_last = name == last_file and begin <= at < end
        try:
            image = start(machine)
        except JournalDamaged:
            damaged += 1
            continue
        told = f"seed {seed}, a bit of byte {at} of {name}"
        assert image == history.images[-1] or (in_last and not marked), told
        assert image in history.images[-2:], told
        looked_torn += image == history.images[-2]
    assert damaged > 10
    assert bool(looked_torn) == (not marked), "flips were tried in the last batch, too"


def places(machine: Machine) -> Iterator[tuple[str, int]]:
    """Bytes that a start reads: some of each sector, and each of the head of a batch."""
    for name, content in sorted(machine.durable.items()):
        for sector in range(0, len(content), SECTOR):
            yield from ((name, sector + at) for at in range(28))
            yield name, sector + machine.random.randrange(SECTOR)

"""S18, S21: whole simulated clusters over the journal's tail: the same runs, to the last byte."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from holdfast.storage.journal import tailed_journal
from simulation import nodes
from simulation.outcome import run_seed
from simulation.tailed_disk import TailedJournal
from teeth.weather import Weather

pytestmark = pytest.mark.slow

DEATHS = Weather(("crash", "power-cut", "failed-sync", "slow-disk", "snapshot"), 20.0)
SEED = 3
"""One in which a death tears a batch; most deaths come between two syncs."""


def test_a_cluster_over_the_tail_runs_as_over_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deaths tear batches, starts read them again, and no answer, digest or moment differs."""
    faults = DEATHS.faults(SEED)
    model = run_seed(SEED, faults=faults, shape=DEATHS.shape)
    monkeypatch.setattr(nodes, "SyncedJournal", TailedJournal)
    # A journal's id is drawn by chance, which the run over the model does not draw.
    monkeypatch.setattr(tailed_journal, "secrets", SimpleNamespace(token_bytes=bytes))
    starts, torn = TailedJournal.starts, TailedJournal.torn

    tailed = run_seed(SEED, faults=faults, shape=DEATHS.shape)

    assert tailed.violations == model.violations == ()
    assert tailed.digest == model.digest
    assert TailedJournal.starts > starts + 3, "all three nodes started, and some again"
    assert TailedJournal.torn > torn

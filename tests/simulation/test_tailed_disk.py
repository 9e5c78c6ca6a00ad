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

FAILED_SYNCS = Weather(("failed-sync",), 20.0)
"""Each ends its node, and half of them tear the batch that is being written."""
DEATHS = Weather(("crash", "power-cut", "failed-sync", "slow-disk", "snapshot"), 20.0)
SEED = 3


@pytest.fixture(autouse=True)
def _same_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    """A journal's id is drawn by chance, which the run over the model does not draw."""
    monkeypatch.setattr(tailed_journal, "secrets", SimpleNamespace(token_bytes=bytes))


def runs_are_the_same(monkeypatch: pytest.MonkeyPatch, weather: Weather) -> None:
    """The same seed over the model and over the tail: no answer, digest or moment differs."""
    faults = weather.faults(SEED)
    model = run_seed(SEED, faults=faults, shape=weather.shape)
    monkeypatch.setattr(nodes, "SyncedJournal", TailedJournal)
    starts = TailedJournal.starts

    tailed = run_seed(SEED, faults=faults, shape=weather.shape)

    assert tailed.violations == model.violations == ()
    assert tailed.digest == model.digest
    assert TailedJournal.starts > starts + 3, "all three nodes started, and some again"


def test_a_cluster_over_the_tail_runs_as_over_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """S18: deaths of every kind, slow disks and snapshots, which cut the journal."""
    runs_are_the_same(monkeypatch, DEATHS)


def test_batches_that_deaths_tear_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """S21: nobody has heard of a torn batch, so a start leaves it out and nobody can tell."""
    torn = TailedJournal.torn
    runs_are_the_same(monkeypatch, FAILED_SYNCS)
    assert TailedJournal.torn > torn

"""Clients of both protocols in one group: one owner each, and nobody waits for ever (K-Q)."""

import os

import pytest

from conformance.in_process import InProcess
from property.kafka_consumer_model import LATE_MS
from property.mixed_crowd import Crowd

PARTITIONS, STEPS = 6, 60
SEEDS = range(60)
WAITS: dict[str, dict[str, str]] = {
    "at once": {},
    "late": {"group.consumer.inline.work": "0"},
    "put off": {"group.consumer.assignment.interval.ms": "1000"},
}
"""When a target comes to a group that needs one: settings by their Kafka names."""


def seeds() -> list[int]:
    chosen = os.environ.get("SEED")
    return [int(chosen)] if chosen else list(SEEDS)


@pytest.mark.parametrize("comes", WAITS)
@pytest.mark.parametrize("seed", seeds())
def test_no_partition_has_two_owners_and_in_the_end_each_has_one(seed: int, comes: str) -> None:
    """K-M20, K-P15: also if each target comes later than the calls that need it."""
    print(f"again: SEED={seed} ./dev test property -- -k test_mixed_crowds")
    session = InProcess(WAITS[comes], {"t": PARTITIONS})
    session.core.compute_ms = LATE_MS
    crowd = Crowd(seed, session, PARTITIONS)
    for _ in range(STEPS):
        crowd.step()
    crowd.calm_down()

    works = {client.name: sorted(client.works) for client in crowd.clients}
    owned = sum(len(places) for places in works.values())
    assert owned == (crowd.partitions if crowd.clients else 0), works
    session.core.check_replays()

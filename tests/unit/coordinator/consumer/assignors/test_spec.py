"""A target does not depend on the hash seed of its process (K-P12, K-P13, K-P14)."""

from __future__ import annotations

import os
import subprocess
import sys

SCRIPT = """
import hashlib, random
from holdfast.coordinator.consumer.assignors import ASSIGNORS, GroupSpec, MemberSpec

chance = random.Random(20)
topics = [f"topic-{n}" for n in range(12)]
counts = {topic: chance.randrange(1, 30) for topic in topics}
wanted = [frozenset(chance.sample(topics, 5)) for _ in range(40)]
for mixed in (False, True):
    current = {}
    for count in (40, 33, 36):
        members = {
            f"m-{n}": MemberSpec(None, None, wanted[n * mixed], current.get(n, ()))
            for n in range(count)
        }
        for name in ("range", "uniform"):
            target = ASSIGNORS[name](GroupSpec(members, not mixed), counts)
            print(hashlib.sha256(repr(target).encode()).hexdigest())
        current = {n: target[f"m-{n}"] for n in range(count)}
"""


def test_targets_do_not_depend_on_the_hash_seed() -> None:
    """Sets of topics are walked in another order under each seed; replicas must not differ."""
    outputs = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }

    assert len(outputs) == 1
    assert len(outputs.pop().split()) == 12

"""What the core decides does not depend on the order of a set or dict of hashed keys."""

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import asyncio, hashlib, sys
from conformance.in_process import InProcess
from conformance.replayer import TRANSCRIPTS, load, replay
transcript = load(TRANSCRIPTS / "random_016.json")
session = InProcess(transcript["config"], transcript["topics"])
asyncio.run(replay(transcript, session))
told = repr([applied.records for applied in session.core.log]) + repr(session.core.state)
print(hashlib.sha256(told.encode()).hexdigest())
"""


def test_the_core_does_not_depend_on_hash_order() -> None:
    """It is deterministic under any PYTHONHASHSEED, or replicas would differ."""
    tests = Path(__file__).parents[2]
    roots = os.pathsep.join([str(tests), *sys.path])
    digests = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": roots},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }

    assert len(digests) == 1
    assert len(digests.pop()) == 65

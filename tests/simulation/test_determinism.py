"""The same seed is the same run, byte for byte, wherever and however it is started."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from simulation.outcome import BUSY, run_seed

TESTS: Final = Path(__file__).parents[1]
SHORT: Final = "BUSY._replace(fault_s=(4.0, 10.0))"
PROGRAM: Final = f"""
from simulation.run import with_pinned_hashes
with_pinned_hashes()
from simulation.outcome import BUSY, run_seed
print(run_seed(5, shape={SHORT}).digest)
"""


def digest_in_a_process(folder: Path, hash_seed: str) -> str:
    """What a process of its own finds, started with this hash seed in its environment."""
    path = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": path}
    script = folder / "digest.py"
    script.write_text(PROGRAM)
    command = [sys.executable, str(script)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def test_two_processes_find_the_same_digest(tmp_path: Path) -> None:
    """One starts with another hash seed in its environment, and pins it by starting anew."""
    assert digest_in_a_process(tmp_path, "0") == digest_in_a_process(tmp_path, "12345")


def test_another_seed_is_another_run() -> None:
    shape = BUSY._replace(fault_s=(4.0, 6.0))

    assert run_seed(1, shape=shape).digest != run_seed(2, shape=shape).digest

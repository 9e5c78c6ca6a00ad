"""Our search and Porcupine judge the same histories alike (INV-7).

Porcupine (github.com/anishathalye/porcupine) is a tool of this test only. Where Go is not
installed, or the module cannot be had, the test is skipped and says why.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from random import Random
from typing import Final

import pytest

from holdfast.chaos.evidence.offset_registers import step
from holdfast.chaos.evidence.wgl import Operation, search
from unit.chaos.evidence.registers import START, random_history, spoilt_history

HERE: Final = Path(__file__).parent
SMALL: Final = 2_000
LARGE: Final = 200
BUILD_S: Final = 120
JUDGE_S: Final = 120


@pytest.fixture(scope="module")
def porcupine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the few lines of Go beside this file."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("Porcupine was not asked: there is no `go` on PATH")
    program = tmp_path_factory.mktemp("porcupine") / "porcupine"
    command = [go, "build", "-o", str(program), "."]
    try:
        done = subprocess.run(
            command, cwd=HERE, capture_output=True, text=True, check=False, timeout=BUILD_S
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"Porcupine was not asked: `go build` took more than {BUILD_S} s")
    if done.returncode:
        pytest.skip(f"Porcupine was not asked: {done.stderr.strip().splitlines()[-1]}")
    return program


def judged(porcupine: Path, histories: list[list[Operation]]) -> list[bool]:
    """What Porcupine says; it takes an operation of unknown outcome as one that never ends."""
    lines = [json.dumps([_row(each) for each in history]) for history in histories]
    done = subprocess.run(
        [str(porcupine)],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=True,
        timeout=JUDGE_S,
    )
    return [line == "true" for line in done.stdout.splitlines()]


def _row(operation: Operation) -> list[object]:
    end = 1 << 40 if operation.end_us is None else operation.end_us
    return [operation.what.kind[0], operation.what.value, operation.start_us, end]


@pytest.mark.slow
def test_porcupine_says_the_same(porcupine: Path) -> None:
    names = [f"random_history(Random({seed}))" for seed in range(SMALL)]
    histories = [random_history(Random(seed)) for seed in range(SMALL)]
    names += [f"spoilt_history(Random({seed}), 60)" for seed in range(LARGE)]
    histories += [spoilt_history(Random(seed), 60) for seed in range(LARGE)]

    expected = judged(porcupine, histories)
    found = [search(history, START, step).linearizable for history in histories]

    differ = [name for name, a, b in zip(names, found, expected, strict=True) if a is not b]
    assert differ == [], "unit.chaos.evidence.registers makes them"
    assert {*expected[:SMALL]} == {*expected[SMALL:]} == {True, False}

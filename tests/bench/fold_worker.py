"""Folds a log's payloads and tells how long it took: `python fold_worker.py FILE PASSES`.

A program of its own, since it runs in the environment and with the code of any checkout: it
imports nothing of the tests. Processor time of its one thread.
"""

from __future__ import annotations

import gc
import json
import struct
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def found() -> tuple[Any, Callable[..., Any]]:
    """A fold of nothing yet, and the function that gives it an entry, as this code has them."""
    try:
        state, rules = "holdfast.coordinator.model.state", "holdfast.runtime.replica.state_machine"
        made = import_module(rules).StateMachine(import_module(state).State())
    except ModuleNotFoundError:  # 0.1.0 has the same in other rooms
        state, rules = "holdfast.coordinator.state", "holdfast.raft.fold"
        made = import_module(rules).Fold(import_module(state).State())
        return made, made.step
    return made, made.apply


def read(file: Path) -> list[bytes]:
    """The payloads, each after its length."""
    data, at, found = file.read_bytes(), 0, []
    while at < len(data):
        (size,) = struct.unpack_from(">I", data, at)
        found.append(data[at + 4 : at + 4 + size])
        at += 4 + size
    return found


def fold(payloads: list[bytes]) -> tuple[float, str]:
    """Seconds, and the hash of the chain over all records."""
    machine, apply = found()
    began = time.thread_time()
    for index, payload in enumerate(payloads, 1):
        apply(index, 1, payload)
    seconds = time.thread_time() - began
    return seconds, machine.digest()[-32:].hex()


def main() -> None:
    """Fold it as often as asked for."""
    payloads = read(Path(sys.argv[1]))
    gc.freeze()  # what is held anyway is not looked through again and again
    passes = [fold(payloads) for _ in range(int(sys.argv[2]))]
    chains = sorted({chain for _, chain in passes})
    print(json.dumps({"seconds": min(seconds for seconds, _ in passes), "chains": chains}))


if __name__ == "__main__":
    main()

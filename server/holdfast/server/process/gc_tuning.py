"""Tune the interpreter of a node's process: the garbage collector and the switching of threads.

A start makes modules, classes and the state, which stay. Collections while it does so took a
fifth of its processor time; without any it leaves 0.4 MB that nobody needs.

The state is a large tree of immutable values, freed by reference counting as changes replace its
branches: it needs no collection, but each collection walks it. With Python's defaults collections
took a tenth to a fifth of a change's processor time, and stopped loop and engine while they ran.

The loop, the engine and gRPC's threads share the interpreter's lock. A busy loop releases it only
when the switch interval has passed. With Python's default of 5 ms each call and each entry waited
for that several times: beside 2,000 heartbeats of unknown members in a closed loop a commit took
140 ms instead of 30. Knows nothing of the node.
"""

from __future__ import annotations

import gc
import sys
from typing import Final

YOUNG_MAX: Final = 20_000
"""Objects made and not freed before a young collection (default 700): 10 MB at most."""
SEARCHES_A_STEP: Final = (20, 50)
"""Collections of one generation before the next older generation is collected, too."""
TURN_S: Final = 0.0005
"""Switch interval: seconds after which a waiting thread gets the interpreter's lock."""


def begin_start() -> None:
    """Collect nothing until `settle`: what a start makes, the process keeps."""
    gc.disable()


def settle() -> None:
    """Exempt all present objects from collection, and collect from now, but less often."""
    sys.setswitchinterval(TURN_S)
    gc.freeze()
    gc.set_threshold(YOUNG_MAX, *SEARCHES_A_STEP)
    gc.enable()

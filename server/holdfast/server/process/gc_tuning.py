"""How a node's process uses its interpreter: the search for cyclic garbage, and turns of threads.

The state is a large tree of immutable values, freed by counting as changes replace its branches: no
search is needed for it, and each one walks it. With Python's defaults the search took a tenth to a
fifth of a change's processor time, and held up loop and engine alike while it ran.

The loop, the engine and gRPC's threads take turns. A loop that always has something to do gives its
turn away only when it is asked to. With Python's default of 5 ms each call and each entry waited
for that several times: beside 2,000 heartbeats of nobody in a closed loop a commit took 140 ms
instead of 30. Knows nothing of the node.
"""

from __future__ import annotations

import gc
import sys
from typing import Final

YOUNG_MAX: Final = 20_000
"""Objects made and not freed before the young ones are looked at (default 700): 10 MB at most."""
SEARCHES_A_STEP: Final = (20, 50)
"""How many searches of one generation before the next older one is looked at, too."""
TURN_S: Final = 0.0005
"""Seconds after which a thread that waits for its turn is given it."""


def settle() -> None:
    """Search once, leave out for ever what is there now, and search less often from here on."""
    sys.setswitchinterval(TURN_S)
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_MAX, *SEARCHES_A_STEP)

"""How often a node's process looks for cyclic garbage.

The state is a large tree of immutable values, freed by counting as changes replace its branches: no
search is needed for it, and each one walks it. With Python's defaults the search took a tenth to a
fifth of a change's processor time, and held up loop and engine alike while it ran. Knows nothing
of the node.
"""

from __future__ import annotations

import gc
from typing import Final

YOUNG_MAX: Final = 20_000
"""Objects made and not freed before the young ones are looked at (default 700): 10 MB at most."""
SEARCHES_A_STEP: Final = (20, 50)
"""How many searches of one generation before the next older one is looked at, too."""


def settle() -> None:
    """Search once, leave out for ever what is there now, and search less often from here on."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_MAX, *SEARCHES_A_STEP)

"""The environment of the processes that tests start: this checkout, whether installed or not."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def environment() -> dict[str, str]:
    """Ours, with the checkout importable, and nothing that would configure a node."""
    roots = [path for path in sys.path if path.startswith(str(Path(__file__).parents[2]))]
    inherited = os.environ.get("PYTHONPATH", "")
    kept = {k: v for k, v in os.environ.items() if not k.startswith("HOLDFAST_")}
    # Without empty parts: one would mean the child's working directory.
    return {**kept, "PYTHONPATH": os.pathsep.join(filter(None, [*roots, inherited]))}

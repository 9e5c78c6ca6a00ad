"""Whether the rules run as source or compiled: wheels may carry them either way (docs/adr/0022).

For people who ask how a node runs. Nothing may be decided on it: both do the same.
"""

from __future__ import annotations

from types import FunctionType

from holdfast.coordinator.kernel.apply import apply_entry


def are_compiled() -> bool:
    """Return whether the rules run compiled; all of them do, or none."""
    return not isinstance(apply_entry, FunctionType)

"""What the tests of the journal's tail begin with."""

from __future__ import annotations

from random import Random

import pytest

from storage.tail_power import Machine


@pytest.fixture
def machine() -> Machine:
    """A machine with an empty disk."""
    return Machine(Random(0))

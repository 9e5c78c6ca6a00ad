"""Every test of the core replays its log: what was decided once is a fact on any cut."""

from collections.abc import Iterator

import pytest

from harness.calls import Calls


@pytest.fixture
def calls() -> Iterator[Calls]:
    """A core with one group; after the test its log is replayed from scratch and from every cut."""
    made = Calls()
    yield made
    made.core.check_replays()

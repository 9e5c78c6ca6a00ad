"""What holds for every test: marks by folder, and random tests that tell how to repeat them."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

TESTS = Path(__file__).parent
MARKED_FOLDERS = {"cluster": "cluster", "spark": "spark"}

# No deadline: how long an example takes says something about the machine, not about the code.
settings.register_profile(
    "holdfast", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("holdfast")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of a folder that needs processes or Java, so that none can be forgotten."""
    for item in items:
        folder = item.path.relative_to(TESTS).parts[0]
        if folder in MARKED_FOLDERS:
            item.add_marker(MARKED_FOLDERS[folder])


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--rewrite`: stories are not judged but told anew (tests/stories)."""
    parser.addoption("--rewrite", action="store_true", help="write what happens now into stories")

"""What holds for every test: marks by folder, and random tests that tell how to repeat them.

And that the rules which are tested are the source, or compiled (docs/adr/0022), as was asked for.
"""

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from holdfast.coordinator.kernel import form

TESTS = Path(__file__).parent
MARKED_FOLDERS = {"cluster": "cluster", "spark": "spark"}

# No deadline: how long an example takes says something about the machine, not about the code.
settings.register_profile(
    "holdfast", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("holdfast")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Let no search for cycles go through what stays until the end: modules, and all tests.

    While it grows, the searches would take a quarter of the time of collecting.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests of a folder that needs processes or Java, so that none can be forgotten.

    With compiled rules, tests that need the source are skipped, and pytest names each of them.
    """
    for item in items:
        folder = item.path.relative_to(TESTS).parts[0]
        if folder in MARKED_FOLDERS:
            item.add_marker(MARKED_FOLDERS[folder])
        needs = item.get_closest_marker("source")
        if needs and not needs.args:
            raise pytest.UsageError(f"{item.nodeid}: the mark `source` lacks its reason, a text")
        if needs and config.getoption("--compiled"):
            why = f"{item.name} needs the source: {needs.args[0]}"  # listed at the end, by name
            item.add_marker(pytest.mark.skip(reason=why))


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--rewrite`: stories are not judged but told anew (tests/stories).

    `--compiled`: the rules must be the compiled ones; without it they must be the source.
    """
    parser.addoption("--rewrite", action="store_true", help="write what happens now into stories")
    parser.addoption("--compiled", action="store_true", help="the rules must be compiled ones")


def pytest_configure(config: pytest.Config) -> None:
    """Test no other rules than those that were asked for."""
    if form.are_compiled() != config.getoption("--compiled"):
        raise pytest.UsageError(
            f"the rules are not the ones to test: see {form.__file__}. `./dev test` tests the "
            "source, `./dev test --compiled` compiled ones"
        )

"""A pytest plugin: lays the defect that HOLDFAST_DEFECT names over every test that is run.

Tells, in one line, whether what failed first is an assertion of the test, or something else.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from teeth.catalogue import catalogue

if TYPE_CHECKING:
    from collections.abc import Generator

_told: list[str] = []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Generator[None, object, object]:
    """Lie over fixtures as well: they build what the test looks at."""
    del item, nextitem
    with catalogue()[os.environ["HOLDFAST_DEFECT"]].patch():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note the first failure."""
    error = call.excinfo
    if error is not None:
        named = error.errisinstance((AssertionError, pytest.fail.Exception))
        first = str(error.value).strip().partition("\n")[0] or "an assertion failed"
        what = first if named else f"{call.when} of {item.nodeid}: {error.value!r}"
        _told.append(json.dumps({"asserted": named and call.when == "call", "what": what}))
    return (yield)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say it where the judge reads."""
    for told in _told[:1]:
        terminalreporter.write_line(f"teeth: {told}")

"""Children of these tests' nodes have the tests' priority, but for the tests of priority itself."""

from __future__ import annotations

import os

import pytest

from harness.children import environment
from holdfast.runtime.event_log import child

OF_PRIORITY = {"test_child", "test_low_priority"}


@pytest.fixture(autouse=True)
def children_are_not_starved(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    if request.path.stem not in OF_PRIORITY:
        monkeypatch.setattr(child, "LAUNCHER", "harness.same_priority")
        monkeypatch.setitem(os.environ, "PYTHONPATH", environment()["PYTHONPATH"])

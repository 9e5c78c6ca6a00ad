"""The order in which processes are given the files of a folder that they share: the longest first.

A long file that began last would end alone, with all other processes idle. Knows no folder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def longest_first(items: list[pytest.Item], folder: Path, longest: Sequence[str]) -> None:
    """Put these files first if the folder runs by itself: processes get files in this order.

    Fails if one is not there: its name in the list would hold a place for nothing.
    """
    missing = [name for name in longest if not (folder / name).exists()]
    if missing:
        raise pytest.UsageError(f"{folder}/conftest.py names files that are not there: {missing}")
    order = {folder / name: at for at, name in enumerate(longest)}
    if all(item.path.parent == folder for item in items):
        items.sort(key=lambda item: order.get(item.path, len(order)))

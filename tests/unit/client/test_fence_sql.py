"""S13: the SQL in docs/clients.md refuses an older token, per partition of each group."""

from __future__ import annotations

import re
import shutil
import sqlite3
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PAGE = Path(__file__).parents[3] / "docs" / "clients.md"
Guard: TypeAlias = "Callable[[str, str, int, int], int]"
"""Runs the statement for a group, a topic, a partition and a token; gives the row count."""
WITHIN_S = 20


def blocks() -> tuple[str, str]:
    table, guard = re.findall(r"^```sql\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    return table, guard


def in_sqlite() -> Iterator[Guard]:
    table, guard = blocks()
    store = sqlite3.connect(":memory:")
    store.execute(table)

    def run(group_id: str, topic: str, number: int, token: int) -> int:
        key = {"group_id": group_id, "topic": topic, "partition_number": number, "token": token}
        return store.execute(guard, key).rowcount

    yield run
    store.close()


def in_postgresql() -> Iterator[Guard]:
    """On the server that psql finds by PGHOST and its other variables; a temporary table."""
    psql = shutil.which("psql")
    if psql is None:
        pytest.skip("psql is not installed")
    quiet = [psql, "--no-psqlrc", "--no-password", "--set", "ON_ERROR_STOP=1"]
    asked = subprocess.run([*quiet, "--command", "SELECT 1"], capture_output=True, check=False)
    if asked.returncode:
        pytest.skip("no PostgreSQL server answers psql: name one with PGHOST, PGUSER, …")
    table, guard = blocks()
    table = table.replace("CREATE TABLE", "CREATE TEMPORARY TABLE")
    made: list[tuple[str, str, int, int]] = []

    def run(group_id: str, topic: str, number: int, token: int) -> int:
        """All statements so far in one session, since the table ends with it."""
        made.append((group_id, topic, number, token))
        script = table + "".join(_filled(guard, *each) for each in made)
        ended = subprocess.run(
            quiet, input=script, capture_output=True, text=True, timeout=WITHIN_S, check=True
        )
        return int(ended.stdout.splitlines()[-1].split()[-1])  # INSERT 0 1

    yield run


def _filled(guard: str, group_id: str, topic: str, number: int, token: int) -> str:
    values = {"group_id": f"'{group_id}'", "topic": f"'{topic}'"}
    values |= {"partition_number": str(number), "token": str(token)}
    return re.sub(r":(\w+)", lambda name: values[name[1]], guard)


@pytest.mark.parametrize("server", [in_sqlite, in_postgresql])
def test_s13_only_the_newest_holder_of_a_partition_writes(
    server: Callable[[], Iterator[Guard]],
) -> None:
    for guard in server():
        assert guard("g", "t", 0, 7) == 1, "the first"
        assert guard("g", "t", 0, 7) == 1, "the same holder again"
        assert guard("g", "t", 0, 9) == 1, "a newer one"
        assert guard("g", "t", 0, 8) == 0, "one that comes too late"
        assert guard("g", "t", 1, 7) == 1, "another partition has a maximum of its own"
        assert guard("h", "t", 0, 7) == 1, "and so has another group"
        assert guard("g", "t", 0, (1 << 48) + 3) == 1, "after a recovery"
        assert guard("g", "t", 0, 10_000) == 0

"""The matrix of permissions: every call of the contract, by every role and credential.

Prints a table; ends with 1 if a call has no rule, a cell is not as its rule says, or a name leaks.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from matrix.cells import Cell, cells, credentials, methods, tokens, undeclared
from matrix.world import ROLES, world


async def filled(folder: Path) -> tuple[list[Cell], list[Cell]]:
    """Make all calls, in one world."""
    async with world(folder) as made:
        by_role = [cell async for cell in cells(made)]
        by_credential = [cell async for cell in credentials(made, folder)]
        by_credential += [cell async for cell in tokens(made)]
    return by_role, by_credential


def table(by_role: list[Cell]) -> list[str]:
    """Write which role may make which call on its own things; all are refused on foreign ones."""
    names = dict.fromkeys(cell.name for cell in by_role)
    width = max(map(len, names))
    lines = [f"{'':{width}}  " + "  ".join(f"{role:8}" for role in ROLES)]
    for name in names:
        own = {c.role: c for c in by_role if c.name == name and c.thing == "own"}
        marks = ("LEAK" if own[r].problem else "yes" if own[r].allowed else "-" for r in ROLES)
        lines.append(f"{name:{width}}  " + "  ".join(f"{mark:8}" for mark in marks).rstrip())
    return lines


def main() -> int:
    """Fill the matrix and print it; returns the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        by_role, by_credential = asyncio.run(filled(Path(folder)))
    print("\n".join(table(by_role)))
    everything, missing = [*by_role, *by_credential], undeclared()
    wrong = [cell for cell in everything if cell.problem]
    for cell in wrong:
        print(f"WRONG {cell.name} by {cell.role} on {cell.thing}: {cell.problem}")
    declared = len(list(methods())) - len(missing)
    print(
        f"{declared} of {len(list(methods()))} calls declared; {len(by_role)} cells by role and "
        f"{len(by_credential)} by credential; {len(wrong)} wrong"
    )
    return 1 if wrong or missing else 0


if __name__ == "__main__":
    sys.exit(main())

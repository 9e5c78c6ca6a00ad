"""The matrix of permissions is whole, and each of its cells is as its rule says."""

import asyncio
from pathlib import Path

from holdfast.server.access.table import SESSION, TABLE
from matrix.cells import SERVICES, methods, undeclared
from matrix.expected import RULES
from matrix.run import filled


def test_every_call_of_the_contract_is_declared_and_nothing_else_is() -> None:
    """A new method needs a line in the server's table, a rule here, and a request."""
    assert undeclared() == []
    unary = {name for name in methods() if "/" not in name}
    assert set(TABLE) == {*unary, "GroupService.Session"}
    assert {f"GroupService.Session/{field}" for field in SESSION} == {
        name for name in methods() if "/" in name
    }
    assert {name.partition(".")[0] for name in RULES} == set(SERVICES)


def test_every_cell_is_as_its_rule_says_and_nothing_leaks(tmp_path: Path) -> None:
    by_role, by_credential = asyncio.run(filled(tmp_path))

    assert len(by_role) > len(RULES) * 5
    assert [cell for cell in (*by_role, *by_credential) if cell.problem] == []

"""Member sessions stand behind one interface: nobody outside their room knows which one it has."""

from pathlib import Path

import pytest

from tidy.repository import ROOT, module_name, plant, sources, where
from tidy.test_layers import imports, under

ROOM = "holdfast.client._session"
OPEN = ["member_session", "session_io", "health", "loss", "fatal_error", "unknown_commits"]
"""What of the room is the same for every protocol: the interface, and the values that cross it."""


def check_sessions(root: Path) -> list[str]:
    """The shells, chaos and all others import the interface and no session's own modules."""
    allowed = [f"{ROOM}.{module}" for module in OPEN]
    found = []
    for path in sources(root):
        module = module_name(root, path)
        if under(module, [ROOM]):
            continue
        for name, node, _ in imports(path, module):
            if under(name, [ROOM]) and not under(name, allowed):
                found.append(f"{where(root, path, node)}: {module} imports {name}")
    return found


SHELL = "clients/python/holdfast/client/aio/x.py"
BAD = [
    (SHELL, "from holdfast.client._session.session import Session"),
    (SHELL, "def f():\n    import holdfast.client._session.phases"),
    (SHELL, "if TYPE_CHECKING:\n    from holdfast.client._session.membership import Membership"),
    (SHELL, "from holdfast.client._session import ownership"),
    ("clients/python/holdfast/client/sync/x.py", "from .._session.lease import Lease"),
    ("clients/chaos/holdfast/chaos/x.py", "from holdfast.client._session import session"),
]
GOOD = [
    (SHELL, "from holdfast.client._session.member_session import make_session"),
    (SHELL, "from holdfast.client._session import session_io"),
    (
        "clients/python/holdfast/client/_session/x.py",
        "from holdfast.client._session.session import Session",
    ),
]


def test_nobody_outside_the_room_knows_a_sessions_own_modules() -> None:
    assert check_sessions(ROOT) == []


@pytest.mark.parametrize(("name", "text"), BAD)
def test_an_import_of_a_sessions_own_module_is_found(name: str, text: str, tmp_path: Path) -> None:
    assert len(check_sessions(plant(tmp_path, {name: text}))) == 1


@pytest.mark.parametrize(("name", "text"), GOOD)
def test_the_interface_may_be_imported(name: str, text: str, tmp_path: Path) -> None:
    assert check_sessions(plant(tmp_path, {name: text})) == []


def test_all_that_is_open_is_there() -> None:
    modules = {module_name(ROOT, path) for path in sources(ROOT)}

    assert {f"{ROOM}.{module}" for module in OPEN} <= modules

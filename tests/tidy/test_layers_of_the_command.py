"""The command imports the client; what serves, or reads disks, only inside functions."""

from pathlib import Path

import pytest

from tidy.repository import plant
from tidy.test_layers import CHECKS, check_directions

BAD = [
    ("clients/cli/holdfast/cli/x.py", "import holdfast.replay"),
    ("clients/cli/holdfast/cli/x.py", "from holdfast.coordinator import evolve"),
    (
        "clients/cli/holdfast/cli/connect.py",
        "from holdfast.server.rpc.grpc_options import channel_options",
    ),
    (
        "clients/cli/holdfast/cli/commands/group.py",
        "def f():\n    from holdfast.server.process import serve",
    ),
    (
        "clients/cli/holdfast/cli/target.py",
        "from holdfast.server.config import cluster_file",
    ),
    (
        "clients/cli/holdfast/cli/commands/cluster.py",
        "from holdfast.cli.local_cluster import start",
    ),
    (
        "clients/cli/holdfast/cli/commands/log.py",
        "from holdfast.cli.offline.stopped_log import export",
    ),
    (
        "clients/cli/holdfast/cli/commands/replay.py",
        "from holdfast.storage.codec.event_codec import decode_assignment",
    ),
    (
        "clients/cli/holdfast/cli/local_cluster/x.py",
        "import holdfast.runtime.replica",
    ),
    (
        "clients/cli/holdfast/cli/commands/chaos.py",
        "from holdfast.chaos import judge",
    ),
]
GOOD = [
    (
        "clients/cli/holdfast/cli/commands/chaos.py",
        "def chaos():\n    from holdfast.chaos import judge",
    ),
    (
        "clients/cli/holdfast/cli/commands/replay.py",
        "def replay():\n    from holdfast.replay import report",
    ),
    (
        "clients/cli/holdfast/cli/commands/replay.py",
        "if TYPE_CHECKING:\n    from holdfast.coordinator.model.state import State",
    ),
    ("clients/cli/holdfast/cli/connect.py", "from holdfast.client._rpc.caller import Caller"),
    (
        "clients/cli/holdfast/cli/commands/cluster.py",
        "def start():\n    from holdfast.cli.local_cluster import start",
    ),
    (
        "clients/cli/holdfast/cli/local_cluster/layout.py",
        "from holdfast.server.security import certificates",
    ),
]


@pytest.mark.parametrize(("name", "text"), BAD)
def test_what_a_command_may_not_load_is_found(name: str, text: str, tmp_path: Path) -> None:
    assert len(check_directions(plant(tmp_path, {name: text}))) == 1


@pytest.mark.parametrize(("name", "text"), GOOD)
def test_what_a_command_may_load_passes_every_check(name: str, text: str, tmp_path: Path) -> None:
    root = plant(tmp_path, {name: text})

    assert [check(root) for check in CHECKS] == [[]] * len(CHECKS)

"""What a container's supervisor asks: the node's own /livez, wherever its configuration has it."""

from __future__ import annotations

import importlib.util
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING

import pytest

from tidy.repository import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import ModuleType

NODE = """
[node]
name = "n"
data_dir = "data"
client_address = "127.0.0.1:7400"
peer_address = "127.0.0.1:7500"
[cluster]
id = "c"
[tls]
insecure_loopback = true
"""


@pytest.fixture
def livez(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("livez", ROOT / "deploy/docker/livez.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "livez", module)
    spec.loader.exec_module(module)
    module.HELD = tmp_path / "held"  # type: ignore[attr-defined]  # no other test's
    return module


class Answers(BaseHTTPRequestHandler):
    """Answers /livez as a node does, with the server's `status`."""

    def do_GET(self) -> None:
        assert isinstance(self.server, Node)
        self.send_response(self.server.status if self.path == "/livez" else 404)
        self.end_headers()
        self.wfile.write(b"[-] log: it stopped")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Node(HTTPServer):
    """Stands for a node."""

    status = 200


@pytest.fixture
def node() -> Iterator[Node]:
    with Node(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def configured(folder: Path, address: str) -> str:
    (folder / "node.toml").write_text(f'{NODE}\n[http]\naddress = "{address}"\n')
    return str(folder / "node.toml")


@pytest.mark.parametrize(("status", "code"), [(200, 0), (503, 1), (401, 1)])
def test_a_node_lives_if_it_says_so(
    livez: ModuleType,
    node: Node,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    status: int,
    code: int,
) -> None:
    node.status = status
    told = livez.main([configured(tmp_path, f"127.0.0.1:{node.server_port}")])

    assert told == code
    assert ("it stopped" in capsys.readouterr().err) == bool(code)


def test_a_node_that_nobody_can_ask_does_not_live(
    livez: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "node.toml").write_text(NODE)

    assert livez.main([str(tmp_path / "node.toml")]) == 1
    assert "http.address" in capsys.readouterr().err
    assert livez.main([str(tmp_path / "nowhere.toml")]) == 1
    assert livez.main([configured(tmp_path, "127.0.0.1:1")]) == 1


def test_a_held_node_lives_for_who_would_restart_it_and_for_nobody_else(
    livez: ModuleType, tmp_path: Path
) -> None:
    file = configured(tmp_path, "127.0.0.1:1")
    livez.HELD.touch()

    assert livez.main(["--held-lives", file]) == 0
    assert livez.main([file]) == 1

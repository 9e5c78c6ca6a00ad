"""[traces] of a node's file: every mistake is one sentence, and nothing leaves in the open."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.server.config.node_config import ConfigError, NodeConfig, load

if TYPE_CHECKING:
    from pathlib import Path

NODE = """
[node]
name = "node-1"
data_dir = "data"
client_address = "127.0.0.1:7400"
peer_address = "127.0.0.1:7500"
[cluster]
id = "c"
[tls]
insecure_loopback = true
[traces]
"""
AT = 'endpoint = "https://collector.example:4317"\n'


def loaded(folder: Path, text: str, *overrides: str) -> NodeConfig:
    file = folder / "node.toml"
    file.write_text(NODE + text)
    return load(file, {}, overrides)


def test_a_node_without_an_endpoint_traces_nothing(tmp_path: Path) -> None:
    assert loaded(tmp_path, "sample_ratio = 0.5").traces is None


def test_what_is_left_out_has_a_default(tmp_path: Path) -> None:
    traces = loaded(tmp_path, AT).traces

    assert traces is not None
    assert (traces.endpoint, traces.secure) == ("https://collector.example:4317", True)
    assert (traces.sample_ratio, traces.files) == (0.01, ())


def test_files_are_found_beside_the_nodes_file(tmp_path: Path) -> None:
    traces = loaded(tmp_path, AT + 'ca = "a"\ncertificate = "b"\nkey = "c"\n').traces

    assert traces is not None
    assert traces.files == (tmp_path / "a", tmp_path / "b", tmp_path / "c")


@pytest.mark.parametrize("given", ["0", "1", "0.25", "1e-3"])
def test_a_ratio_is_a_number_from_0_to_1(tmp_path: Path, given: str) -> None:
    traces = loaded(tmp_path, AT, f"traces.sample_ratio={given}").traces

    assert traces is not None
    assert traces.sample_ratio == float(given)


@pytest.mark.parametrize("given", ["-0.1", "1.1", "nan", "some", ""])
def test_any_other_ratio_is_refused(tmp_path: Path, given: str) -> None:
    with pytest.raises(ConfigError, match=r"traces\.sample_ratio = .*a number from 0 to 1"):
        loaded(tmp_path, AT, f"traces.sample_ratio={given}")


def test_true_is_no_ratio(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="a number from 0 to 1"):
        loaded(tmp_path, AT + "sample_ratio = true\n")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('ca = "a"\n', r"traces\.ca is given, and traces\.endpoint is missing"),
        ('endpoint = "collector:4317"\n', r"https://host:port or http://host:port"),
        ('endpoint = "https://collector"\n', r"is no address"),
        ('endpoint = "https://collector:4317/v1/traces"\n', r"is a URL or a path"),
        ('endpoint = "http://collector:4317"\n', r"not on the loopback interface"),
        ('endpoint = "http://127.0.0.1:4317"\nca = "a"\n', r"is not encrypted"),
        (AT + 'key = "c"\n', r"traces\.certificate and traces\.key belong together"),
    ],
)
def test_a_combination_that_cannot_work_is_refused(
    tmp_path: Path, text: str, sentence: str
) -> None:
    with pytest.raises(ConfigError, match=sentence):
        loaded(tmp_path, text)


def test_a_collector_on_this_machine_needs_no_tls(tmp_path: Path) -> None:
    traces = loaded(tmp_path, 'endpoint = "http://localhost:4317/"\n').traces

    assert traces is not None
    assert traces.endpoint == "http://localhost:4317"

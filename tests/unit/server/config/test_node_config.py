"""A node's configuration: every mistake is one sentence that says what would be right."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.coordinator.model.events import SettingChange
from holdfast.raft.wire.bounds import TEXT_MAX
from holdfast.server.config import text
from holdfast.server.config.node_config import ConfigError, NodeConfig, Tls, granting, load

GOOD = """
[node]
name = "node-1"
data_dir = "data"
client_address = "127.0.0.1:7400"
peer_address = "127.0.0.1:7500"
[cluster]
id = "c"
[tls]
insecure_loopback = true
"""

TOO_LONG = "n" * (TEXT_MAX + 1)
PEER = 'client_address = "127.0.0.1:7400"\npeer_address = "127.0.0.1:7500"\n'


def loaded(
    folder: Path, text: str = GOOD, environment: dict[str, str] | None = None, *overrides: str
) -> NodeConfig:
    """The configuration of this text."""
    file = folder / "node.toml"
    file.write_text(text)
    return load(file, environment or {}, overrides)


def test_a_small_file_is_enough(tmp_path: Path) -> None:
    config = loaded(tmp_path)

    assert config.data_dir == tmp_path / "data"
    assert [peer.name for peer in config.peers] == ["node-1"]
    assert (config.election_min_ms, config.election_max_ms) == (350, 700)


def test_set_wins_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    environment = {"HOLDFAST_NODE_NAME": "by-env", "HOLDFAST_RAFT_HEARTBEAT_MS": "70"}
    config = loaded(tmp_path, GOOD, environment, "node.name=by-set")

    assert (config.name, config.heartbeat_ms) == ("by-set", 70)


def test_settings_of_the_log_are_collected_as_text(tmp_path: Path) -> None:
    """S23: they count at the bootstrap only."""
    config = loaded(tmp_path, GOOD + "[group]\nmin_session_timeout_ms = 200\n")

    assert config.settings == (SettingChange("group.min_session_timeout_ms", "200"),)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (GOOD + "[raft]\nelection_mn_ms = 5\n", "raft.election_min_ms"),
        (GOOD + "[group]\nmax_siz = 5\n", "group.max_size"),
        (GOOD + "[raft]\nelection_min_ms = 5\n", "50 to 60000 ms"),
        (GOOD + "[raft]\nheartbeat_ms = 300\n", "3 * raft.heartbeat_ms"),
        (
            GOOD + "[raft]\nheartbeat_ms = 300\n",
            "raft.heartbeat_ms = 300, raft.election_min_ms = 350 and raft.election_max_ms = 700",
        ),
        (GOOD + '[raft]\nheartbeat_ms = "soon"\n', "whole number"),
        (GOOD + '[logger]\nlevel = "loud"\n', "debug, info, warning, error"),
        (GOOD.replace("127.0.0.1:7400", "10.0.0.1:7400"), "not on the loopback"),
        (GOOD.replace("127.0.0.1:7400", "7400"), "host:port"),
        (GOOD.replace("127.0.0.1:7400", "127.0.0.1:70000"), "65535"),
        (GOOD.replace('name = "node-1"\n', ""), "node.name is missing"),
        (GOOD.replace("insecure_loopback = true", ""), "tls.ca"),
        (GOOD.replace("insecure_loopback = true", 'insecure_loopback = true\nca = "x"'), "remove"),
        (GOOD.replace("_loopback = true", '_loopback = true\npeer_ca = "x"'), "remove"),
        (GOOD + "[group]\nmax_size = 0\n", "group.max_size: 0 is out of bounds"),
        (GOOD.replace('id = "c"', f'id = "{TOO_LONG}"'), "cluster.id has 257 characters"),
        (GOOD.replace("node-1", TOO_LONG), "node.name has 257 characters"),
        (
            GOOD + f"[cluster.peers.node-1]\n{PEER}[cluster.peers.{TOO_LONG}]\n{PEER}",
            "a name in [cluster.peers] has 257 characters",
        ),
        ("[node\n", "not TOML"),
        (GOOD + '[cluster.peers.other]\nclient_address="127.0.0.1:1"\n', "peer_address"),
    ],
)
def test_a_mistake_is_one_sentence_that_says_what_would_be_right(
    tmp_path: Path, text: str, said: str
) -> None:
    """Unknown keys name the near one, bounds are told."""
    with pytest.raises(ConfigError) as refused:
        loaded(tmp_path, text)

    assert said in str(refused.value)
    assert "\n" not in str(refused.value).removeprefix(str(tmp_path))


def test_the_longest_name_that_peers_read_is_accepted(tmp_path: Path) -> None:
    """Above it, a node starts and never finds the others: they drop what it says."""
    name = TOO_LONG[1:]
    config = loaded(tmp_path, GOOD.replace('"c"', f'"{name}"').replace("node-1", name))

    assert (config.cluster_id, config.name) == (name, name)


def test_a_misspelt_variable_is_refused_and_a_foreign_one_is_not(tmp_path: Path) -> None:
    """Kubernetes makes HOLDFAST_SERVICE_HOST for a service of this name."""
    loaded(tmp_path, GOOD, {"HOLDFAST_SERVICE_HOST": "10.0.0.1", "HOLDFAST_PORT": "tcp://x"})
    with pytest.raises(ConfigError, match="HOLDFAST_RAFT_ELECTION_MIN_MS"):
        loaded(tmp_path, GOOD, {"HOLDFAST_RAFT_ELECTION_MIN": "5"})


def test_a_file_may_name_an_even_number_of_nodes(tmp_path: Path) -> None:
    """S25: sizes are even in passing; the file of the fourth node names all four."""
    peers = "".join(
        f'[cluster.peers.node-{n}]\nclient_address="127.0.0.1:{n}"\npeer_address="127.0.0.1:{n}"\n'
        for n in (1, 2)
    )
    assert len(loaded(tmp_path, GOOD + peers).peers) == 2


CERTIFIED = GOOD.replace(
    "insecure_loopback = true", 'ca = "ca.pem"\ncertificate = "c.pem"\nkey = "k.pem"'
)


def test_a_file_of_an_older_version_accepts_the_certificates_that_it_names(tmp_path: Path) -> None:
    """A cluster that 0.1.0 laid out starts as it is: its certificates have no other names."""
    ca, certificate, key = (tmp_path / name for name in ("ca.pem", "c.pem", "k.pem"))
    expected = Tls(ca, certificate, key, accept_old_node_names=True)

    assert loaded(tmp_path, CERTIFIED).tls == expected


def test_peers_may_have_an_authority_of_their_own(tmp_path: Path) -> None:
    more = 'key = "k.pem"\npeer_ca = "peers.pem"\naccept_old_node_names = false'
    tls = loaded(tmp_path, CERTIFIED.replace('key = "k.pem"', more)).tls

    assert tls is not None
    assert (tls.ca, tls.peer_ca) == (tmp_path / "ca.pem", tmp_path / "peers.pem")
    assert not tls.accept_old_node_names


def test_the_page_about_the_keys_is_what_the_table_says() -> None:
    """docs/operations/config.md is generated: `python -m holdfast.server.config.text`."""
    page = Path(__file__).parents[4] / "docs" / "operations" / "config.md"

    assert page.read_text() == text.page()


def test_a_new_cluster_denies_and_without_tls_its_only_caller_administrates_it(
    tmp_path: Path,
) -> None:
    config = loaded(tmp_path)

    assert (config.administrators, config.access_mode) == (("anonymous",), "deny")


def test_administrators_are_a_list_and_commas_separate_them_elsewhere(tmp_path: Path) -> None:
    file = GOOD + '[access]\nadministrators = ["spiffe://a/b", "ops"]\n'
    variable = {"HOLDFAST_ACCESS_ADMINISTRATORS": "x, y"}

    assert loaded(tmp_path, file).administrators == ("spiffe://a/b", "ops")
    assert loaded(tmp_path, file, variable).administrators == ("x", "y")
    for wrong in ('""', "5", '["a", 5]', '["a\\n"]'):
        with pytest.raises(ConfigError, match=r"access\.administrators"):
            loaded(tmp_path, GOOD + f"[access]\nadministrators = {wrong}\n")


def test_a_start_grants_nobody_who_cannot_be_called_so(tmp_path: Path) -> None:
    config = loaded(tmp_path)

    assert granting(config, "ops").grant_admin == "ops"
    assert granting(config, "").grant_admin == ""
    with pytest.raises(ConfigError, match="--grant-admin"):
        granting(config, "a\n")


def test_an_audit_is_kept_unless_it_is_turned_off_and_is_not_tiny(tmp_path: Path) -> None:
    assert loaded(tmp_path).audit_bytes_max == 64 << 20
    assert loaded(tmp_path, GOOD + "[audit]\nbytes_max = 0\n").audit_bytes_max == 0
    with pytest.raises(ConfigError, match="at least 65536"):
        loaded(tmp_path, GOOD + "[audit]\nbytes_max = 1000\n")

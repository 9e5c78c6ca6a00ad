"""What `holdfast doctor --config` reads on a machine: real files, and a real sync."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from holdfast.cli.doctor.installed_checks import findings_of
from holdfast.cli.doctor.looking import file_system_of, installed
from holdfast.raft.transport.peer_names import node_uri
from holdfast.server.config.node_config import load
from holdfast.server.security.certificates import issue, make_authority

if TYPE_CHECKING:
    from holdfast.cli.doctor.machine_facts import Installed

FILE = """
[node]
name = "a"
data_dir = "data"
client_address = "0.0.0.0:7400"
peer_address = "0.0.0.0:7500"
[cluster]
id = "c"
[cluster.peers.a]
client_address = "a.example:7400"
peer_address = "10.0.0.1:7500"
[tls]
ca = "ca.pem"
certificate = "certificate.pem"
key = "key.pem"
"""
HOSTS = ["a.example", "10.0.0.1"]


def looked_at(place: Path) -> Installed:
    (place / "node.toml").write_text(FILE)
    return installed(load(place / "node.toml", {}, ()))


def certificates_found(place: Path) -> list[str]:
    found = findings_of(looked_at(place), 0)
    return [each.what for each in found if each.check == "certificates"]


def test_a_node_as_it_was_installed_has_the_names_it_wants(tmp_path: Path) -> None:
    issue(make_authority("c"), tmp_path, "a", node_uri("c", "a"), HOSTS)
    node = looked_at(tmp_path)

    assert set(node.wanted_names) == {"URI:holdfast://c/node/a", "DNS:a.example", "IP:10.0.0.1"}
    assert set(node.wanted_names) <= set(node.names)
    assert node.signed
    assert [each.key for each in node.certificates] == ["ca", "certificate"]
    assert certificates_found(tmp_path) == []


def test_the_disk_is_measured_where_the_data_will_be_and_nothing_is_left(tmp_path: Path) -> None:
    issue(make_authority("c"), tmp_path, "a", node_uri("c", "a"), HOSTS)
    before = sorted(tmp_path.rglob("*"))
    node = looked_at(tmp_path)

    assert node.machine.sync_p99_ms is not None
    assert node.machine.sync_p99_ms > 0
    assert node.machine.disk_total_bytes > 0
    assert node.data_dir_problem == ""
    assert sorted(tmp_path.rglob("*")) == sorted([*before, tmp_path / "node.toml"])


@pytest.mark.parametrize(
    ("uri", "hosts", "missing"),
    [
        (node_uri("c", "b"), HOSTS, "URI:holdfast://c/node/a"),
        (node_uri("c", "a"), ["a.example"], "IP:10.0.0.1"),
        (node_uri("c", "a"), ["10.0.0.1"], "DNS:a.example"),
    ],
)
def test_a_name_that_the_certificate_lacks_is_found(
    tmp_path: Path, uri: str, hosts: list[str], missing: str
) -> None:
    issue(make_authority("c"), tmp_path, "a", uri, hosts)

    assert certificates_found(tmp_path) == [f"tls.certificate does not name {missing}"]


def test_a_certificate_of_another_authority_is_found(tmp_path: Path) -> None:
    issue(make_authority("c"), tmp_path, "a", node_uri("c", "a"), HOSTS)
    issue(make_authority("other"), tmp_path / "other", "a", node_uri("c", "a"), HOSTS)
    (tmp_path / "ca.pem").write_bytes((tmp_path / "other" / "ca.pem").read_bytes())

    (found,) = certificates_found(tmp_path)
    assert "is not signed by an authority that the nodes trust" in found


def test_a_key_of_another_certificate_is_found(tmp_path: Path) -> None:
    issue(make_authority("c"), tmp_path, "a", node_uri("c", "a"), HOSTS)
    issue(make_authority("c"), tmp_path / "other", "a", node_uri("c", "a"), HOSTS)
    (tmp_path / "key.pem").write_bytes((tmp_path / "other" / "key.pem").read_bytes())

    assert certificates_found(tmp_path) == [
        "tls.certificate: the key does not belong to the certificate"
    ]


def test_a_file_that_is_not_there_is_found_with_its_path(tmp_path: Path) -> None:
    issue(make_authority("c"), tmp_path, "a", node_uri("c", "a"), HOSTS)
    (tmp_path / "certificate.pem").unlink()

    (found,) = certificates_found(tmp_path)
    assert f"{tmp_path / 'certificate.pem'}: No such file" in found


def test_the_file_system_is_that_of_the_nearest_mount(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(
        "/dev/sda / ext4 rw 0 0\ntmpfs /run tmpfs rw 0 0\nsrv:/x /run/data nfs4 rw 0 0\n"
    )

    assert file_system_of(Path("/run/data/node"), mounts) == "nfs4"
    assert file_system_of(Path("/run/datax"), mounts) == "tmpfs"
    assert file_system_of(Path("/srv"), mounts) == "ext4"
    assert file_system_of(Path("/srv"), tmp_path / "absent") == ""

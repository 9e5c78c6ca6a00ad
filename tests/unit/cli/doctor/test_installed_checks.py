"""What `holdfast doctor --config` finds on a node's machine, from facts."""

from __future__ import annotations

import pytest

from holdfast.cli.doctor.installed_checks import configuration_refused, findings_of
from holdfast.cli.doctor.machine_facts import Certificate, Installed, Machine

NOW_MS = 1_700_000_000_000
DAY_MS = 86_400_000
GIB = 1 << 30
WELL = Installed(
    name="a",
    machine=Machine(
        memory_bytes=8 * GIB,
        disk_free_bytes=80 * GIB,
        disk_total_bytes=100 * GIB,
        open_files_max=65_536,
        sync_p99_ms=5.0,
    ),
    data_dir="/var/lib/holdfast",
    data_dir_problem="",
    file_system="ext4",
    election_min_ms=350,
    certificates=(Certificate("certificate", NOW_MS + 300 * DAY_MS),),
    wanted_names=("URI:holdfast://c/node/a", "IP:10.0.0.1"),
    names=("URI:holdfast://c/node/a", "IP:10.0.0.1", "DNS:a"),
)


def with_sync(took_ms: float) -> Installed:
    return WELL._replace(machine=WELL.machine._replace(sync_p99_ms=took_ms))


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    assert findings_of(WELL, NOW_MS) == []


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (WELL._replace(data_dir_problem="Permission denied"), [("disk", "error")]),
        (WELL._replace(file_system="tmpfs"), [("disk", "error")]),
        (WELL._replace(file_system="nfs4"), [("disk", "warning")]),
        (WELL._replace(names=("URI:holdfast://c/node/b",)), [("certificates", "error")]),
        (WELL._replace(signed=False), [("certificates", "error")]),
        (
            WELL._replace(certificates=(Certificate("ca", 0, "half a file"),)),
            [("certificates", "error")],
        ),
        (
            WELL._replace(certificates=(Certificate("ca", NOW_MS + 20 * DAY_MS),)),
            [("certificates", "warning")],
        ),
        (with_sync(60.0), [("fsync", "warning")]),
        (with_sync(120.0), [("fsync", "warning"), ("settings", "warning")]),
        (with_sync(400.0), [("fsync", "error"), ("settings", "warning")]),
    ],
)
def test_what_is_wrong_is_found(node: Installed, expected: list[tuple[str, str]]) -> None:
    found = findings_of(node, NOW_MS)

    assert [(each.check, each.severity) for each in found] == expected
    assert all(each.place == "a" and each.what and each.why and each.do for each in found)


def test_the_missing_names_are_named() -> None:
    (found,) = findings_of(WELL._replace(names=("DNS:a",)), NOW_MS)

    assert "URI:holdfast://c/node/a" in found.what
    assert "IP:10.0.0.1" in found.what
    assert "DNS:a" not in found.what


def test_a_configuration_that_no_node_starts_with_is_an_error() -> None:
    found = configuration_refused("node.name is missing")

    assert (found.severity, found.what) == ("error", "node.name is missing")

"""A streamed snapshot takes the place of the state whole, or leaves it alone (S18)."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from holdfast.storage.directory.data_directory import DataDirectory
from holdfast.storage.disk.records import pack_record
from holdfast.storage.errors import InstallRefused, StateDamaged
from holdfast.storage.state.state_install import StateInstall, incoming_path, install_from
from holdfast.storage.state.state_store import StateStore, read_chunks
from storage.stores import content, events, filled, meta, snapshot_changes


@pytest.fixture
def leader(tmp_path: Path) -> StateStore:
    return filled(tmp_path / "leader", range(1, 12))


@pytest.fixture
def follower(tmp_path: Path) -> StateStore:
    (tmp_path / "node").mkdir()
    return filled(tmp_path / "node" / "state", [1, 2])


def streamed(store: StateStore, tmp_path: Path, size: int = 1000) -> list[bytes]:
    store.copy_to(tmp_path / "copy")
    return list(read_chunks(tmp_path / "copy", size))


@pytest.mark.parametrize("size", [1, 7, 1000, 1 << 20])
def test_an_installed_state_equals_the_streamed_one(
    leader: StateStore, follower: StateStore, tmp_path: Path, size: int
) -> None:
    """Whatever the chunk size, and also after a restart."""
    chunks = streamed(leader, tmp_path, size)

    installed = install_from(follower, chunks)

    assert max(map(len, chunks)) <= size
    assert installed == meta(11)
    assert content(follower) == content(leader)
    follower.close()
    assert content(StateStore(follower.path)) == content(leader)
    assert not incoming_path(follower.path).exists()


def test_the_stream_is_of_the_moment_of_the_copy(
    leader: StateStore, follower: StateStore, tmp_path: Path
) -> None:
    """S18: a slow reader holds up nobody; the leader writes on."""
    leader.copy_to(tmp_path / "copy")
    before = content(leader)
    chunks = read_chunks(tmp_path / "copy", 100)
    first = next(chunks)
    leader.write_snapshot(snapshot_changes(12), events(12), meta(12))

    install_from(follower, [first, *chunks])

    assert content(follower) == before


# A topic's frame: database 1, key length, value length, key, value.
_STORED = pack_record("topics", b"t-3", b"topic " * 3)
A_RECORD = b"\x01" + (3).to_bytes(2) + len(_STORED).to_bytes(4) + b"t-3" + _STORED


def broken(chunks: list[bytes]) -> dict[str, list[bytes]]:
    whole = b"".join(chunks)
    middle = len(whole) // 2
    return {
        "cut short": [whole[:-1]],
        "nothing": [b""],
        "without its end": [whole[: whole.rindex(b"\xff\0\0")]],
        "a chunk missing": [*chunks[:2], *chunks[3:]],
        "a record missing": [whole.replace(A_RECORD, b"")],
        "a chunk twice": [*chunks[:2], *chunks[1:]],
        "chunks swapped": [chunks[1], chunks[0], *chunks[2:]],
        "a flipped bit": [whole[:middle], bytes([whole[middle] ^ 4]), whole[middle + 1 :]],
        "bytes behind the end": [whole, b"more than a head of"],
        "no stream at all": [b"\xfe" * 4096],
    }


@pytest.mark.parametrize("fault", broken([b"\xff\0\0"] * 4))
def test_a_stream_with_a_fault_is_refused_and_the_state_stays(
    leader: StateStore, follower: StateStore, tmp_path: Path, fault: str
) -> None:
    before = content(follower)

    with pytest.raises(InstallRefused):
        install_from(follower, broken(streamed(leader, tmp_path))[fault])

    assert content(follower) == before
    assert not incoming_path(follower.path).exists()


def test_an_older_snapshot_is_refused(
    leader: StateStore, follower: StateStore, tmp_path: Path
) -> None:
    """A delayed stream must not take a node back behind what it has acknowledged."""
    with pytest.raises(InstallRefused, match="at 11"):
        install_from(leader, streamed(follower, tmp_path))


def test_a_damaged_copy_is_not_streamed(leader: StateStore, tmp_path: Path) -> None:
    """S21: damage stops at the node that has it."""
    leader.copy_to(tmp_path / "copy")
    file = tmp_path / "copy" / "data.mdb"
    record = pack_record("topics", b"t-3", b"topic " * 3)
    file.write_bytes(file.read_bytes().replace(record, record[:-1] + b"?"))

    with pytest.raises(StateDamaged):
        list(read_chunks(tmp_path / "copy", 1000))


@pytest.mark.parametrize("point", ["first chunk", "all chunks", "sealed", "renamed", "installed"])
def test_a_crash_at_any_point_of_an_install_leaves_one_whole_state(
    leader: StateStore, tmp_path: Path, point: str
) -> None:
    """S18: the rename decides; what was not renamed is removed at the next start."""
    node = tmp_path / "node"
    DataDirectory(node, cluster_id="c", node_id="n", bootstrap=True).close()
    store = StateStore(node / "state")
    store.write_snapshot(snapshot_changes(1), events(1), meta(1))
    old, new = content(store), content(leader)
    chunks = streamed(leader, tmp_path)

    crashed = install_until(point, store, chunks, tmp_path)

    with DataDirectory(crashed, cluster_id="c", node_id="n") as directory:
        assert directory.verdict.sound
        expected = new if point in {"renamed", "installed"} else old
        assert content(StateStore(directory.state_path)) == expected
        assert not incoming_path(directory.state_path).exists()


def install_until(point: str, store: StateStore, chunks: list[bytes], tmp_path: Path) -> Path:
    """Install up to a point; return the node's directory as a crash there leaves it."""
    install = StateInstall(store)
    install.add(chunks[0])
    if point != "first chunk":
        for chunk in chunks[1:]:
            install.add(chunk)
    if point in {"sealed", "renamed", "installed"}:
        install.seal()
    if point == "installed":
        install.install()
    crashed = tmp_path / "crashed"
    shutil.copytree(store.path.parent, crashed)
    if point == "renamed":
        # Between the rename and the removal of the then empty directory.
        incoming = incoming_path(crashed / "state")
        (incoming / "data.mdb").rename(crashed / "state" / "data.mdb")
    return crashed

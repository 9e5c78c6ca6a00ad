"""Publishing adds to a folder or a store, in an order in which no reader sees half of a segment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from holdfast.replay.findings import WrongUse
from holdfast.replay.publish.publication import PublishRefused, publish
from holdfast.replay.publish.target import Item, Target
from holdfast.replay.read.node_logs import node_log, node_logs
from holdfast.replay.read.url_path import archive_path
from holdfast.replay.read.urls import NotReached
from spark.archive_damage import FILE, LOG, copied, data, pipe, segment, sound_nodes
from spark.cut_logs import write_cut_node


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three nodes that agree; tests copy them."""
    parent = tmp_path_factory.mktemp("sound")
    sound_nodes(parent)
    return parent


@pytest.fixture
def node(sound: Path, tmp_path: Path) -> Path:
    return copied(sound, tmp_path / "nodes")[0]


@pytest.fixture(params=["{path}/made/to/n1", "file://{path}/to/n1", "memory://{path}/n1"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    yield str(request.param).format(path=tmp_path)
    MemoryFileSystem.store.clear()


def contents(address: str) -> dict[str, bytes]:
    """What a reader finds, hidden names included."""
    root = archive_path(address)
    found = {}
    for folder in (root / "segments").iterdir() if root.is_dir() else ():
        for file in folder.iterdir() if folder.is_dir() else (folder,):
            found[f"{file.parent.name}/{file.name}"] = file.read_bytes()
    return found


def test_all_that_is_sealed_is_there_and_is_a_log(node: Path, target: str) -> None:
    done = publish(node, target)

    assert contents(target) == contents(str(node))
    assert (done.segments, done.copied, done.known) == (3, len(contents(target)), 0)
    assert done.copied_bytes == sum(map(len, contents(target).values()))
    published, own = node_log(archive_path(target)), node_log(node)
    assert [s.manifest for s in published.segments] == [s.manifest for s in own.segments]


def test_a_second_time_copies_nothing(node: Path, target: str) -> None:
    publish(node, target)

    again = publish(node, target)

    assert (again.copied, again.known) == (0, len(contents(target)))


def test_the_folder_of_segments_may_be_given_itself(node: Path, target: str) -> None:
    publish(node / "segments", target)

    assert contents(target) == contents(str(node))


class Broken(Exception):
    """The power is gone."""


def breaking(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """Let only so many files be added; then the process is gone."""
    add, added = Target._add, list[str]()

    def limited(self: Target, item: Item) -> None:
        if len(added) == after:
            raise Broken
        add(self, item)
        added.append(item.name)

    monkeypatch.setattr(Target, "_add", limited)


@pytest.mark.parametrize("after", range(10))
def test_after_a_break_a_reader_sees_whole_segments_and_it_goes_on(
    after: int, node: Path, target: str
) -> None:
    """Data files come first and the manifest last, segment by segment in the order of the log."""
    with pytest.MonkeyPatch.context() as patch:
        breaking(patch, after)
        with pytest.raises(Broken):
            publish(node, target)

    seen = node_log(archive_path(target)) if archive_path(target).is_dir() else None

    whole = [segment.manifest for segment in node_log(node).segments]
    assert seen is None or [s.manifest for s in seen.segments] == whole[: len(seen.segments)]
    assert seen is None or seen.findings == ()
    assert publish(node, target).known <= after
    assert contents(target) == contents(str(node))


@pytest.mark.parametrize("name", [FILE, "manifest.json"])
def test_a_file_that_differs_is_named_and_not_overwritten(
    name: str, node: Path, target: str
) -> None:
    """Of the same size, too; and then nothing else is written."""
    publish(node, target)
    (Path(str(data(node).parent)) / name).write_bytes(changed((segment(node) / name).read_bytes()))
    before = contents(target)

    with pytest.raises(PublishRefused, match=f"{segment(node).name}/{name} is there and differs"):
        publish(node, target)

    assert contents(target) == before


def changed(content: bytes) -> bytes:
    return content.replace(b'"node_id": "n1"', b'"node_id": "n7"', 1).replace(
        b"JoinGroup", b"X" * 9
    )


def test_the_folder_of_another_node_is_left_as_it_is(target: str, tmp_path: Path) -> None:
    """Its files may have equal bytes; its manifests say whose they are, also by size alone."""
    one, two, _ = sound_nodes(tmp_path / "nodes")
    publish(one, target)
    before = contents(target)

    with pytest.raises(PublishRefused, match=r"manifest\.json is there and differs"):
        publish(two, target, by_size=True)

    assert contents(target) == before


def test_by_size_data_files_below_a_manifest_are_not_read(
    node: Path, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(node, target)
    read, asked = Target._sha256, list[str]()

    def noted(self: Target, name: str) -> str:
        asked.append(name)
        return read(self, name)

    monkeypatch.setattr(Target, "_sha256", noted)
    publish(node, target, by_size=True)

    assert {name.rpartition("/")[2] for name in asked} == {"manifest.json"}


def test_a_log_that_was_cut_is_published_with_its_checkpoint_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S24: without it the segments behind it would seem to lack what is before them."""
    node = write_cut_node(tmp_path / "cut", "n1", LOG, 20)
    target = f"memory://{tmp_path}/cut"
    names = added(monkeypatch)

    done = publish(node, target)

    assert names[0].endswith(".checkpoint")
    assert done.checkpoints == 1
    assert node_log(archive_path(target)).begins.last == node_log(node).begins.last


def added(monkeypatch: pytest.MonkeyPatch) -> Sequence[str]:
    names, add = list[str](), Target._add

    def noted(self: Target, item: Item) -> None:
        names.append(item.name)
        add(self, item)

    monkeypatch.setattr(Target, "_add", noted)
    return names


def linked(node: Path) -> None:
    data(node).rename(node / "aside")
    data(node).symlink_to(node / "aside")


DAMAGE: dict[str, Callable[[Path], object]] = {
    "other bytes": lambda node: data(node).write_bytes(data(node).read_bytes()[:-1] + b"x"),
    "a file gone": lambda node: data(node).unlink(),
    "a link": linked,
    "a pipe": pipe,
    "a manifest cut off": lambda node: (segment(node) / "manifest.json").write_text("{"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_what_is_not_as_it_was_sealed_is_not_spread(name: str, node: Path, tmp_path: Path) -> None:
    DAMAGE[name](node)

    with pytest.raises(PublishRefused, match=segment(node).name) as caught:
        publish(node, f"{tmp_path}/to")

    assert "\n" not in str(caught.value)
    damaged = f"{segment(node).name}/manifest.json"
    assert damaged not in contents(f"{tmp_path}/to")


def test_a_directory_without_a_segment_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PublishRefused, match="nothing is sealed"):
        publish(tmp_path, f"{tmp_path}/to")


def test_what_retention_deletes_meanwhile_is_told(
    node: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = Target._add

    def late(self: Target, item: Item) -> None:
        item.source.unlink()
        add(self, item)

    monkeypatch.setattr(Target, "_add", late)

    with pytest.raises(PublishRefused, match="was deleted while it was to be published"):
        publish(node, f"{tmp_path}/to")


def test_a_server_of_pages_is_no_store(node: Path) -> None:
    with pytest.raises(WrongUse, match="only be read"):
        publish(node, "http://127.0.0.1:9/n1")


def test_a_bucket_that_is_not_there_is_named(
    node: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An object store has no folder that could lack: what it does not find is the bucket."""

    def no_bucket(_self: object, _from: str, _to: str) -> None:
        raise FileNotFoundError("The specified bucket does not exist")

    monkeypatch.setattr(MemoryFileSystem, "put_file", no_bucket)

    with pytest.raises(NotReached, match=r"n1/.* cannot be written: there is no such bucket"):
        publish(node, f"memory://{tmp_path}/n1")


def test_a_full_disk_leaves_no_half_of_a_file(
    node: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_self: object, _from: str, to: str) -> None:
        Path(to).write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("fsspec.implementations.local.LocalFileSystem.put_file", full)

    with pytest.raises(NotReached, match="cannot be written: No space left on device"):
        publish(node, f"{tmp_path}/to")

    assert [path for path in (tmp_path / "to").rglob("*") if path.is_file()] == []


def test_how_far_it_has_come_ends_at_the_whole(node: Path, tmp_path: Path) -> None:
    told = list[tuple[int, int]]()

    publish(node, f"{tmp_path}/to", lambda done, total: told.append((done, total)))

    whole = sum(map(len, contents(str(node)).values()))
    assert told[-1] == (whole, whole)
    assert told == sorted(told)


def test_three_published_nodes_are_three_logs(tmp_path: Path) -> None:
    for node in sound_nodes(tmp_path / "nodes"):
        publish(node, f"memory://{tmp_path}/{node.name}")

    logs = node_logs(archive_path(f"memory://{tmp_path}/{name}") for name in ("n1", "n2", "n3"))

    assert [log.node for log in logs] == ["n1", "n2", "n3"]


def test_only_the_last_segment_may_be_on_its_way(node: Path, tmp_path: Path) -> None:
    """S22: a manifest that is gone from the middle of a log is damage, in an object store as well.

    So is that of the last one where a folder appears as a whole.
    """
    publish(node, f"memory://{tmp_path}/n1")
    middle = f"{tmp_path}/n1/segments/{segment(node).name}/manifest.json"

    MemoryFileSystem().rm_file(middle)
    (segment(node, 2) / "manifest.json").unlink()

    for log in (node_log(archive_path(f"memory://{tmp_path}/n1")), node_log(node)):
        assert [found.kind for found in log.findings] == ["missing"]

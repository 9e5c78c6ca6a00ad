"""What disks, bugs and people do to one node's archive of three: each way changes its files.

An archive is that of `sound_nodes`; what is damaged lies in its middle segment where it can.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from holdfast.storage.segments.segment_writer import write_segment
from holdfast.storage.segments.segments import (
    MANIFEST,
    Row,
    bucket_file,
    bucket_of,
    segments_in,
)
from spark.damage import damage_after_sealing
from spark.event_logs import busy_log, write_node, write_nodes

LOG = busy_log(groups=2, commits=12)
CUT_AT = (20, 30)
VICTIM = next(n for n, r in enumerate(LOG.records) if r.request_id == "c4")
"""A commit of group g0 in the middle segment; the row behind it is one of g1."""
AT = LOG.rows[VICTIM].position
FILE = bucket_file(bucket_of("g0"))
OTHER = bucket_file(bucket_of("g1"))
CLUSTER = bucket_file(bucket_of(""))

Change = Callable[[Path], object]


def sound_nodes(parent: Path) -> list[Path]:
    return write_nodes(parent, LOG, nodes=3, cut_at=CUT_AT)


def copied(sound: Path, to: Path) -> list[Path]:
    """Copy the folder that `sound_nodes` has filled; return the nodes there."""
    shutil.copytree(sound, to)
    return [to / name for name in ("n1", "n2", "n3")]


def segment(node: Path, nth: int = 1) -> Path:
    return segments_in(node / "segments")[nth]


def data(node: Path) -> Path:
    return segment(node) / FILE


def on_bytes(change: Callable[[bytes], bytes], name: str = FILE, nth: int = 1) -> Change:
    def damage(node: Path) -> None:
        file = segment(node, nth) / name
        file.write_bytes(change(file.read_bytes()))

    return damage


def on_manifest(change: Callable[[dict[str, Any]], object], nth: int = 1) -> Change:
    def damage(node: Path) -> None:
        file = segment(node, nth) / MANIFEST
        raw = json.loads(file.read_text())
        change(raw)
        file.write_text(json.dumps(raw))

    return damage


def setting(**values: object) -> Change:
    return on_manifest(lambda raw: raw.update(values))


def listing(change: Callable[[list[Any]], list[Any]]) -> Change:
    """Have a manifest name other files, wherever it names them."""

    def change_both(raw: dict[str, Any]) -> None:
        told = {each["file"]: each for each in raw["contents"]}
        raw["files"] = change(raw["files"])
        some = next(iter(told.values()))
        raw["contents"] = [{**told.get(name, some), "file": name} for name in raw["files"]]

    return on_manifest(change_both)


def on_block(**values: int) -> Change:
    return on_manifest(lambda raw: raw["blocks"][0].update(values))


def on_table(change: Callable[[pa.Table], pa.Table], name: str = FILE, nth: int = 1) -> Change:
    def damage(node: Path) -> None:
        file = segment(node, nth) / name
        pq.write_table(change(pq.ParquetFile(file).read()), file, compression="zstd")

    return damage


def on_row(
    column: str, change: Callable[[Any], Any], name: str = FILE, nth: int = 1, at: str = "c4"
) -> Change:
    """Change one value of the victim's row, or of the first row if there is no such request."""

    def changed(table: pa.Table) -> pa.Table:
        requests, values = table["request_id"].to_pylist(), table[column].to_pylist()
        row = requests.index(at) if at in requests else 0
        values[row] = change(values[row])
        return with_column(table, column, pa.array(values, table.schema.field(column).type))

    return on_table(changed, name, nth)


def with_column(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    at = table.schema.get_field_index(name)
    return table.set_column(at, pa.field(name, values.type), values)


def cast(column: str, kind: pa.DataType) -> Change:
    return on_table(lambda table: with_column(table, column, table[column].cast(kind)))


def on_folder(change: Callable[[Path], object]) -> Change:
    """Change the middle segment's folder."""
    return lambda node: change(segment(node))


def replaced_by_link(target: Callable[[Path], Path], name: str = FILE) -> Change:
    def damage(node: Path) -> None:
        file = segment(node) / name
        wanted = target(file)
        (shutil.rmtree if file.is_dir() else os.unlink)(file)
        file.symlink_to(wanted)

    return damage


def of_peer(path: Path) -> Path:
    """The same file of node n2."""
    return Path(str(path).replace("/n3/", "/n2/"))


def moved_aside(path: Path) -> Path:
    """The file itself, at another place in the archive."""
    aside = path.with_name(f".{path.name}")
    shutil.copy(path, aside)
    return aside


def outside(path: Path) -> Path:
    """A sound file that does not belong to the archive."""
    aside = path.parents[4] / "outside.parquet"
    shutil.copy(path, aside)
    return aside


def exchange(one: str, two: str) -> Change:
    def damage(node: Path) -> None:
        first, second = segment(node) / one, segment(node) / two
        a, b = first.read_bytes(), second.read_bytes()
        first.write_bytes(b)
        second.write_bytes(a)

    return damage


def sealed_with(rows: list[Row], *, cut_at: tuple[int, ...] = CUT_AT) -> Change:
    """The node sealed other records than its peers, so that its manifests fit its files."""

    def damage(node: Path) -> None:
        shutil.rmtree(node)
        write_node(node, "n3", rows, cut_at)

    return damage


def after_sealing(damage: Callable[[list[Row], int], list[Row]]) -> Change:
    """One segment whose manifest is of the sound log, and whose files are of the damaged one."""

    def change(node: Path) -> None:
        for each in segments_in(node / "segments"):
            shutil.rmtree(each)
        damage_after_sealing(node, "n3", LOG.rows, damage(LOG.rows, VICTIM))
        shutil.rmtree(node / "other")

    return change


def row_in_another_file(node: Path) -> None:
    """Move the victim's row to the file of another bucket, in its order there."""
    mine, other = segment(node) / FILE, segment(node) / OTHER
    table = pq.ParquetFile(mine).read()
    at = table["request_id"].to_pylist().index("c4")
    row = table.slice(at, 1)
    rest = pa.concat_tables([table.slice(0, at), table.slice(at + 1)])
    grown = pa.concat_tables([row, pq.ParquetFile(other).read()])
    pq.write_table(rest, mine, compression="zstd")
    order = [("grp", "ascending"), ("idx", "ascending"), ("ordinal", "ascending")]
    pq.write_table(grown.sort_by(order), other, compression="zstd")


def pipe(node: Path) -> None:
    data(node).unlink()
    os.mkfifo(data(node))


def manifest_pipe(node: Path) -> None:
    manifest = segment(node) / MANIFEST
    manifest.unlink()
    os.mkfifo(manifest)


def folder_for_file(node: Path) -> None:
    data(node).unlink()
    data(node).mkdir()


def linked_segments(node: Path) -> None:
    shutil.rmtree(node / "segments")
    (node / "segments").symlink_to(of_peer(node / "segments"))


def linked_segment(node: Path) -> None:
    folder = segment(node)
    shutil.rmtree(folder)
    folder.symlink_to(of_peer(folder))


def other_history(node: Path) -> None:
    """The middle segment is of another log of the same cluster, with the same ends."""
    rows = LOG.rows[CUT_AT[0] : CUT_AT[1]]
    other = [Row(each.position, each.content.replace(b"JoinGroup", b"Heartbeat")) for each in rows]
    folder = segment(node)
    shutil.rmtree(folder)
    write_segment(folder.parent, other, "c", "n3")


def second_copy(node: Path) -> None:
    folder = segment(node)
    shutil.copytree(folder, folder.with_name(f"{99:020d}-{100:020d}"))


def overlapping(node: Path) -> None:
    write_segment(node / "segments", LOG.rows[15:25], "c", "n3")


def checkpoint(content: bytes) -> Change:
    name = f"{AT.index:020d}.{AT.ordinal:010d}.checkpoint"
    return lambda node: (node / "segments" / name).write_bytes(content)


def linked_checkpoint(node: Path) -> None:
    name = f"{AT.index:020d}.{AT.ordinal:010d}.checkpoint"
    (node / "segments" / name).symlink_to(node.parent)


def tail_of(change: Change) -> Change:
    """The last records are an exported tail on this node, which is then damaged."""

    def damage(node: Path) -> None:
        shutil.rmtree(segment(node, 2))
        write_segment(node / "tail", LOG.rows[CUT_AT[1] :], "c", "n3")
        change(node)

    return damage


def on_tail_bytes(change: Callable[[bytes], bytes], name: str = FILE) -> Change:
    def damage(node: Path) -> None:
        file = segments_in(node / "tail")[0] / name
        file.write_bytes(change(file.read_bytes()))

    return tail_of(damage)


def flip(at: float) -> Callable[[bytes], bytes]:
    def flipped_byte(content: bytes) -> bytes:
        place = int(len(content) * at)
        return content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :]

    return flipped_byte


def zeroed(content: bytes) -> bytes:
    return content[:200] + bytes(400) + content[600:]

"""The ways in which one node's archive of three is damaged, and what a verification must say."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from holdfast.coordinator.model.ids import Position
from holdfast.storage.segments.segments import MANIFEST, Row
from spark.archive_damage import (
    AT,
    CLUSTER,
    CUT_AT,
    FILE,
    LOG,
    OTHER,
    VICTIM,
    Change,
    after_sealing,
    cast,
    checkpoint,
    data,
    exchange,
    flip,
    folder_for_file,
    linked_checkpoint,
    linked_segment,
    linked_segments,
    listing,
    manifest_pipe,
    moved_aside,
    of_peer,
    on_block,
    on_bytes,
    on_folder,
    on_manifest,
    on_row,
    on_table,
    on_tail_bytes,
    other_history,
    outside,
    overlapping,
    pipe,
    replaced_by_link,
    row_in_another_file,
    sealed_with,
    second_copy,
    segment,
    setting,
    with_column,
    zeroed,
)
from spark.damage import duplicated, flipped, lost, swapped


class Expected(NamedTuple):
    """A finding that there must be; what is None or empty may be anything."""

    kind: str
    file: str = ""  # its end
    group: str = ""
    position: Position | None = None


class Kind(NamedTuple):
    """A way to damage the directory of node n3, and the finding that names it."""

    name: str
    change: Change
    expected: Expected


LAST = LOG.rows[CUT_AT[1] - 1].position
"""The end of the middle segment."""
FIRST = LOG.rows[CUT_AT[0]].position


def named(kind: str, file: str = FILE, group: str = "", at: Position | None = None) -> Expected:
    return Expected(kind, file, group, at)


KINDS = [
    # Bytes of a data file.
    Kind("cut off at its end", on_bytes(lambda c: c[:-100]), named("unreadable")),
    Kind("cut off in its middle", on_bytes(lambda c: c[: len(c) // 2]), named("unreadable")),
    Kind("empty", on_bytes(lambda _: b""), named("unreadable")),
    Kind("garbage", on_bytes(lambda c: os.urandom(len(c))), named("unreadable")),
    Kind("text", on_bytes(lambda _: b"PAR1 hello PAR1"), named("unreadable")),
    Kind("zeros in its pages", on_bytes(zeroed), named("unreadable")),
    Kind("a byte of its footer", on_bytes(flip(0.97)), named("unreadable")),
    Kind("junk behind its footer", on_bytes(lambda c: c + b"junk"), named("unreadable")),
    Kind(
        "a byte of its length",
        on_bytes(lambda c: c[:-8] + b"\xff" * 4 + c[-4:]),
        named("unreadable"),
    ),
    # Files and names.
    Kind("file gone", lambda node: data(node).unlink(), named("missing")),
    Kind("file is a folder", folder_for_file, named("unreadable")),
    Kind("file is a pipe", pipe, named("unreadable")),
    Kind("two files exchanged", exchange(FILE, OTHER), named("bucket", FILE, "g1")),
    Kind(
        "stray file",
        on_folder(lambda s: (s / "notes.txt").write_text("")),
        named("extra", "notes.txt"),
    ),
    Kind(
        "stray data file",
        on_folder(lambda s: shutil.copy(s / FILE, s / "bucket-99.parquet")),
        named("extra", "bucket-99.parquet"),
    ),
    Kind(
        "data file that nothing names",
        on_folder(lambda s: shutil.copy(s / FILE, s / "bucket-01.parquet")),
        named("manifest", MANIFEST),
    ),
    Kind(
        "segment renamed",
        on_folder(lambda s: s.rename(s.with_name(f"{22:020d}-{30:020d}"))),
        named("manifest", MANIFEST),
    ),
    Kind("segment gone", on_folder(shutil.rmtree), Expected("missing", position=FIRST)),
    Kind(
        "last segment gone",
        lambda node: shutil.rmtree(segment(node, 2)),
        Expected("missing", position=LOG.rows[30].position),
    ),
    Kind("segment twice", second_copy, named("manifest", MANIFEST)),
    Kind("overlapping segment", overlapping, Expected("manifest")),
    # Links.
    Kind("link to a peer's file", replaced_by_link(of_peer), named("copy")),
    Kind("link out of the archive", replaced_by_link(outside), named("copy")),
    Kind("link within the archive", replaced_by_link(moved_aside), named("copy")),
    Kind("link to nothing", replaced_by_link(lambda f: f / "nothing"), named("copy")),
    Kind("link to a peer's manifest", replaced_by_link(of_peer, MANIFEST), named("copy", MANIFEST)),
    Kind("link to a peer's segment", linked_segment, Expected("copy", position=None)),
    Kind("link to a peer's segments", linked_segments, named("copy", "segments")),
    # The manifest.
    Kind("no manifest", on_folder(lambda s: (s / MANIFEST).unlink()), named("missing", MANIFEST)),
    Kind("manifest is a pipe", manifest_pipe, named("unreadable", MANIFEST)),
    Kind("manifest cut off", on_bytes(lambda c: c[:90], MANIFEST), named("unreadable", MANIFEST)),
    Kind("manifest empty", on_bytes(lambda _: b"", MANIFEST), named("unreadable", MANIFEST)),
    Kind("manifest a list", on_bytes(lambda _: b"[1, 2]", MANIFEST), named("unreadable", MANIFEST)),
    Kind(
        "manifest no text",
        on_bytes(lambda _: b"\xff\xfe\x00", MANIFEST),
        named("unreadable", MANIFEST),
    ),
    Kind(
        "manifest nested",
        on_bytes(lambda _: b"[" * 100_000, MANIFEST),
        named("unreadable", MANIFEST),
    ),
    Kind(
        "manifest of a huge number",
        on_bytes(
            lambda c: c.replace(b'"count"', b'"count": ' + b"9" * 5000 + b', "x"', 1), MANIFEST
        ),
        named("unreadable", MANIFEST),
    ),
    Kind("a field gone", on_manifest(lambda raw: raw.pop("last")), named("unreadable", MANIFEST)),
    Kind("a field too many", setting(owner="me"), named("unreadable", MANIFEST)),
    Kind("newer format", setting(format_version=99), named("format", MANIFEST)),
    Kind("format no number", setting(format_version="one"), named("format", MANIFEST)),
    Kind(
        "a name with dots",
        listing(lambda _: ["../../../../outside.parquet"]),
        named("manifest", MANIFEST),
    ),
    Kind("an absolute name", listing(lambda _: ["/etc/passwd"]), named("manifest", MANIFEST)),
    Kind("a name that is none", listing(lambda _: [7, None]), named("manifest", MANIFEST)),
    Kind(
        "a name twice",
        listing(lambda files: [*files, FILE]),
        named("manifest", MANIFEST),
    ),
    Kind(
        "a file left out",
        listing(lambda files: [name for name in files if name != FILE]),
        named("manifest", MANIFEST),
    ),
    Kind("count a text", setting(count="many"), named("manifest", MANIFEST)),
    Kind("count too large for a machine", setting(count=10**30), named("manifest", MANIFEST)),
    Kind("count lies", setting(count=3), named("manifest", MANIFEST)),
    Kind("end lies, later", setting(last=[900, 0]), named("manifest", MANIFEST)),
    Kind("end lies, earlier", setting(last=[FIRST.index, 0]), named("manifest", MANIFEST)),
    Kind("beginning lies", setting(first=[1, 0]), named("manifest", MANIFEST)),
    Kind(
        "ends exchanged", setting(first=list(LAST), last=list(FIRST)), named("manifest", MANIFEST)
    ),
    Kind("negative end", setting(last=[-1, 0]), named("manifest", MANIFEST)),
    Kind("digest lies", on_block(low=7), Expected("manifest")),
    Kind("block count lies", on_block(count=7), named("manifest", MANIFEST)),
    Kind("block number lies", on_block(block=7), named("manifest", MANIFEST)),
    Kind("no blocks", setting(blocks=[]), named("manifest", MANIFEST)),
    Kind(
        "another cluster's segment",
        setting(cluster_id="other"),
        Expected("foreign", position=FIRST),
    ),
    Kind("a peer's segment", setting(node_id="n2"), Expected("copy", position=FIRST)),
    # Columns.
    Kind("typed column gone", on_table(lambda t: t.drop_columns(["generation"])), named("schema")),
    Kind("payloads gone", on_table(lambda t: t.drop_columns(["payload"])), named("schema")),
    Kind("column too many", on_table(lambda t: t.append_column("x", t["idx"])), named("schema")),
    Kind("column twice", on_table(lambda t: t.append_column("idx", t["idx"])), named("schema")),
    Kind(
        "columns in another order",
        on_table(lambda t: t.select(t.column_names[::-1])),
        named("schema"),
    ),
    Kind("indexes as text", cast("idx", pa.string()), named("schema")),
    Kind("ordinals as long integers", cast("ordinal", pa.int64()), named("schema")),
    Kind(
        "payloads as text",
        on_table(lambda t: with_column(t, "payload", pa.array(["x"] * len(t)))),
        named("schema"),
    ),
    Kind("a payload is null", on_row("payload", lambda _: None), named("schema")),
    Kind("a position is negative", on_row("idx", lambda _: -5), named("schema")),
    Kind("a column is forged to null", on_row("log_time_ms", lambda _: None), named("schema")),
    # Rows.
    Kind("no rows", on_table(lambda t: t.slice(0, 0)), named("manifest")),
    Kind(
        "rows in another order",
        on_table(lambda t: t.take(list(range(len(t)))[::-1])),
        named("order", FILE, "g0"),
    ),
    Kind("a row in another bucket", row_in_another_file, named("bucket", OTHER, "g0", AT)),
    Kind(
        "a row twice",
        on_table(lambda t: pa.concat_tables([t.slice(0, 1), t])),
        named("duplicated", FILE, "g0"),
    ),
    Kind("a row lost after sealing", after_sealing(lost), Expected("lost", "", "g0", AT)),
    Kind(
        "a row twice after sealing",
        after_sealing(duplicated),
        Expected("duplicated", FILE, "g0", AT),
    ),
    Kind("rows exchanged after sealing", after_sealing(swapped), Expected("changed", "", "", AT)),
    Kind("a bit flipped after sealing", after_sealing(flipped), Expected("changed", "", "g0", AT)),
    Kind(
        "a row lost before sealing",
        sealed_with(lost(LOG.rows, VICTIM)),
        Expected("lost", "", "g0", AT),
    ),
    Kind(
        "a row twice before sealing",
        sealed_with(duplicated(LOG.rows, VICTIM)),
        Expected("duplicated", FILE, "g0", AT),
    ),
    Kind(
        "rows exchanged before sealing",
        sealed_with(swapped(LOG.rows, VICTIM)),
        Expected("payload", "", "", AT),
    ),
    Kind(
        "a bit flipped before sealing",
        sealed_with(flipped(LOG.rows, VICTIM)),
        Expected("chain", FILE, "g0", AT),
    ),
    Kind(
        "a record invented at the end",
        sealed_with([*LOG.rows, Row(Position(LOG.index + 1, 0), LOG.rows[-1].content)]),
        Expected("payload"),
    ),
    Kind("another history", other_history, Expected("changed")),
    # Columns against payloads, and chains.
    Kind("type forged", on_row("type", lambda _: "GroupDeleted"), named("payload", FILE, "g0", AT)),
    Kind("group forged", on_row("grp", lambda _: "g9"), named("bucket", FILE, "g9", AT)),
    Kind(
        "number in the group forged",
        on_row("grp_seq", lambda n: n + 1),
        named("payload", FILE, "g0", AT),
    ),
    Kind("time forged", on_row("log_time_ms", lambda n: n + 1), named("payload", FILE, "g0", AT)),
    Kind("request forged", on_row("request_id", lambda _: "c5"), named("payload", FILE, "g0", AT)),
    Kind(
        "offset forged",
        on_row("offsets", lambda o: [{**o[0], "offset": 77}]),
        named("payload", FILE, "g0", AT),
    ),
    Kind("ordinal forged", on_row("ordinal", lambda _: 9), named("payload", FILE, "g0")),
    Kind(
        "payload no record",
        on_row("payload", lambda _: b"\xff\xff"),
        named("payload", FILE, "g0", AT),
    ),
    Kind(
        "chain of the group forged",
        on_row("chain", lambda _: bytes(32)),
        named("chain", FILE, "g0", AT),
    ),
    Kind("chain too short", on_row("chain", lambda c: c[:5]), named("chain", FILE, "g0", AT)),
    Kind(
        "chain over all forged", on_row("chain", lambda _: bytes(32), CLUSTER, 0), Expected("chain")
    ),
    # Checkpoints and the tail.
    Kind("checkpoint garbage", checkpoint(b"garbage" * 100), Expected("checkpoint")),
    Kind("checkpoint empty", checkpoint(b""), Expected("checkpoint")),
    Kind("checkpoint a link", linked_checkpoint, named("copy", ".checkpoint")),
    Kind("tail cut off", on_tail_bytes(lambda c: c[:-50]), named("unreadable")),
    Kind(
        "tail's manifest cut off",
        on_tail_bytes(lambda c: c[:50], MANIFEST),
        named("unreadable", MANIFEST),
    ),
]


def changed(node: Path, name: str) -> None:
    """Damage a node in the way that has this name."""
    next(kind for kind in KINDS if kind.name == name).change(node)

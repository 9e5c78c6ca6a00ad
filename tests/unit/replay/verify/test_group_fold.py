"""The folds without Spark: what they take in by columns, they judge as they would row by row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from holdfast.replay.read.log_rows import (
    COUNT,
    FINDING,
    GROUP,
    HEAD,
    RECORD,
    START,
    Bucket,
    Cut,
    Entry,
    ResultRow,
    Source,
)
from holdfast.replay.read.node_logs import NodeLog, buckets_of, node_log, sources_by_segment
from holdfast.replay.verify import group_fold
from holdfast.replay.verify.cluster_fold import fold_cluster
from holdfast.replay.verify.group_fold import entries_of, fold_bucket
from holdfast.replay.verify.group_rows import ENTRIES_MAX, group_rows
from holdfast.storage.codec.event_codec import CHAIN_START, chain_hash
from holdfast.storage.codec.state_image import DIGEST_SPAN, digest_of, restore, weight
from holdfast.storage.segments.segment_reader import CLUSTER_FILE
from spark.event_logs import eventful_log, write_node

LOG = eventful_log()
ALL = Cut()
CUT_AT = 30

Damage = Callable[[pa.Table, int], pa.Table]


def numbered(table: pa.Table, *parts: range) -> pa.Table:
    return table.take(pa.array([number for part in parts for number in part]))


def lost(table: pa.Table, at: int) -> pa.Table:
    return numbered(table, range(at), range(at + 1, len(table)))


def twice(table: pa.Table, at: int) -> pa.Table:
    return numbered(table, range(at + 1), range(at, len(table)))


def exchanged(table: pa.Table, at: int) -> pa.Table:
    """Two neighbours stand in the other order."""
    after = range(min(at + 1, len(table) - 1), min(at + 2, len(table)))
    return numbered(table, range(at), after, range(at, at + 1), range(after.stop, len(table)))


def moved(table: pa.Table, at: int) -> pa.Table:
    """A record stands at the end of the file, behind those of other groups."""
    return numbered(table, range(at), range(at + 1, len(table)), range(at, at + 1))


def changed(name: str) -> Damage:
    """The first byte of a record's chain, or of its payload, is another one."""

    def damage(table: pa.Table, at: int) -> pa.Table:
        values = table.column(name).to_pylist()
        values[at] = bytes([values[at][0] ^ 1]) + values[at][1:]
        place = table.schema.get_field_index(name)
        return table.set_column(place, name, pa.array(values, pa.binary()))

    return damage


def of_another_group(table: pa.Table, at: int) -> pa.Table:
    values = table.column("grp").to_pylist()
    values[at] = "g" if values[at] != "g" else "h"
    return table.set_column(table.schema.get_field_index("grp"), "grp", pa.array(values))


def relinked(damage: Damage) -> Damage:
    """Whoever damaged the records has made the chains of their groups anew."""

    def damage_all(table: pa.Table, at: int) -> pa.Table:
        left, heads, chains = damage(table, at), dict[str, bytes](), list[bytes]()
        names = ("grp", "payload", "chain")
        for group_id, payload, chain in zip(*(left[n].to_pylist() for n in names), strict=True):
            heads[group_id] = chain_hash(heads.get(group_id, CHAIN_START), payload)
            chains.append(heads[group_id] if group_id else chain)
        place = left.schema.get_field_index("chain")
        return left.set_column(place, "chain", pa.array(chains, pa.binary()))

    return damage_all


def forked(table: pa.Table, at: int) -> pa.Table:
    """The last record of a group stands behind those of others, and is linked as its first."""
    groups = table.column("grp").to_pylist()
    left = moved(table, len(groups) - 1 - groups[::-1].index(groups[at]))
    made = chain_hash(CHAIN_START, left.column("payload")[-1].as_py())
    chains = [*left.column("chain").to_pylist()[:-1], made]
    place = left.schema.get_field_index("chain")
    return left.set_column(place, "chain", pa.array(chains, pa.binary()))


DAMAGES = (
    lost,
    twice,
    exchanged,
    moved,
    changed("chain"),
    changed("payload"),
    of_another_group,
    forked,
)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> NodeLog:
    return node_log(write_node(tmp_path_factory.mktemp("node"), "n1", LOG.rows, (CUT_AT,)))


@pytest.fixture(scope="module")
def shared(sound: NodeLog, tmp_path_factory: pytest.TempPathFactory) -> Bucket:
    """All groups in one bucket."""
    sources, folder = list[Source](), tmp_path_factory.mktemp("shared")
    for number, files in enumerate(sources_by_segment(sound)):
        table = pa.concat_tables([pq.read_table(source.path) for source in files])
        ordered = table.sort_by([(name, "ascending") for name in ("grp", "idx", "ordinal")])
        pq.write_table(ordered, folder / str(number))
        sources.append(Source(str(folder / str(number)), START))
    return Bucket("shared", tuple(sources))


def damaged(bucket: Bucket, damage: Damage, out: Path) -> Iterator[Bucket]:
    """The bucket with every third record of its last file damaged, one at a time."""
    *before, source = bucket.sources
    table = pq.read_table(source.path)
    for at in range(0, len(table), 3):
        pq.write_table(damage(table, at), out / str(at))
        yield bucket._replace(sources=(*before, source._replace(path=str(out / str(at)))))


def without_order(rows: Iterator[ResultRow]) -> Counter[Any]:
    return Counter((*row[:-1], tuple(row.entries)) for row in rows)


@pytest.mark.parametrize(
    ("damage", "files"),
    [
        *[(damage, 2) for damage in DAMAGES],
        *[(relinked(damage), 1) for damage in (twice, exchanged, moved)],
    ],
)
def test_runs_of_a_group_are_judged_as_its_records_would_be_one_by_one(
    damage: Damage, files: int, shared: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S3, S6, S22: findings, counts, and the state that is left, whichever record is damaged."""
    found = 0
    for each in damaged(shared._replace(sources=shared.sources[:files]), damage, tmp_path):
        with monkeypatch.context() as singly:
            singly.setattr(group_fold, "runs_of", lambda _: None)
            expected = without_order(fold_bucket(each, (), ALL, records=True))

        assert without_order(fold_bucket(each, (), ALL, records=True)) == expected
        found += sum(row[0] == FINDING for row in expected)

    assert found


def test_a_record_of_the_file_before_is_found_even_if_the_chain_goes_on(
    shared: Bucket, tmp_path: Path
) -> None:
    """S3: whoever repeats it makes the chain anew; its place tells."""
    first, again = shared.sources[0], tmp_path / "again"
    table = pq.read_table(first.path)
    pq.write_table(relinked(twice)(table, len(table) - 1).slice(len(table)), again)
    sources = (first, first._replace(path=str(again)))

    rows = list(fold_bucket(shared._replace(sources=sources), (), ALL))

    assert [row.kind for row in rows if row.tag == FINDING] == ["duplicated"]


def test_sound_records_are_not_looked_at_one_by_one(
    shared: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_fold._BucketFold, "_take_singly", None)

    assert FINDING not in {row.tag for row in fold_bucket(shared, (), ALL)}


def test_s3_rows_of_groups_add_up_to_the_digest_and_hold_the_whole_state(sound: NodeLog) -> None:
    buckets = buckets_of(sound).values()
    cluster = buckets_of(sound)[CLUSTER_FILE].sources
    rows = [row for each in buckets for row in fold_bucket(each, cluster, ALL, records=True)]
    rows += fold_cluster(sources_by_segment(sound), ALL, sound.begins, records=True)

    state = restore(row.content for row in rows if row.tag == RECORD)
    told = {(row.grp, *each) for row in rows if row.tag == GROUP for each in row.entries}
    assert sum(row.idx for row in rows if row.tag == GROUP) % DIGEST_SPAN == digest_of(state)
    assert {each for each in told if each[0]} == {
        (group.group_id, *each) for group in state.groups.values() for each in entries_of(group)
    }


def test_a_large_group_has_several_rows_and_is_counted_once() -> None:
    entries = [Entry("offset", f"t/{n}", str(n)) for n in range(2 * ENTRIES_MAX + 1)]
    contents = [b"one", b"two"]

    rows = list(group_rows("g", contents, entries))

    assert [each for row in rows for each in row.entries] == entries
    assert max(len(row.entries) for row in rows) == ENTRIES_MAX
    assert sum(row.idx for row in rows) % DIGEST_SPAN == sum(map(weight, contents)) % DIGEST_SPAN
    assert all(-(1 << 63) <= row.idx < 1 << 63 for row in rows)


def test_s3_a_record_that_is_there_twice_is_linked_once(sound: NodeLog) -> None:
    """A segment that is there a second time; of its records only the cluster's own are told."""
    first, second = sources_by_segment(sound)
    own = [record.position for record in LOG.records if not record.group_id]

    rows = list(fold_cluster([first, first, second], ALL, sound.begins))

    (head,) = (row for row in rows if row.tag == HEAD)
    assert (head.content, head.idx) == (LOG.heads[""], LOG.records[-1].position.index)
    assert [(row.kind, row.idx, row.ordinal) for row in rows if row.tag == FINDING] == [
        ("duplicated", *place) for place in own if place <= LOG.rows[CUT_AT - 1].position
    ]
    assert [row.idx for row in rows if row.tag == COUNT] == [len(own)]

"""What a node shows of itself: the catalogue, in Prometheus' form, and no name of a group."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from prometheus_client.parser import text_string_to_metric_families

from holdfast.coordinator.cluster.disk_forecast import Forecast, Growth
from holdfast.raft.transport.peer_names import node_uri
from holdfast.server.config.address import Address
from holdfast.server.config.trace_settings import TraceSettings
from holdfast.server.metrics import text
from holdfast.server.metrics.catalogue import BY_NAME, METRICS
from holdfast.server.metrics.exposition import exposed
from holdfast.server.metrics.gathering import Sources, gathered
from holdfast.server.metrics.history_outlook import Outlook
from holdfast.server.metrics.metrics import Metrics
from holdfast.server.metrics.pulse import Pulse
from holdfast.server.security.certificates import issue, make_authority
from holdfast.storage.durations import Durations
from unit.server.nodes import beat, join, served, sync, topic

if TYPE_CHECKING:
    from holdfast.server.config.node_config import Tls
    from holdfast.server.metrics.gathering import Row
    from holdfast.server.metrics.history_outlook import HistoryOutlook
    from unit.server.nodes import Served

TRACES = TraceSettings(Address("127.0.0.1", 4317), secure=False, sample_ratio=1)
HIDDEN = "whose-name-is-nobodys-business"


def tls(place: Path) -> Tls:
    return issue(make_authority("c"), place, "node-1", node_uri("c", "node-1"), ["127.0.0.1"])


def sources(
    node: Served, data: Path, credentials: Tls | None, *, caught_up: bool = True
) -> Sources:
    """What the process of a node puts together."""
    (data / "journal").mkdir(exist_ok=True)
    (data / "journal" / "file").write_bytes(b"x" * 10_000)
    commits, syncs = Durations(), Durations()
    commits.add(0.004)
    return Sources(
        node.replica,
        lambda: caught_up,
        node.node.call_counts,
        node.node.applied_counts,
        Pulse(node.replica.status, lambda: 0.0),
        commits,
        syncs,
        lambda: {"node-2": 7},
        {
            **node.node.gauges(),
            "holdfast_changes_waiting": lambda: 1,
            "holdfast_entries_under_way": lambda: 2,
        },
        data,
        {"journal": data / "journal", "state": data / "absent"},
        credentials,
        outlook(),
    )


class _Outlook:
    """As `HistoryOutlook`, of a disk that is full in a day."""

    async def told(self) -> Outlook:
        return Outlook(Forecast(Growth(1, 1), 86_400_000), hindrance="no backup")


def outlook() -> HistoryOutlook:
    return cast("HistoryOutlook", _Outlook())


async def busy(node: Served) -> None:
    """A group with a name that must not be shown, a topic, and a member that left."""
    await topic(node)
    joined = await node.group.JoinGroup(join(HIDDEN))
    request = sync(joined)
    request.group_id = HIDDEN
    await node.group.SyncGroup(request)
    heartbeat = beat(joined)
    heartbeat.group_id = HIDDEN
    await node.group.Heartbeat(heartbeat)


def shown(place: Path) -> list[Row]:
    """All values of a busy node."""

    async def test() -> list[Row]:
        async with served(traces=TRACES) as node:
            await busy(node)
            return await gathered(sources(node, place, tls(place / "tls")))

    return asyncio.run(test())


def values(place: Path) -> dict[tuple[str, ...], float | Durations]:
    return {(name, *labels): value for name, labels, value in shown(place)}


def test_every_metric_of_the_catalogue_is_shown_and_no_other(tmp_path: Path) -> None:
    names = {name for name, _, _ in shown(tmp_path)}

    assert names == BY_NAME.keys()


def test_every_value_has_the_labels_that_are_declared(tmp_path: Path) -> None:
    for name, labels, _ in shown(tmp_path):
        assert len(labels) == len(BY_NAME[name].labels), name


def test_the_forecast_of_the_disk_is_shown_in_seconds(tmp_path: Path) -> None:
    found = values(tmp_path)

    assert found["holdfast_disk_full_seconds",] == 86_400
    assert found["holdfast_retention_hindered",] == 1


def test_what_is_counted_is_what_there_is(tmp_path: Path) -> None:
    found = values(tmp_path)

    assert found["holdfast_groups", "Stable"] == 1
    assert found["holdfast_members",] == 1
    assert found["holdfast_topics",] == found["holdfast_partitions",] == 1
    assert found["holdfast_rebalances_total", "joined"] == 1
    assert found["holdfast_calls_total", "Heartbeat", "NONE"] == 1
    assert found["holdfast_raft_leads",] is True
    assert found["holdfast_peer_connected", "node-2"] is True
    assert found["holdfast_peer_queue_bytes", "node-2"] == 7
    assert found["holdfast_directory_bytes", "journal"] in range(10_000, 100_000)
    assert found["holdfast_directory_bytes", "state"] == 0


def test_s4_a_node_that_was_started_counts_nothing_of_its_state_before_it_has_caught_up(
    tmp_path: Path,
) -> None:
    """A panel would show groups that are gone; what the process itself does is shown."""

    async def test() -> set[str]:
        async with served() as node:
            await busy(node)
            found = await gathered(sources(node, tmp_path, None, caught_up=False))
            return {name for name, _, _ in found}

    names = asyncio.run(test())
    hidden = {"holdfast_groups", "holdfast_members", "holdfast_topics", "holdfast_partitions"}
    assert not names & hidden
    assert {"holdfast_applied_index", "holdfast_raft_commit_index"} <= names


def test_certificates_expire_when_their_files_say(tmp_path: Path) -> None:
    found = values(tmp_path)

    for file in ("ca", "certificate"):
        expiry = found["holdfast_certificate_expiry_seconds", file]
        started = found["holdfast_start_time_seconds",]
        assert isinstance(expiry, float)
        assert isinstance(started, float)
        assert 3_640 * 86_400 < expiry - started < 3_660 * 86_400  # issued for ten years


def test_a_certificate_that_cannot_be_read_hides_nothing_else(tmp_path: Path) -> None:
    async def test() -> list[Row]:
        async with served() as node:
            made = tls(tmp_path / "tls")
            made.certificate.write_text("half a file")
            return await gathered(sources(node, tmp_path, made))

    found = [labels for name, labels, _ in asyncio.run(test()) if "expiry" in name]
    assert found == [("ca",)]


def test_no_name_of_a_group_or_a_member_is_shown_and_prometheus_reads_it(tmp_path: Path) -> None:
    async def test() -> str:
        async with served() as node:
            await busy(node)
            answer = await Metrics(sources(node, tmp_path, None)).page({})
            assert answer.content_type.startswith("text/plain; version=")
            return answer.content.decode()

    told = asyncio.run(test())
    families = {family.name: family for family in text_string_to_metric_families(told)}

    assert HIDDEN not in told
    assert "i1" not in told
    assert families["holdfast_commit_seconds"].type == "histogram"
    assert families["holdfast_calls"].type == "counter"


def test_a_histogram_counts_each_duration_in_its_class_and_all_longer_ones() -> None:
    durations = Durations()
    for seconds in (0.004, 0.005, 100.0):
        durations.add(seconds)
    (family,) = text_string_to_metric_families(
        exposed([("holdfast_commit_seconds", (), durations)]).decode()
    )
    counts = {s.labels.get("le", s.name): s.value for s in family.samples}

    assert counts["0.0025"] == 0
    assert counts["0.005"] == 2
    assert counts["60.0"] == 2
    assert counts["+Inf"] == counts["holdfast_commit_seconds_count"] == 3
    assert counts["holdfast_commit_seconds_sum"] == pytest.approx(100.009)


def test_a_metric_that_is_not_declared_is_a_defect() -> None:
    with pytest.raises(KeyError):
        exposed([("holdfast_invented", (), 1)])


def test_the_page_about_metrics_is_what_the_catalogue_says() -> None:
    """docs/operations/metrics.md is generated: `python -m holdfast.server.metrics.text`."""
    page = Path(__file__).parents[4] / "docs" / "operations" / "metrics.md"

    assert page.read_text() == text.page()


def test_names_follow_prometheus_conventions() -> None:
    for metric in METRICS:
        assert metric.name.startswith("holdfast_")
        assert metric.name.endswith("_total") == (metric.kind == "counter"), metric.name
        base = metric.name.removesuffix("_total")
        if metric.unit:
            wanted = "_bytes" if metric.unit == "bytes" else "_seconds"
            assert base.endswith((wanted, "_bytes_in_flight")), metric.name

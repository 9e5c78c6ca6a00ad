"""Translates gathered values into the text that Prometheus reads.

Loading prometheus_client takes 30 ms, so this is imported when somebody asks for the first time.
The registry is made for each answer: nothing is global, and nothing counts here.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Final

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.registry import Collector

from holdfast.server.metrics.catalogue import BY_NAME
from holdfast.storage.durations import BOUNDS_S, Durations

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from prometheus_client.core import Metric as Family

    from holdfast.server.metrics.catalogue import Metric
    from holdfast.server.metrics.gathering import Row

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST
_BOUNDS: Final = [*map(str, BOUNDS_S), "+Inf"]


def exposed(rows: Iterable[Row]) -> bytes:
    """Return the text for these values. Raises KeyError for a name that is not declared."""
    registry = CollectorRegistry()
    registry.register(_Gathered(rows))
    return generate_latest(registry)


class _Gathered(Collector):
    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = list(rows)

    def collect(self) -> Iterator[Family]:
        """Yield a family for each metric that has a value."""
        families: dict[str, Family] = {}
        for name, labels, value in self._rows:
            if name not in families:
                families[name] = _family(BY_NAME[name])
            _add(families[name], labels, value)
        yield from families.values()


def _family(metric: Metric) -> Family:
    if metric.kind == "counter":
        return CounterMetricFamily(metric.name, metric.text, labels=metric.labels)
    if metric.kind == "gauge":
        return GaugeMetricFamily(metric.name, metric.text, labels=metric.labels)
    return HistogramMetricFamily(metric.name, metric.text, labels=metric.labels)


def _add(family: Family, labels: tuple[str, ...], value: float | Durations) -> None:
    if isinstance(value, Durations):
        counts = list(accumulate(value.counts))
        assert isinstance(family, HistogramMetricFamily)  # noqa: S101 - the catalogue's kind
        family.add_metric(labels, list(zip(_BOUNDS, counts, strict=True)), value.sum_s)
    else:
        assert isinstance(family, CounterMetricFamily | GaugeMetricFamily)  # noqa: S101 - as above
        family.add_metric(labels, value)
